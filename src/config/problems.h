#pragma once
#include <set>
#include <string>
#include <vector>

#include "config/node.h"

namespace cytra::config {

/// Everything that is wrong with a configuration, found in one go.
class Problems {
 public:
  /// `what` may begin with the place, as the message of an error does, or with a key below it.
  /// The same complaint about the same written text (a value that ${...} copied) counts once.
  void add(const Node& place, const std::string& what);
  /// Accepted, but without effect here.
  void note(const Node& place, const std::string& what);
  bool empty() const { return lines_.empty(); }
  /// More than are listed: a broken file of 100,000 keys ends soon.
  bool full() const { return more_; }
  const std::vector<std::string>& notes() const { return notes_; }
  /// One ConfigError with a line per problem.
  void throw_if_any() const;

 private:
  std::set<std::string> seen_;
  std::vector<std::string> lines_, notes_;
  bool more_ = false;
};

}  // namespace cytra::config
