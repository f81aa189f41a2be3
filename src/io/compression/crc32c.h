#pragma once
#include <cstdint>
#include <string_view>

namespace cytra::io {

/// CRC-32C (Castagnoli) of RFC 3720, as Zarr and TensorBoard's files have it.
uint32_t crc32c(std::string_view bytes);

}  // namespace cytra::io
