#pragma once
// Frames at a small scale first: windows whose result is certain there are not predicted again.
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "inference/predictor.h"
#include "inference/windowed_model.h"

namespace cytra::pipelines {

/// The confidence of a model in windows, from its logits (S,K,h,w) -> (S): the smallest
/// probability, over the pixels, of the pixel's class; 0 where the pixels have several classes, so
/// that edges are never taken from a smaller scale. For masks it is 0.5 at the threshold, and the
/// smallest of all channels.
at::Tensor confidence_of(const at::Tensor& logits, const ops::Finish& finish);

class EarlyExit {
 public:
  /// `scales`: ascending, below 1. Throws: ConfigError for a model whose values are no
  /// probabilities.
  EarlyExit(const inference::Predictor& predictor,
            double min_confidence,
            std::vector<double> scales);
  /// Predicts images of one size, as Predictor::run() does. A window that was certain at the
  /// previous scale keeps the logits from there. Throws: DataError, MemoryError.
  std::vector<at::Tensor> predict(const std::vector<const inference::ModelInput*>& inputs);
  // The windows of the full scale, and those among them that the model did not compute there.
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
