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

/// What the voxels mean in the world.
struct Geometry {
  /// (z, y, x) distance between centres in micrometres; 0: unknown.
  std::array<double, 3> spacing_um{0, 0, 0};
  /// NIfTI's affine: three rows of four that take voxel (x, y, z, 1) to the world (right, anterior,
  /// superior) in mm. All 0: unknown. Its columns have the length of spacing_um / 1000.
  std::array<double, 12> affine{};
};

struct Image {
  Dtype dtype = Dtype::u8;
  /// C, Z, Y, X; each >= 1. A 2D image has Z = 1.
  std::array<int64_t, 4> shape{1, 1, 1, 1};
  std::vector<unsigned char> pixels;  // C order, native byte order
  Geometry geometry;
  std::vector<std::string> channel_names;  // empty, or C names

  int64_t count() const { return shape[0] * shape[1] * shape[2] * shape[3]; }
  std::size_t bytes() const { return static_cast<std::size_t>(count()) * size_of(dtype); }
};

/// Reads by content: TIFF (2D, 3D, several channels, OME, ImageJ hyperstacks, tifffile's shapes;
/// more than one time point is an error) and PNG (grey, RGB, palette; 1 to 16 bit). Values are
/// those stored: a palette gives its indices, a PNG's alpha is left out. Throws: DataError naming
/// the file and what is wrong with it (truncated, not an image, a type or size that is not
/// supported), ConfigError (missing, not readable).
Image read_image(const std::string& path);

struct WriteOptions {
  enum class Compression { none, deflate, lzw } compression = Compression::deflate;
};
/// OME-TIFF (BigTIFF above 4 GB), one page per plane, axes CZYX, with PhysicalSize in um and
/// channel names. Atomic. Throws: as AtomicFile.
void write_ome_tiff(const std::string& path, const Image& image, const WriteOptions& options = {});
/// 8- or 16-bit grey (C = 1) or RGB (C = 3) PNG of a 2D image. Atomic. Throws: as AtomicFile.
void write_png(const std::string& path, const Image& image);
/// By extension: .tif .tiff .png, whatever the case.
bool is_image_path(const std::string& path);

}  // namespace cytra::io
