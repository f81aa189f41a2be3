#include "config/checked.h"

#include <algorithm>

#include "base/other_names.h"
#include "base/strings.h"
#include "config/schema.h"

namespace cytra::config {

void OptionChecker::check_choice(const char* key,
                                 const std::optional<std::string>& value,
                                 const Choices& choices) {
  if (!value || std::ranges::find(choices, *value) != choices.end()) return;
  fail(key,
       "expected one of " + join(choices, ", ") + ", got '" + *value + "'." +
           near_hint(*value, choices));
}

std::string OptionChecker::name_of(const char* key) const {
  return place_.empty() ? key : place_ + "." + key;
}

void OptionChecker::check_range(const char* key, double value, double low, double high) {
  if (value >= low && value <= high) return;  // NaN fails too
  fail(key,
       "expected a value from " + bound_text(low) + " to " + bound_text(high) + ", got " +
           bound_text(value));
}

void OptionChecker::fail(const char* key, const std::string& what) {
  lines_.push_back(name_of(key) + ": " + what);
}

void OptionChecker::throw_if_any() const {
  if (!lines_.empty()) throw ConfigError(join(lines_, "\n"));
}

}  // namespace cytra::config
