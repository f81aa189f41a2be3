#include "io/image.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/strings.h"
#include "io/pixels/format.h"

namespace cytra::io {
namespace {

constexpr std::size_t kLargest = std::size_t{64} << 30;
// Deflate reaches 1032:1 and LZW about 1400:1 on constant pixels; small images need no guard.
constexpr std::size_t kRatio = 2000, kSmall = std::size_t{64} << 20;

template <class T>
void deinterleave_as(const unsigned char* from,
                     int64_t count,
                     const std::vector<unsigned char*>& planes) {
  for (unsigned char* plane : planes) {
    const unsigned char* next = from;
    for (int64_t i = 0; i < count; ++i, plane += sizeof(T), next += sizeof(T) * planes.size())
      std::memcpy(plane, next, sizeof(T));
    from += sizeof(T);
  }
}

}  // namespace

std::size_t size_of(Dtype dtype) {
  return with_type(dtype, [](auto value) { return sizeof value; });
}

const char* name_of(Dtype dtype) {
  constexpr const char* kNames[] = {
      "uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64"};
  return kNames[static_cast<std::size_t>(dtype)];
}

bool is_plausible_ratio(std::size_t bytes, std::size_t file_bytes) {
  return bytes <= kSmall || bytes / kRatio <= file_bytes;
}

bool is_plausible(std::size_t bytes, std::size_t file_bytes) {
  return bytes <= kLargest && is_plausible_ratio(bytes, file_bytes);
}

std::size_t check_shape(const std::string& path,
                        const std::array<int64_t, 4>& shape,
                        Dtype dtype,
                        std::size_t file_bytes) {
  std::size_t bytes = size_of(dtype);
  bool fits = true;
  for (const int64_t side : shape) {
    if (side < 1)
      throw DataError(path +
                      ": an image without pixels, expected at least one; write the file again");
    fits = fits && !__builtin_mul_overflow(bytes, static_cast<std::size_t>(side), &bytes);
  }
  if (!fits || bytes > INT64_MAX || !is_plausible_ratio(bytes, file_bytes)) {
    throw DataError(
        "{}: a size of {} x {} x {} x {} (C, Z, Y, X) is not plausible for a file of {}, expected "
        "at most {} times the file; the file may be damaged",
        path,
        shape[0],
        shape[1],
        shape[2],
        shape[3],
        format_bytes(static_cast<double>(file_bytes)),
        kRatio);
  }
  return bytes;
}

void check_memory(const std::string& path, const std::string& what, double bytes) {
  if (bytes <= static_cast<double>(kSmall)) return;
  const AvailableMemory memory = available_memory();
  if (bytes <= static_cast<double>(memory.bytes)) return;
  throw MemoryError(
      "{}: {} take {}, expected at most the {} that are left ({}); an OME-Zarr is read in parts",
      path,
      what,
      format_bytes(bytes),
      format_bytes(static_cast<double>(memory.bytes)),
      memory.limit);
}

void allocate(const std::string& path,
              std::array<int64_t, 4> shape,
              std::size_t file_bytes,
              Image& image) {
  const std::size_t bytes = check_shape(path, shape, image.dtype, file_bytes);
  if (bytes > kLargest) {
    throw DataError(
        "{}: {} x {} x {} x {} (C, Z, Y, X) pixels at once take {}, expected at most {}; read it "
        "in parts",
        path,
        shape[0],
        shape[1],
        shape[2],
        shape[3],
        format_bytes(static_cast<double>(bytes)),
        format_bytes(static_cast<double>(kLargest)));
  }
  // Readers convert the image to float32.
  check_memory(
      path,
      fmt::format("{} x {} x {} x {} (C, Z, Y, X) pixels of {} and their values as float32",
                  shape[0],
                  shape[1],
                  shape[2],
                  shape[3],
                  name_of(image.dtype)),
      static_cast<double>(bytes) * (1 + 4.0 / static_cast<double>(size_of(image.dtype))));
  image.shape = shape;
  image.pixels.assign(bytes, 0);
}

void deinterleave(const unsigned char* from,
                  int64_t count,
                  std::size_t size,
                  const std::vector<unsigned char*>& planes) {
  if (size == 1) return deinterleave_as<uint8_t>(from, count, planes);
  if (size == 2) return deinterleave_as<uint16_t>(from, count, planes);
  if (size == 4) return deinterleave_as<uint32_t>(from, count, planes);
  deinterleave_as<uint64_t>(from, count, planes);
}

void check_writable(const Image& image) {
  const bool has_pixels = std::ranges::all_of(image.shape, [](int64_t side) { return side > 0; });
  const std::size_t names = image.channel_names.size();
  if (!has_pixels || image.pixels.size() != image.bytes() ||
      (names != 0 && names != static_cast<std::size_t>(image.shape[0]))) {
    throw std::logic_error("an image whose sizes, pixels and channel names do not agree");
  }
}

ImageInfo writable_info(const Image& image) {
  check_writable(image);
  ImageInfo info;
  info.dtype = image.dtype;
  info.shape = image.shape;
  info.geometry = image.geometry;
  info.channel_names = image.channel_names;
  return info;
}

std::vector<unsigned char*> channels_of(Image& image) {
  std::vector<unsigned char*> channels;
  const auto count = static_cast<std::size_t>(image.shape[0]);
  for (std::size_t i = 0; i < count; ++i)
    channels.push_back(image.pixels.data() + i * (image.pixels.size() / count));
  return channels;
}

}  // namespace cytra::io
