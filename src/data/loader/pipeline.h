#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "data/loader/cache.h"
#include "data/sample/sample.h"

namespace cytra::data {

/// The transform under way, for messages from another thread; null: none yet.
using CurrentTransform = std::atomic<const Transform*>;

struct LoaderOptions;
/// The cache that the options ask for; null: none.
std::shared_ptr<CacheManager> make_cache(const LoaderOptions& options);

/// Calls transform.apply(); its exceptions then name the transform.
void apply(const Transform& transform, Sample& sample, Rng& rng);

/// Makes a sample from an item of a data set. Transforms before the first random one are applied
/// once per image and the result is kept in the cache; the others are applied at each draw.
/// Thread-safe. Exceptions name the transform.
class Pipeline {
 public:
  /// Makes the pipeline. `cache` may be null. `is_shared`: the cache outlives this object, so its
  /// keys are made from the files and the transforms.
  Pipeline(std::vector<Sample> items,
           Transforms transforms,
           std::shared_ptr<CacheManager> cache,
           bool is_shared);
  const std::vector<Sample>& items() const { return items_; }
  int64_t draws() const { return draws_; }  // of one image
  /// The weights of the items; empty when all are equal.
  std::vector<double> weights() const;
  Sample load(std::size_t index, CurrentTransform& current) const;
  /// Applies the random transforms. It also reads what LoadImaged left for later and no transform
  /// has read.
  void transform(Sample& loaded, Rng& rng, CurrentTransform& current) const;

 private:
  void apply(
      std::size_t from, std::size_t to, Sample& sample, Rng& rng, CurrentTransform& current) const;
  std::string key_of(std::size_t index) const;
  std::string make_key(std::size_t index) const;

  std::vector<Sample> items_;
  Transforms transforms_;
  std::shared_ptr<CacheManager> cache_;
  bool is_shared_;
  std::size_t random_from_;  // the first random transform
  int64_t draws_ = 1;
  std::string prefix_;  // of cache keys: the transforms before the first random one
  mutable std::mutex mutex_;
  mutable std::vector<std::string> keys_;  // by item; empty: not made yet
};

}  // namespace cytra::data
