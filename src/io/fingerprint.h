#pragma once
// What tells contents apart. Against damage and mistakes, not against forgery.
#include <cstddef>
#include <string>
#include <string_view>

namespace cytra::io {

/// XXH3's 128 bits (https://xxhash.com) as 32 hexadecimal digits: equal for equal bytes, on every
/// machine.
std::string fingerprint(const void* data, std::size_t bytes);
std::string fingerprint(std::string_view text);

}  // namespace cytra::io
