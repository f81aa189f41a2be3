// Manifests; the first byte chooses between .csv and .tsv.
#include "tests/fuzz/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const char* name = size > 0 && data[0] % 2 == 0 ? "a.csv" : "a.tsv";
  return cytra::fuzz::run_file(name, bytes, cytra::io::check_table);
}
