#pragma once
#include <string>
#include <vector>

#include "base/tensor_fwd.h"
#include "training/task.h"

namespace cytra::training {

/// What a task finds in each image of a validation, without a second measurement: all that it
/// counts is taken from it after each image, and given back at the end.
class EachImage {
 public:
  explicit EachImage(Task& task) : task_(task) {}
  /// Whether the task tells anything.
  static bool tells(Task& task);
  /// Called after validation_step(); waits for no device. Only batches of one image are told.
  void take(const data::Batch& batch);
  /// The task has counted all images, as if nothing had been taken.
  void give_back() { put(all_); }
  /// The findings of all images that the task has counted, and of each of this process's first
  /// thousand.
  report::Findings findings();

 private:
  struct Counted {
    std::string image;
    std::vector<Tensor> sums;
    std::vector<std::vector<Tensor>> lists;
  };
  Counted taken();
  void put(const Counted& counted);

  Task& task_;
  Counted all_;
  std::vector<Counted> images_;
};

}  // namespace cytra::training
