#pragma once
// An image in memory as it is stored in a file: no torch, any of the common sample types.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cytra::io {

enum class Dtype { u8, i8, u16, i16, u32, i32, f32, f64 };
std::size_t size_of(Dtype dtype);
const char* name_of(Dtype dtype);  // "uint16", ...

/// The places of voxels in the world.
struct Geometry {
  /// The distance (z, y, x) between centres in micrometres; 0: unknown.
  std::array<double, 3> spacing_um{0, 0, 0};
  /// The affine as in NIfTI: three rows of four that take voxel (x, y, z, 1) to the world (right,
  /// anterior, superior) in mm. All 0: unknown. Its columns have the length of spacing_um / 1000.
  std::array<double, 12> affine{};
  /// Further values of a NIfTI file, to write them again: the codes of both forms (0 both: a guess
  /// is the affine), xyzt_units, and the affine of a qform that differs from the sform (all 0: it
  /// is the same).
  int sform = 1, qform = 1, xyzt_units = 2;
  std::array<double, 12> qform_affine{};
  /// The affine into the voxels of the sample's image, for two files of different sizes that do not
  /// say where they lie: both show one field of view. All 0: not needed.
  std::array<double, 12> field{};

  bool has_affine() const { return affine != std::array<double, 12>{}; }
  /// Whether a file gives the voxels' places; an affine that is only a substitute does not count.
  bool is_placed() const { return has_affine() && (sform > 0 || qform > 0); }
};

struct Image {
  Dtype dtype = Dtype::u8;
  /// The sizes C, Z, Y, X; each >= 1. A 2D image has Z = 1.
  std::array<int64_t, 4> shape{1, 1, 1, 1};
  std::vector<unsigned char> pixels;  // C order, native byte order
  Geometry geometry;
  std::vector<std::string> channel_names;  // empty, or C names

  int64_t count() const { return shape[0] * shape[1] * shape[2] * shape[3]; }
  std::size_t bytes() const { return static_cast<std::size_t>(count()) * size_of(dtype); }
};

struct WriteOptions {
  enum class Compression { none, deflate, lzw, zstd } compression = Compression::deflate;
  bool predictor = true;   // stores differences of neighbours; smaller except for noise
  int64_t tile = 0;        // side of square tiles, a multiple of 16; 0: strips, or 256 of a pyramid
  int64_t levels = 1;      // of a pyramid that halves Y and X, in SubIFDs
  bool is_labels = false;  // smaller levels take a value, else the mean
  bool is_bigtiff = false;  // even below 4 GB
};
/// Writes OME-TIFF (BigTIFF above 4 GB), one page per plane, axes CZYX, with PhysicalSize in um
/// and channel names. Atomic. Throws: as AtomicFile. In parts: OmeTiffWriter in ome_tiff.h.
void write_ome_tiff(const std::string& path, const Image& image, const WriteOptions& options = {});
/// Writes a PNG of a 2D image: 8- or 16-bit grey (C = 1) or RGB (C = 3). Atomic. Throws: as
/// AtomicFile.
void write_png(const std::string& path, const Image& image);
/// Writes NIfTI-1 (NIfTI-2 for a side above 32767) with C as the 5th dimension and the geometry:
/// the affine as sform, and as qform when it is rigid, with the codes and unit that the geometry
/// has; else only the spacing. .nii, or compressed .nii.gz. Atomic. Throws: as AtomicFile.
void write_nifti(const std::string& path, const Image& image);
/// Writes NumPy's format 1.0: Y, X when C and Z are 1, Z, Y, X when C is 1, else C, Z, Y, X.
/// Atomic.
/// Throws: as AtomicFile.
void write_npy(const std::string& path, const Image& image);

}  // namespace cytra::io
