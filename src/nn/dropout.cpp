#include "nn/dropout.h"

#include <mutex>

#include <ATen/ATen.h>

namespace cytra::nn {
namespace {

thread_local SampleDropout* sampling = nullptr;

/// Held by the thread that samples: all threads draw from the same generators.
std::recursive_mutex generators;

}  // namespace

SampleDropout::SampleDropout(uint64_t seed) : before_(sampling) {
  std::unique_lock lock(generators);
  at::manual_seed(seed);
  lock.release();  // until the destructor
  sampling = this;
}

SampleDropout::~SampleDropout() {
  sampling = before_;
  generators.unlock();
}

bool drops(double share, bool is_training) {
  if (share <= 0) return false;
  if (sampling != nullptr) sampling->has_dropped_ = true;
  return is_training || sampling != nullptr;
}

at::Tensor dropout(const at::Tensor& x, double share, bool is_training, bool channels) {
  if (!drops(share, is_training)) return x;
  return channels ? at::feature_dropout(x, share, true) : at::dropout(x, share, true);
}

}  // namespace cytra::nn
