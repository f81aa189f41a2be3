#pragma once
#include <memory>
#include <string>

#include "config/node.h"

namespace cytra::training {

struct Callback;

/// The name of the profiler that `trainer.profiler` asks for: no scope is around its own hooks.
inline constexpr const char* kProfilerName = "trainer.profiler";

/// What `trainer.profiler` means: "simple", "advanced" and "pytorch" are Lightning's words for
/// SimpleProfiler, AdvancedProfiler and PyTorchProfiler; a map is a component; null is none.
/// `dirpath`, where the profiler's options have none, is `folder`. Throws: ConfigError.
std::shared_ptr<Callback> make_profiler(const config::Node& given, const std::string& folder);

}  // namespace cytra::training
