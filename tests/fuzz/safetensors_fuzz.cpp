// Weights: the input is the header and what follows it, without the length in front.
#include <algorithm>

#include "tests/fuzz/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const uint64_t length = std::min(bytes.rfind('}'), bytes.size() - 1) + 1;
  const std::string file = std::string(reinterpret_cast<const char*>(&length), 8) + bytes;
  return cytra::fuzz::run_file(
      "a.safetensors", file, cytra::io::check_weights<cytra::io::SafetensorsFile>);
}
