// bench_compose FOLDER OVERRIDE...: milliseconds for one composition of FOLDER/train.yaml,
// resolved.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "config/composer.h"
#include "config/run_config.h"

int main(int argc, char** argv) {
  using clock = std::chrono::steady_clock;
  const std::vector<std::string> overrides(argv + std::min(argc, 2), argv + argc);
  std::vector<double> times;
  std::size_t keys = 0;
  for (int i = 0; i < 50; ++i) {
    const auto begin = clock::now();
    const cytra::config::Composer composer({argc > 1 ? argv[1] : "configs"}, "train");
    cytra::config::Node root = composer.load("train", overrides).root;
    cytra::config::set_output_dir(root);
    keys = cytra::config::job_config(std::move(root)).map.size();
    times.push_back(std::chrono::duration<double, std::milli>(clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  std::printf("{\"milliseconds\": %.4f, \"keys\": %zu}\n", times[times.size() / 2], keys);
}
