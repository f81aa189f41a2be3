#include "io/tiff/samples.h"

#include <cstring>

#include <fmt/format.h>

namespace cytra::io {
namespace {

StoredType stored_type(const TiffPage& page) {
  StoredType type;
  type.kind = page.format == SAMPLEFORMAT_INT      ? 'i'
              : page.format == SAMPLEFORMAT_IEEEFP ? 'f'
                                                   : 'u';
  type.bits = page.bits <= 8 ? 8 : page.bits <= 16 ? 16 : page.bits <= 32 ? 32 : 64;
  return type;
}

}  // namespace

void check_supported(const std::string& path, const TiffPage& page) {
  switch (page.compression) {
    case COMPRESSION_NONE:
    case COMPRESSION_CCITTRLE:
    case COMPRESSION_CCITTFAX3:
    case COMPRESSION_CCITTFAX4:
    case COMPRESSION_LZW:
    case COMPRESSION_JPEG:
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_DEFLATE:
    case COMPRESSION_PACKBITS:
    case COMPRESSION_LZMA:
    case COMPRESSION_ZSTD:
    case COMPRESSION_WEBP:
    case COMPRESSION_LERC:
      if (TIFFIsCODECConfigured(page.compression) != 0) break;
      [[fallthrough]];
    default:
      page.refuse(path,
                  fmt::format("compression {} is not supported", page.compression),
                  "none, LZW, deflate, zstd, LZMA, PackBits, JPEG, WebP or LERC");
  }
  switch (page.photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
    case PHOTOMETRIC_RGB:
    case PHOTOMETRIC_PALETTE:
    case PHOTOMETRIC_MASK:
    case PHOTOMETRIC_SEPARATED:
    case PHOTOMETRIC_CFA:
      break;
    case PHOTOMETRIC_YCBCR:
      if (page.compression == COMPRESSION_JPEG || page.compression == COMPRESSION_WEBP) break;
      [[fallthrough]];
    default:
      page.refuse(
          path, fmt::format("colour model {}", page.photometric), "grey, RGB or separate channels");
  }
  const bool is_integer = page.format == SAMPLEFORMAT_UINT || page.format == SAMPLEFORMAT_INT ||
                          page.format == SAMPLEFORMAT_VOID;
  const bool is_float = page.format == SAMPLEFORMAT_IEEEFP;
  const bool is_known = is_integer
                            ? page.bits >= 1 && (page.bits <= 32 || page.bits == 64)
                            : is_float && (page.bits == 16 || page.bits == 32 || page.bits == 64);
  if (!is_known) {
    page.refuse(path,
                fmt::format("{}-bit {} samples",
                            page.bits,
                            is_integer ? "integer"
                            : is_float ? "floating-point"
                                       : "complex"),
                "integers of 1 to 32 or 64 bits, or floating point of 16, 32 or 64 bits");
  }
}

Dtype dtype_of(const TiffPage& page) {
  return dtype_of(stored_type(page)).value();
}

bool is_packed(const TiffPage& page) {
  return page.bits != 8 && page.bits != 16 && page.bits != 32 && page.bits != 64;
}

bool is_native(const TiffPage& page) {
  const bool is_float = page.format == SAMPLEFORMAT_IEEEFP;
  return !is_packed(page) && (is_float ? page.bits != 16 : page.bits != 64);
}

bool has_rows(const TiffPage& page) {
  if (page.is_tiled) return false;
  switch (page.compression) {
    case COMPRESSION_NONE:
    case COMPRESSION_LZW:
    case COMPRESSION_PACKBITS:
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_DEFLATE:
    case COMPRESSION_LZMA:
    case COMPRESSION_ZSTD:
      return true;
    default:
      return false;
  }
}

void take_samples(const std::string& path,
                  const TiffPage& page,
                  const unsigned char* row,
                  int64_t samples,
                  int64_t sample,
                  int64_t first,
                  int64_t count,
                  bool is_swapped,
                  unsigned char* into) {
  StoredType type = stored_type(page);
  if (!is_packed(page)) {
    type.is_swapped = is_swapped;
    const auto size = std::ssize(type);
    const unsigned char* from = row + (first * samples + sample) * size;
    return convert(path, type, from, samples * size, count, into);
  }
  for (int64_t i = 0; i < count; ++i, into += type.size()) {
    uint32_t value = 0;
    const auto at = static_cast<uint64_t>((first + i) * samples + sample) * page.bits;
    if (page.bits == 24) {  // libtiff has put the bytes into this machine's order
      std::memcpy(&value, row + at / 8, 3);
    } else {  // the highest bit comes first
      for (uint64_t bit = at; bit < at + page.bits; ++bit)
        value = value << 1 | (row[bit / 8] >> (7 - bit % 8) & 1U);
    }
    if (page.format == SAMPLEFORMAT_INT) {  // spread the sign
      const uint32_t sign = uint32_t{1} << (page.bits - 1);
      value = (value ^ sign) - sign;
    }
    std::memcpy(into, &value, type.size());
  }
}

}  // namespace cytra::io
