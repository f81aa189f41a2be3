// WebP.
#include "tests/fuzz/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  return cytra::fuzz::run_image("a.webp", data, size);
}
