// Weights of PyTorch: ZIP archives, and the older format, whose pickles no checksum or directory
// hides.
#include "tests/fuzz/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  return cytra::fuzz::run_file("a.pth", bytes, cytra::io::check_weights<cytra::io::TorchFile>);
}
