#include "config/problems.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/strings.h"

namespace cytra::config {

namespace {

/// Whether a message begins with a place below `place`: "FILE:LINE:COLUMN: PATH.KEY: ...".
bool names_a_place_below(const std::string& message, const Node& place) {
  const std::size_t end = message.find(": " + place.path + ".");
  if (place.path.empty() || end == std::string::npos || end == 0) return false;
  const std::string origin = message.substr(0, end);
  return origin.starts_with("command line '") ||
         (origin.find(": ") == std::string::npos && origin.back() >= '0' && origin.back() <= '9');
}

/// The value below `place` that a message "KEY: ..." or "BLOCK.KEY=3: ..." names, and the rest of
/// the message.
std::pair<const Node*, std::string> named_below(const Node& place, const std::string& message) {
  const std::size_t end = message.find(": ");
  if (end == std::string::npos) return {nullptr, ""};
  const std::string path = message.substr(0, std::min(end, message.find('=')));
  const std::size_t dot = path.rfind('.');
  const bool is_here = dot == std::string::npos || place.path.ends_with(path.substr(0, dot));
  const Node* child = is_here ? place.find_direct(path.substr(dot + 1)) : nullptr;
  return {child, child == nullptr || child->path.empty() ? message : message.substr(end + 2)};
}

}  // namespace

void Problems::add(const Node& place, const std::string& message) {
  if (const auto [child, said] = named_below(place, message); child != nullptr)
    return add(*child, said);
  const std::string own_place = names_a_place_below(message, place) ? "" : place.where() + ": ";
  const std::string what =
      message.starts_with(own_place) ? message.substr(own_place.size()) : message;
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
  throw ConfigError(join(lines_, "\n") + (more_ ? "\n... and more; correct these first" : ""));
}

}  // namespace cytra::config
