#pragma once
#include <set>
#include <string>
#include <vector>

#include "config/node.h"

namespace cytra::config {

/// Collects all problems of a configuration, so that they are reported together.
class Problems {
 public:
  /// Adds a problem. `what` may begin with the place, as the message of an error does, or with a
  /// key below it. A repeated message about the same written text (a value that ${...} copied)
  /// counts once.
  void add(const Node& place, const std::string& what);
  /// Notes a value that is accepted, but has no effect here.
  void note(const Node& place, const std::string& what);
  bool empty() const { return lines_.empty(); }
  /// Whether there are more problems than are listed: checking a broken file of 100,000 keys ends
  /// early.
  bool full() const { return more_; }
  const std::vector<std::string>& notes() const { return notes_; }
  /// Throws: ConfigError with a line per problem.
  void throw_if_any() const;

 private:
  std::set<std::string> seen_;
  std::vector<std::string> lines_, notes_;
  bool more_ = false;
};

}  // namespace cytra::config
