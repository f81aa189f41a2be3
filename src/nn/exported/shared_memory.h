#pragma once
// Which values of a graph share memory. Include only from .cpp files of nn.
#include <vector>

#include "nn/exported/operator_call.h"

namespace cytra::nn {

/// The number of the value that a call changes, or of which its results are views; -1: none.
int first_value(const OperatorCall& op);
/// Whether a call changes a value in place.
bool changes(const OperatorCall& op);

/// The values of a graph that may share memory, by views and by changes in place. It errs on the
/// side of sharing: dropouts share in evaluation alone.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t values);
  /// Notes the graph's next call.
  void note(const OperatorCall& op, const std::vector<int>& reads, const std::vector<int>& writes);
  void join(int a, int b);
  /// A number of a value's memory, which those that may share it have, too.
  int of(int value) const;
  bool is_changed(int value) const { return at(value).is_changed; }
  /// Whether it is changed when there are views of it, or through one.
  bool is_changed_with_views(int value) const { return at(value).is_changed_with_views; }
  /// Whether there are such views that are copies where channels come last.
  bool needs_row_major() const { return needs_row_major_; }

 private:
  struct Memory {
    bool has_views = false, has_row_major_views = false, is_changed = false,
         is_changed_with_views = false;
  };
  const Memory& at(int value) const { return memories_[static_cast<std::size_t>(of(value))]; }
  std::vector<int> parents_;  // by value: another one of its memory; itself: that has the number
  std::vector<Memory> memories_;
  bool needs_row_major_ = false;
};

}  // namespace cytra::nn
