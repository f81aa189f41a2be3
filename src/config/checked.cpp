#include "config/checked.h"

#include "base/strings.h"

namespace cytra::config {

std::string OptionChecker::name_of(const char* key) const {
  return place_.empty() ? key : place_ + "." + key;
}

void OptionChecker::add(const char* key, const std::string& what) {
  if (!what.empty()) lines_.push_back(name_of(key) + ": " + what);
}

void OptionChecker::throw_if_any() const {
  if (!lines_.empty()) throw ConfigError(join(lines_, "\n"));
}

}  // namespace cytra::config
