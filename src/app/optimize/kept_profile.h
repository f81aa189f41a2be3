#pragma once
// What `optimize --auto-optimize` wrote, when a training takes it.
#include "app/optimize/timed_pass.h"

namespace cytra::app {

/// How its files begin, before what wrote them.
constexpr const char* kProfileHead = "# @package _global_\n# Written by `optimize --auto-optimize`";

/// Where `performance` is such a file: forward and backward pass of an image with its settings are
/// timed again, in turn with the same without them (a validation, too, where it sets the windows of
/// one). Where they are slower, here and now, all of them are dropped, with a line: `run` and the
/// configuration then have what they would have with performance=default. Settings of the loader
/// alone are not timed. `make`: none: real_passes().
TrainConfig with_profile_that_holds(cli::Run& run,
                                    TrainConfig config,
                                    c10::Device device,
                                    MakePass make = {});

}  // namespace cytra::app
