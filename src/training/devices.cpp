#include "training/devices.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/strings.h"
#include "config/options.h"

namespace cytra::training {

using config::Kind;
using config::Node;

Devices Devices::of(const Node& node) {
  if (node.kind == Kind::integer && (node.integer > 0 || node.integer == -1))
    return {std::max<int64_t>(0, node.integer), {}};
  if (node.kind == Kind::string && in_small_letters(node.string) == "auto") return {0, {}};
  const auto& all = node.list;
  const bool are_numbers = !all.empty() && std::ranges::all_of(all, [](const Node& one) {
    return one.kind == Kind::integer && one.integer >= 0;
  });
  if (!are_numbers)
    config::throw_bad_value(node, "a number of devices, auto, or the numbers of GPUs: [0, 1]");
  Devices devices{std::ssize(all), {}};
  for (const Node& one : all) {
    if (std::ranges::count(devices.chosen, one.integer) > 0)
      throw ConfigError(
          "{}: GPU {} twice, expected another one for each process", node.where(), one.integer);
    devices.chosen.push_back(one.integer);
  }
  return devices;
}

void Devices::expect_there(int64_t gpus) const {
  for (const int64_t gpu : chosen) {
    if (gpu < gpus) continue;
    throw ConfigError(
        "trainer.devices=[{}]: {}",
        fmt::join(chosen, ","),
        gpus == 0 ? fmt::format("the device is the CPU, which has no numbers; expected how many "
                                "processes share it, as trainer.devices={}",
                                count)
                  : fmt::format(
                        "expected GPUs from 0 to {}, which this machine has (CUDA_VISIBLE_DEVICES)",
                        gpus - 1));
  }
}

}  // namespace cytra::training
