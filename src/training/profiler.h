#pragma once
#include <memory>
#include <string>
#include <vector>

#include "config/node.h"

namespace cytra::training {

struct Callback;

/// The name of the profiler that `trainer.profiler` asks for: its own hooks are in no scope.
inline constexpr const char* kProfilerName = "trainer.profiler";

/// What `trainer.profiler` and `performance.forbid_transfers` ("": null) ask for. "simple",
/// "advanced" and "pytorch" are Lightning's words for SimpleProfiler, AdvancedProfiler and
/// PyTorchProfiler, "transfers" is TransferProfiler; a map is a component; null is none. `dirpath`,
/// where the profiler's options have none, is `folder`. Throws: ConfigError.
std::vector<std::shared_ptr<Callback>> make_profilers(const config::Node& profiler,
                                                      const std::string& folder,
                                                      const std::string& forbid_transfers = "");

}  // namespace cytra::training
