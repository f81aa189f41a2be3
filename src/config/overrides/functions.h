#pragma once
// The functions that a value may call: int(), choice(), range() and others.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "config/overrides/value.h"

namespace cytra::config {

struct FunctionCall {
  std::string name;
  std::vector<OverrideValue> arguments;
  std::vector<std::pair<std::string, OverrideValue>> named;
  uint64_t seed;  // of shuffle()
};

bool is_function(std::string_view name);
std::vector<std::string> function_names();

/// Calls a function. Throws: std::invalid_argument with `what is wrong, expected ...`.
OverrideValue call_function(FunctionCall call);

/// Permutes the items; `seed` decides how.
template <class T>
void shuffle(std::vector<T>& items, uint64_t seed) {
  Rng rng(seed);
  for (std::size_t i = items.size(); i > 1; --i)
    std::swap(items[i - 1], items[static_cast<std::size_t>(rng.below(i))]);
}

}  // namespace cytra::config
