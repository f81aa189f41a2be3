#pragma once
// Bytes made smaller by Zstandard.
#include <cstddef>
#include <string>
#include <vector>

namespace cytra::io {

std::vector<unsigned char> compress_zstd(const void* data, std::size_t bytes, int level = 1);
/// Throws: DataError `place: ...` unless that gives exactly `bytes` bytes.
void decompress_zstd(
    const void* data, std::size_t count, void* into, std::size_t bytes, const std::string& place);

}  // namespace cytra::io
