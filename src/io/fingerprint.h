#pragma once
// Fingerprints of contents, against damage and mistakes, not against forgery.
#include <cstddef>
#include <string>
#include <string_view>

namespace cytra::io {

/// The 128 bits of XXH3 (https://xxhash.com) as 32 hexadecimal digits, equal for equal bytes on
/// every machine.
std::string fingerprint(const void* data, std::size_t bytes);
std::string fingerprint(std::string_view text);

}  // namespace cytra::io
