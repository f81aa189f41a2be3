#pragma once
#include <cstdint>
#include <string_view>

namespace cytra::io {

/// The CRC-32C (Castagnoli) of RFC 3720, as used by Zarr and TensorBoard's files.
uint32_t crc32c(std::string_view bytes);

}  // namespace cytra::io
