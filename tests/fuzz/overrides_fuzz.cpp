// Words of the command line, parsed and expanded as a sweep.
#include "config/overrides/overrides.h"
#include "config/overrides/sweep.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace cytra;
  const std::string text(reinterpret_cast<const char*>(data), size);
  fuzz::run([&] {
    const config::Override override = config::parse_override(text);
    const auto jobs = config::sweep_jobs({override}, {}, [](const std::string&) {
      return std::vector<std::string>{"adam", "sgd"};
    });
    // What a job is told composes to one value.
    for (std::size_t i = 0; i < jobs.size() && i < 3; ++i) {
      for (const std::string& word : jobs[i])
        fuzz::require(config::parse_override(word).sweep == config::Override::Sweep::none,
                      "a job gets one value");
    }
  });
  return 0;
}
