#include "io/compression/crc32c.h"

#include <array>
#include <cstring>

namespace cytra::io {

uint32_t crc32c(std::string_view bytes) {
  using Tables = std::array<std::array<uint32_t, 256>, 8>;
  static const Tables kTables = [] {  // eight bytes at a time
    Tables tables{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t crc = i;
      for (int k = 0; k < 8; ++k) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
      tables[0][i] = crc;
    }
    for (std::size_t i = 0; i < 256; ++i) {
      for (std::size_t k = 1; k < 8; ++k)
        tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 0xff];
    }
    return tables;
  }();
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t count = bytes.size();
  uint32_t crc = ~0U;
  for (; count >= 8; data += 8, count -= 8) {
    uint32_t low = 0, high = 0;  // little-endian, as every machine LibTorch runs on
    std::memcpy(&low, data, sizeof low);
    std::memcpy(&high, data + 4, sizeof high);
    low ^= crc;
    crc = kTables[7][low & 0xff] ^ kTables[6][low >> 8 & 0xff] ^ kTables[5][low >> 16 & 0xff] ^
          kTables[4][low >> 24] ^ kTables[3][high & 0xff] ^ kTables[2][high >> 8 & 0xff] ^
          kTables[1][high >> 16 & 0xff] ^ kTables[0][high >> 24];
  }
  for (; count > 0; ++data, --count) crc = crc >> 8 ^ kTables[0][(crc ^ *data) & 0xff];
  return ~crc;
}

}  // namespace cytra::io
