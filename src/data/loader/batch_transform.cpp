#include "data/loader/batch_transform.h"

#include <stdexcept>

#include <ATen/ATen.h>

namespace cytra::data {

void apply_all(const BatchTransforms& transforms, Batch& batch, const std::vector<uint64_t>& keys) {
  if (keys.size() != batch.ids.size())
    throw std::logic_error("a batch needs a key for each of its samples");
  for (std::size_t t = 0; t < transforms.size(); ++t) {
    std::vector<Rng> rngs;
    for (const uint64_t key : keys) rngs.emplace_back(key, t);
    transforms[t]->apply(batch, rngs);
  }
}

}  // namespace cytra::data
