#pragma once
// SHA-256 checksums (FIPS 180-4), as 64 lower-case hexadecimal digits.
#include <string>
#include <string_view>

namespace cytra {

std::string sha256(std::string_view bytes);
/// Throws: what throw_errno() throws.
std::string sha256_of_file(const std::string& path);

}  // namespace cytra
