#include "nn/exported/shared_memory.h"

#include <numeric>
#include <set>

namespace cytra::nn {
namespace {

using Names = std::set<std::string>;

/// Whether results may share the memory of the first tensor: torch does not declare all that do.
bool may_share(const OperatorCall& op) {
  static const Names kUndeclared{"alpha_dropout",
                                 "atleast_1d",
                                 "atleast_2d",
                                 "atleast_3d",
                                 "broadcast_tensors",
                                 "dropout",
                                 "einsum",
                                 "feature_dropout",
                                 "meshgrid",
                                 "type_as"};
  return changes(op) || op.gives_view() || kUndeclared.count(op.short_name()) > 0;
}

/// Whether a result is a view where its tensor lies in row-major order, and else a copy or none.
bool depends_on_order(const OperatorCall& op) {
  static const Names kNames{
      "view", "view_as", "reshape", "reshape_as", "flatten", "ravel", "contiguous", "unflatten"};
  return kNames.count(op.short_name()) > 0;
}

}  // namespace

int first_value(const OperatorCall& op) {
  for (const char* name : {"out", "self", "input"})
    if (op.has(name)) return op.value(name);
  return -1;
}

bool changes(const OperatorCall& op) {
  return op.changes_first() || op.has("out");
}

SharedMemory::SharedMemory(std::size_t values) : parents_(values), memories_(values) {
  std::iota(parents_.begin(), parents_.end(), 0);
}

void SharedMemory::note(const OperatorCall& op,
                        const std::vector<int>& reads,
                        const std::vector<int>& writes) {
  if (!may_share(op)) return;
  const int first = first_value(op);
  std::vector<int> sharing = first < 0 ? reads : std::vector<int>{first};
  for (const int value : writes)
    if (value >= 0) sharing.push_back(value);
  for (const int value : sharing) join(sharing[0], value);
  if (sharing.empty()) return;
  Memory& memory = memories_[static_cast<std::size_t>(of(sharing[0]))];
  if (changes(op)) {
    memory.is_changed = true;
    memory.is_changed_with_views = memory.is_changed_with_views || memory.has_views ||
                                   op.short_name() == "copy_";  // copy() has no derivative
    needs_row_major_ = needs_row_major_ || memory.has_row_major_views;
  } else {
    memory.has_views = true;
    memory.has_row_major_views = memory.has_row_major_views || depends_on_order(op);
  }
}

int SharedMemory::of(int value) const {
  while (parents_[static_cast<std::size_t>(value)] != value)
    value = parents_[static_cast<std::size_t>(value)];
  return value;
}

void SharedMemory::join(int a, int b) {
  const int to = of(a), from = of(b);
  if (to == from) return;
  parents_[static_cast<std::size_t>(from)] = to;
  Memory& all = memories_[static_cast<std::size_t>(to)];
  const Memory& more = memories_[static_cast<std::size_t>(from)];
  all.has_views = all.has_views || more.has_views;
  all.has_row_major_views = all.has_row_major_views || more.has_row_major_views;
  all.is_changed = all.is_changed || more.is_changed;
  all.is_changed_with_views = all.is_changed_with_views || more.is_changed_with_views;
}

}  // namespace cytra::nn
