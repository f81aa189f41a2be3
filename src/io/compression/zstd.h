#pragma once
// Compresses bytes by Zstandard.
#include <cstddef>
#include <string>
#include <vector>

namespace cytra::io {

std::vector<unsigned char> compress_zstd(const void* data, std::size_t bytes, int level = 1);
/// Decompresses. Throws: DataError `place: ...` unless the result has exactly `bytes` bytes.
void decompress_zstd(
    const void* data, std::size_t count, void* into, std::size_t bytes, const std::string& place);

}  // namespace cytra::io
