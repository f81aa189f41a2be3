#pragma once
#include <memory>
#include <vector>

#include "training/callback.h"

namespace cytra::training {

/// The weights to be used (averages, say) are in the model while this lives.
class SwappedIn {
 public:
  /// Throws: what a swap_in() throws; the earlier ones are undone then.
  SwappedIn(const std::vector<std::shared_ptr<Callback>>& callbacks, Task& task)
      : callbacks_(callbacks), task_(task) {
    try {
      for (; count_ < callbacks_.size(); ++count_) callbacks_[count_]->swap_in(task_);
    } catch (...) {
      swap_out();
      throw;
    }
  }
  ~SwappedIn() { swap_out(); }
  SwappedIn& operator=(SwappedIn&&) = delete;

 private:
  void swap_out() noexcept {  // the last first: where several average, each gets back what it gave
    while (count_ > 0) callbacks_[--count_]->swap_out(task_);
  }
  const std::vector<std::shared_ptr<Callback>>& callbacks_;
  Task& task_;
  std::size_t count_ = 0;
};

}  // namespace cytra::training
