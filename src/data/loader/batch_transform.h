#pragma once
// Random transforms of whole batches, on the device that the batch is on: data.transforms.batch.
// They have the names, options and random draws of the transforms of single images that they
// replace.
#include <cstdint>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "data/loader/batch.h"

namespace cytra::data {

/// A transform of a batch. Geometries are not changed, as the result is for training. Thread:
/// apply() must be const-safe.
struct BatchTransform {
  static constexpr const char* kKind = "transform of batches";
  virtual ~BatchTransform() = default;
  /// Changes the batch. rngs: a stream for each sample; a sample's result depends only on the
  /// sample and its stream, unless the transform mixes samples. Tensors are replaced, never
  /// written to.
  /// Throws: DataError, ConfigError.
  virtual void apply(Batch& batch, std::vector<Rng>& rngs) const = 0;
};

using BatchTransforms = std::vector<std::shared_ptr<BatchTransform>>;

/// Applies all transforms in order. keys: one per sample, a function of (seed, epoch, draw of the
/// sample); each transform draws from a stream of its own. No call waits for the device.
void apply_all(const BatchTransforms& transforms, Batch& batch, const std::vector<uint64_t>& keys);

}  // namespace cytra::data
