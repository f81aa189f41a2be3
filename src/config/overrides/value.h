#pragma once
// The text after `key=`: parsed, functions called. Used by overrides.cpp only.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/node.h"
#include "config/overrides/overrides.h"

namespace cytra::config {

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

/// The result of an element of the grammar: one value, or a sweep.
struct OverrideValue : TypedValue {
  std::optional<SweepValue> sweep;
};

/// Parses text[start..]. `functions`: NAME(...) is a call, and errors show the column in `text`;
/// else parentheses are text.
OverrideValue parse_override_value(const std::string& text,
                                   std::size_t start,
                                   const Origin& origin,
                                   bool functions);

}  // namespace cytra::config
