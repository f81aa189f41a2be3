#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "base/tensor_fwd.h"

namespace cytra::inference {

/// Runs a model on batches that fit the device. Where memory runs out, it continues with half as
/// many windows, from the failed ones on, and later tries more again. Thread: several at once.
class AdaptiveBatch {
 public:
  using Run = std::function<std::vector<Tensor>(const Tensor& windows)>;
  /// Calls run(windows), in parts if needed. Throws: what `run` throws, also where memory does not
  /// suffice for one window; Interrupted within a BreakableWork.
  std::vector<Tensor> operator()(const Run& run, const Tensor& windows);

 private:
  int64_t now(int64_t wanted);
  void fits(int64_t count);
  void fails(int64_t count);
  std::mutex mutex_;
  int64_t limit_ = INT64_MAX;  // windows that fit
  int64_t passes_ = 0;         // since it was lowered
};

}  // namespace cytra::inference
