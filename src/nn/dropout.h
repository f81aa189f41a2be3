#pragma once
// Dropout in training, and of a trained network whose predictions are sampled.
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace cytra::nn {

/// Within its scope this thread's networks drop values in evaluation, too, which makes a sample of
/// their predictions. `seed`: of torch's default generators, which it sets.
/// Source: Gal, Ghahramani, Dropout as a Bayesian approximation, arXiv:1506.02142.
class SampleDropout {
 public:
  explicit SampleDropout(uint64_t seed);
  ~SampleDropout();
  SampleDropout& operator=(SampleDropout&&) = delete;
  /// Whether anything was dropped.
  bool has_dropped() const { return has_dropped_; }

 private:
  friend bool drops(double share, bool is_training);
  SampleDropout* before_;
  bool has_dropped_ = false;
};

/// Whether a layer drops this share of its values now.
bool drops(double share, bool is_training);

/// x, of which a share of the values (with `channels`: of the channels) is zero where it drops()
/// now, and the others are larger by 1 / (1 - share).
at::Tensor dropout(const at::Tensor& x, double share, bool is_training, bool channels = false);

}  // namespace cytra::nn
