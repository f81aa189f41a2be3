#pragma once
#include <functional>
#include <string>
#include <vector>

namespace cytra::cli {

/// All mistakes of a command line, a line each. Composing stops at the first wrong override, so
/// `check`, which throws ConfigError for what it finds, is tried without each that `first` and its
/// successors name. What a section that is left out would have explained is not told.
std::string all_mistakes(const std::string& first,
                         std::vector<std::string> overrides,
                         const std::function<void(const std::vector<std::string>&)>& check);

}  // namespace cytra::cli
