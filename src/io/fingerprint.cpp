#include "io/fingerprint.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace cytra::io {

std::string fingerprint(const void* data, std::size_t bytes) {
  const XXH128_hash_t hash = XXH3_128bits(data, bytes);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string fingerprint(std::string_view text) {
  return fingerprint(text.data(), text.size());
}

}  // namespace cytra::io
