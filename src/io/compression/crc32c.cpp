#include "io/compression/crc32c.h"

#include <isa-l/crc.h>

namespace cytra::io {

uint32_t crc32c(std::string_view bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // ISA-L takes an int
  uint32_t crc = ~0U;
  for (std::size_t at = 0; at < bytes.size(); at += kMost) {
    const std::string_view part = bytes.substr(at, kMost);
    auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(part.data()));
    crc = crc32_iscsi(data, static_cast<int>(part.size()), crc);
  }
  return ~crc;
}

}  // namespace cytra::io
