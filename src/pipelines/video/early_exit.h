#pragma once
// Frames at a small scale first: what the model is sure of there is not predicted again.
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "inference/predictor.h"
#include "inference/windowed_model.h"

namespace cytra::pipelines {

/// How sure a model is of windows, by its logits (S,K,h,w) -> (S): the least of the pixels'
/// probabilities of the class that each takes; 0 where these are not all of one class: an edge is
/// never taken from a smaller scale. Of masks 0.5 at the threshold, and the least of all channels.
at::Tensor confidence_of(const at::Tensor& logits, const ops::Finish& finish);

class EarlyExit {
 public:
  /// `scales`: ascending, below 1. Throws: ConfigError for a model whose values are no
  /// probabilities.
  EarlyExit(const inference::Predictor& predictor,
            double min_confidence,
            std::vector<double> scales);
  /// Images of one size: what Predictor::run() gives. A window that was sure at the scale before
  /// keeps the logits of there. Throws: DataError, MemoryError.
  std::vector<at::Tensor> predict(const std::vector<const inference::ModelInput*>& inputs);
  // Windows of the whole scale, and those that the model did not see there.
  int64_t windows() const { return windows_; }
  int64_t skipped() const { return skipped_; }

 private:
  std::vector<at::Tensor> forward(const at::Tensor& batch) const;
  at::Tensor forward_unsure(const at::Tensor& batch, int64_t channels, bool is_whole);
  at::Tensor predict_scale(const std::string& id,
                           const at::Tensor& image,
                           const at::Tensor& logits,
                           bool is_whole);
  const inference::Predictor& predictor_;
  const double min_confidence_;
  const std::vector<double> scales_;
  int64_t windows_ = 0, skipped_ = 0;
};

}  // namespace cytra::pipelines
