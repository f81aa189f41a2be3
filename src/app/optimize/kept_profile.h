#pragma once
// Checks settings that `optimize --auto-optimize` wrote, when a training uses them.
#include "app/optimize/timed_pass.h"

namespace cytra::app {

/// The beginning of its files; what wrote them follows.
constexpr const char* kProfileHead = "# @package _global_\n# Written by `optimize --auto-optimize`";

/// Checks that the settings of such a file are still faster, where `performance` is one: forward
/// and backward pass of an image are timed again, in turn with and without the settings (a
/// validation, too, where the file sets its windows). Where they are slower on this machine now,
/// all of them are dropped, with a line: `run` and the configuration then have the values of
/// performance=default. Settings of the loader alone are not timed. `make`: real_passes() where
/// empty.
TrainConfig with_profile_that_holds(cli::Run& run,
                                    TrainConfig config,
                                    c10::Device device,
                                    MakePass make = {});

}  // namespace cytra::app
