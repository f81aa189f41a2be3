// YAML files: what is read is written and read again without a change.
#include "config/node.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace cytra;
  const std::string text(reinterpret_cast<const char*>(data), size);
  fuzz::run([&] {
    const config::Node node = config::parse_yaml(text, "fuzz.yaml");
    config::Node again;
    try {
      again = config::parse_yaml(config::to_yaml(node), "again.yaml");
    } catch (const ConfigError& error) {
      std::fprintf(stderr, "%s\n", error.what());
      fuzz::require(false, "what is written can be read");
    }
    fuzz::require(config::equal(node, again), "a round trip changes nothing");
    config::to_json(node);
  });
  return 0;
}
