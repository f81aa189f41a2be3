#include "io/compression/zstd.h"

#include <stdexcept>

#include <zstd.h>

#include "base/error.h"

namespace cytra::io {

std::vector<unsigned char> compress_zstd(const void* data, std::size_t bytes, int level) {
  std::vector<unsigned char> packed(ZSTD_compressBound(bytes));
  const std::size_t made = ZSTD_compress(packed.data(), packed.size(), data, bytes, level);
  if (ZSTD_isError(made) != 0) throw std::logic_error("zstd failed");
  packed.resize(made);
  return packed;
}

void decompress_zstd(
    const void* data, std::size_t count, void* into, std::size_t bytes, const std::string& place) {
  const std::size_t made = ZSTD_decompress(into, bytes, data, count);
  if (ZSTD_isError(made) != 0 || made != bytes)
    throw DataError(place + ": damaged zstd data, expected what was written");
}

}  // namespace cytra::io
