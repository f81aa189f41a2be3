// Annotations; the first byte chooses between the formats that extensions tell apart.
#include "tests/fuzz/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const char* names[] = {"a.json", "a.txt", "a.xml", "a.zip"};
  const std::string_view rest = bytes.substr(size > 0 ? 1 : 0);
  return cytra::fuzz::run_file(
      names[size > 0 ? data[0] % 4 : 0], rest, cytra::io::check_annotations);
}
