// PNG, with the checksums set right first, or hardly an input came through.
#include <zlib.h>

#include "tests/fuzz/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  for (std::size_t at = 8; at + 12 <= file.size();) {
    std::size_t part = 0;
    for (std::size_t i = 0; i < 4; ++i) part = part << 8 | static_cast<unsigned char>(file[at + i]);
    if (part > file.size() - at - 12) break;
    const auto crc = ::crc32(
        0, reinterpret_cast<const Bytef*>(file.data() + at + 4), static_cast<uInt>(part + 4));
    for (std::size_t i = 0; i < 4; ++i)
      file[at + 8 + part + i] = static_cast<char>(crc >> (24 - 8 * i));
    at += part + 12;
  }
  return cytra::fuzz::run_image(
      "a.png", reinterpret_cast<const uint8_t*>(file.data()), file.size());
}
