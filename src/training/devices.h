#pragma once
#include <cstdint>
#include <vector>

#include "config/node.h"

namespace cytra::training {

/// The devices of a machine that a run uses: a number of them, or certain ones.
struct Devices {
  int64_t count = 1;            // 0: all it has
  std::vector<int64_t> chosen;  // their numbers, for the driver; empty: the first ones
  /// Reads Lightning's `devices`: 2, -1, auto, or [0, 2]. Throws: ConfigError.
  static Devices of(const config::Node& node);
  /// Throws: ConfigError when one is chosen that is not among the `gpus` of this machine (0: the
  /// device is the CPU).
  void expect_there(int64_t gpus) const;
};

}  // namespace cytra::training
