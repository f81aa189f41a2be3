#pragma once
// The text after `key=`: parsed, functions called. Used by overrides.cpp alone.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "config/node.h"
#include "config/overrides/overrides.h"

namespace cytra::config {

constexpr std::size_t max_sweep_values = 10'000;

/// A value and how it was typed; "" when a function made it.
struct TypedValue {
  Node node;
  std::string text;
};

struct SweepValue {
  Override::Sweep kind = Override::Sweep::choice;
  std::vector<TypedValue> choices;            // simple, choice
  Node start, stop, step;                     // range; interval has no step
  bool shuffled = false;                      // simple, choice, range
  uint64_t seed = 0;                          // of the shuffling
  std::vector<std::string> include, exclude;  // glob
};

/// What an element of the grammar gives: one value, or a sweep.
struct OverrideValue : TypedValue {
  std::optional<SweepValue> sweep;
};

struct FunctionCall {
  std::string name;
  std::vector<OverrideValue> arguments;
  std::vector<std::pair<std::string, OverrideValue>> named;
  uint64_t seed;  // of shuffle()
};

bool is_number(const Node& node);     // as to Python, true and false are numbers
double number_of(const Node& node);   // of such a node
std::string shown(const Node& node);  // for messages: quoted, not too long
/// The node as another kind, lists and maps item by item. Throws: std::invalid_argument.
Node cast(const Node& node, Kind kind);

bool is_function(std::string_view name);
std::vector<std::string> function_names();

/// Throws: std::invalid_argument with `what is wrong, expected ...`.
OverrideValue call_function(FunctionCall call);

/// The values of a range, in order. Throws: std::invalid_argument (step 0, not finite, more than
/// max_sweep_values).
std::vector<Node> range_values(const SweepValue& range);

/// A permutation that `seed` decides.
template <class T>
void shuffle(std::vector<T>& items, uint64_t seed) {
  Rng rng(seed);
  for (std::size_t i = items.size(); i > 1; --i)
    std::swap(items[i - 1], items[static_cast<std::size_t>(rng.below(i))]);
}

/// Parses text[start..]. `functions`: NAME(...) is a call, and errors show the column in `text`;
/// else parentheses are text.
OverrideValue parse_override_value(const std::string& text,
                                   std::size_t start,
                                   const Origin& origin,
                                   bool functions);

}  // namespace cytra::config
