#pragma once
// The common code of batch transforms. A transform is a struct with the options of the transform
// of single images (keys, prob, ...) and two functions:
//   auto draw_one(Rng& rng, at::IntArrayRef image) const;  // (C,[D,]H,W) of the first key
// at::Tensor on_batch(const at::Tensor& images, const std::vector<...>& drawn, size_t key) const;
// draw_one() draws as the transform of single images does after it decided, by rng.uniform() <
// prob, to act; on_batch() gets the samples to change, in float32, and keeps their shape.
#include <vector>

#include <ATen/ATen.h>

#include "base/error.h"
#include "data/batch_transforms/keyed_random.h"
#include "data/loader/batch_transform.h"

namespace cytra::data {

template <class T>
class PerBatch final : public BatchTransform {
 public:
  using Options = T;
  explicit PerBatch(const T& options) : options_(options) {}

  void apply(Batch& batch, std::vector<Rng>& rngs) const override {
    const std::vector<std::size_t> keys = present(batch);
    if (keys.empty()) return;
    const at::Tensor first = batch.at(options_.keys[keys[0]]);
    std::vector<int64_t> chosen;
    std::vector<decltype(options_.draw_one(rngs[0], first.sizes()))> drawn;
    for (std::size_t i = 0; i < rngs.size(); ++i) {
      if (rngs[i].uniform() >= options_.prob) continue;
      chosen.push_back(static_cast<int64_t>(i));
      drawn.push_back(options_.draw_one(rngs[i], first.sizes().slice(1)));
    }
    if (chosen.empty()) return;
    const bool all = std::ssize(chosen) == first.size(0);
    const at::Tensor index = to_device(at::tensor(chosen, at::kLong), first.device());
    for (const std::size_t k : keys) {
      at::Tensor& images = batch.tensors.at(options_.keys[k]);
      const at::Tensor before = images.to(at::kFloat);
      const at::Tensor part = all ? before : before.index_select(0, index);
      at::Tensor after;
      try {
        after = options_.on_batch(part, drawn, k);
      } catch (const DataError& error) {
        throw DataError("{}: '{}': {}", batch.ids.at(0), options_.keys[k], error.what());
      }
      images = all ? after : before.index_copy(0, index, after);
    }
  }

 private:
  std::vector<std::size_t> present(const Batch& batch) const {
    std::vector<std::size_t> keys;
    for (std::size_t k = 0; k < options_.keys.size(); ++k) {
      if (options_.allow_missing_keys && batch.tensors.count(options_.keys[k]) == 0) continue;
      batch.at(options_.keys[k]);  // throws
      keys.push_back(k);
    }
    return keys;
  }
  T options_;
};

/// A number for each sample, as (N,1,...) to be broadcast with the images.
inline at::Tensor per_sample(const std::vector<double>& numbers, const at::Tensor& images) {
  std::vector<int64_t> shape(static_cast<std::size_t>(images.dim()), 1);
  shape[0] = std::ssize(numbers);
  return to_device(at::tensor(numbers, at::kDouble).to(at::kFloat).reshape(shape), images.device());
}

}  // namespace cytra::data
