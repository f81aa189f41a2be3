#pragma once
#include <string>
#include <string_view>

namespace cytra::io {

/// The SHA-256 checksum (FIPS 180-4) as 64 lower-case hexadecimal digits.
std::string sha256(std::string_view bytes);

}  // namespace cytra::io
