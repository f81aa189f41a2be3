#include "config/problems.h"

#include "base/error.h"
#include "base/strings.h"

namespace cytra::config {

namespace {

/// Whether a message begins with a place below `place`: "FILE:LINE:COLUMN: PATH.KEY: ...".
bool names_a_place_below(const std::string& message, const Node& place) {
  const std::size_t end = message.find(": " + place.path + ".");
  if (place.path.empty() || end == std::string::npos || end == 0) return false;
  const std::string origin = message.substr(0, end);
  return starts_with(origin, "command line '") ||
         (origin.find(": ") == std::string::npos && origin.back() >= '0' && origin.back() <= '9');
}

}  // namespace

void Problems::add(const Node& place, const std::string& message) {
  const std::string own_place = names_a_place_below(message, place) ? "" : place.where() + ": ";
  const std::string what =
      starts_with(message, own_place) ? message.substr(own_place.size()) : message;
  // One override may set several keys to the same wrong value: the last key counts, the path to it
  // does not.
  const std::string key = place.path.substr(place.path.rfind('.') + 1);
  if (!seen_.insert(place.origin.text() + "\n" + key + "\n" + what).second) return;
  if (lines_.size() == 50) {
    more_ = true;
  } else {
    lines_.push_back(own_place + what);
  }
}

void Problems::note(const Node& place, const std::string& what) {
  notes_.push_back((place.path.empty() ? place.where() : place.path) + ": " + what);
}

void Problems::throw_if_any() const {
  if (empty()) return;
  throw ConfigError(join(lines_, "\n") + (more_ ? "\n... and more; mend these first" : ""));
}

}  // namespace cytra::config
