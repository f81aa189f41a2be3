#pragma once
#include <functional>

namespace CLI {
class App;
}

namespace cytra::cli {

/// Runs a program without a configuration: `work`, once the flags of `app` and those that every
/// program has are read. Returns the exit code; never throws.
int run_small(CLI::App& app, int argc, char** argv, const std::function<void(bool json)>& work);

}  // namespace cytra::cli
