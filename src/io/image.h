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

/// What the voxels mean in the world: (z, y, x) distance between centres in micrometres; 0: not known.
struct Geometry {
  std::array<double, 3> spacing_um{0, 0, 0};
};

struct Image {
  Dtype dtype = Dtype::u8;
  /// C, Z, Y, X; each >= 1. A 2D image has Z = 1.
  std::array<int64_t, 4> shape{1, 1, 1, 1};
  std::vector<unsigned char> pixels;  // C order, native byte order
  Geometry geometry;
  std::vector<std::string> channel_names;  // empty, or C names

  int64_t count() const { return shape[0] * shape[1] * shape[2] * shape[3]; }
};

struct ImageInfo {  // what the header says; nothing is decoded
  Dtype dtype;
  std::array<int64_t, 4> shape;
  Geometry geometry;
};

/// Reads by content and extension: .tif .tiff .ome.tif (2D, 3D, several channels, ImageJ hyperstacks; time points
/// beyond the first are an error), .png (grey, RGB, alpha; 8 and 16 bit). Throws: DataError naming the file and what
/// is wrong with it (missing, truncated, not an image, a type or size that is not supported).
Image read_image(const std::string& path);

struct WriteOptions {
  enum class Compression { none, deflate, lzw } compression = Compression::deflate;
};
/// OME-TIFF (BigTIFF above 4 GB), one page per plane, axes CZYX, with PhysicalSize in um and channel names.
/// Atomic. Throws: as AtomicFile.
void write_ome_tiff(const std::string& path, const Image& image, const WriteOptions& options = {});
/// 8- or 16-bit grey (C = 1) or RGB (C = 3) PNG of a 2D image. Atomic.
void write_png(const std::string& path, const Image& image);
bool is_image_path(const std::string& path);

}  // namespace cytra::io
