#include "io/tiff/encode.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "base/error.h"
#include "io/pixels/stored.h"
#include "io/tiff/handle.h"

namespace cytra::io {
namespace {

bool is_float(Dtype dtype) {
  return dtype == Dtype::f32 || dtype == Dtype::f64;
}

template <class T>
void halve_as(bool is_labels,
              const unsigned char* from,
              int64_t height,
              int64_t width,
              std::size_t row,
              unsigned char* into) {
  const auto at = [&](int64_t y, int64_t x) {
    T value;
    std::memcpy(&value,
                from + static_cast<std::size_t>(y) * row + static_cast<std::size_t>(x) * sizeof(T),
                sizeof value);
    return value;
  };
  for (int64_t y = 0; y < height; y += 2) {
    unsigned char* next = into + static_cast<std::size_t>(y / 2) * row;
    const int64_t below = std::min(y + 1, height - 1);  // an odd row or column stands for itself
    for (int64_t x = 0; x < width; x += 2, next += sizeof(T)) {
      T value = at(y, x);
      if (!is_labels) {
        const int64_t right = std::min(x + 1, width - 1);
        double mean = 0;
        for (const T part : {value, at(y, right), at(below, x), at(below, right)})
          mean += static_cast<double>(part) / 4;
        value = static_cast<T>(std::is_integral_v<T> ? std::nearbyint(mean) : mean);
      }
      std::memcpy(next, &value, sizeof value);
    }
  }
}

}  // namespace

uint16_t sample_format(Dtype dtype) {
  const bool is_signed = dtype == Dtype::i8 || dtype == Dtype::i16 || dtype == Dtype::i32;
  return is_float(dtype) ? SAMPLEFORMAT_IEEEFP : is_signed ? SAMPLEFORMAT_INT : SAMPLEFORMAT_UINT;
}

uint16_t compression_of(const WriteOptions& options) {
  using Compression = WriteOptions::Compression;
  switch (options.compression) {
    case Compression::none:
      return COMPRESSION_NONE;
    case Compression::deflate:
      return COMPRESSION_ADOBE_DEFLATE;
    case Compression::lzw:
      return COMPRESSION_LZW;
    case Compression::zstd:
      return COMPRESSION_ZSTD;
  }
  throw std::logic_error("unknown compression");
}

uint16_t predictor_of(Dtype dtype, const WriteOptions& options) {
  if (options.compression == WriteOptions::Compression::none || !options.predictor)
    return PREDICTOR_NONE;
  // Floats have no predictor: neither Bio-Formats (Fiji, QuPath) nor ImageJ knows
  // PREDICTOR_FLOATINGPOINT.
  return is_float(dtype) ? PREDICTOR_NONE : PREDICTOR_HORIZONTAL;
}

/// The bytes of a block in a file; `pixels` are changed.
std::string encode(std::vector<unsigned char>& pixels,
                   int64_t width,
                   int64_t height,
                   Dtype dtype,
                   const WriteOptions& options) {
  if (options.compression == WriteOptions::Compression::none)
    return {reinterpret_cast<const char*>(pixels.data()), pixels.size()};
  TiffMemory memory;
  TiffMessages messages;
  const TiffHandle handle = open_tiff(memory, messages);
  if (!handle) throw std::bad_alloc();
  TIFF* tiff = handle.get();
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, static_cast<uint32_t>(width));
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, static_cast<uint32_t>(height));
  TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, static_cast<uint32_t>(height));
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, static_cast<int>(8 * size_of(dtype)));
  TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, static_cast<int>(sample_format(dtype)));
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, static_cast<int>(compression_of(options)));
  TIFFSetField(tiff, TIFFTAG_PREDICTOR, static_cast<int>(predictor_of(dtype, options)));
  const auto size = static_cast<tmsize_t>(pixels.size());
  if (TIFFWriteEncodedStrip(tiff, 0, pixels.data(), size) != size || !messages.error.empty())
    throw IoError("a block can't be compressed (" + messages.error + ")");
  return memory.bytes.substr(TIFFGetStrileOffset(tiff, 0), TIFFGetStrileByteCount(tiff, 0));
}

void halve(Dtype dtype,
           bool is_labels,
           const unsigned char* from,
           int64_t height,
           int64_t width,
           std::size_t row,
           unsigned char* into) {
  with_type(dtype, [&](auto value) {
    halve_as<decltype(value)>(is_labels, from, height, width, row, into);
  });
}

}  // namespace cytra::io
