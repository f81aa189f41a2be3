#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "data/cache.h"
#include "data/sample.h"

namespace cytra::data {

/// The transform under way, for messages from another thread; null: none yet.
using Stage = std::atomic<const Transform*>;

struct LoaderOptions;
/// The cache that the options ask for; null: none.
std::shared_ptr<CacheManager> make_cache(const LoaderOptions& options);

/// transform.apply(); what it throws names the transform.
void apply(const Transform& transform, Sample& sample, Rng& rng);

/// From an item of a data set to a sample: what comes before the first random transform is done
/// once per image and kept in the cache, the rest at each draw. Thread-safe. What a transform
/// throws gets its name.
class Pipeline {
 public:
  /// `cache` may be null. `is_shared`: it outlives this object, so its keys are made of what the
  /// files and the transforms are.
  Pipeline(std::vector<Sample> items,
           Transforms transforms,
           std::shared_ptr<CacheManager> cache,
           bool is_shared);
  const std::vector<Sample>& items() const { return items_; }
  int64_t draws() const { return draws_; }  // of one image
  /// Of the items; empty when all weigh the same.
  std::vector<double> weights() const;
  Sample load(std::size_t index, Stage& stage) const;
  /// Reads what LoadImaged left for later and no transform asked for, too.
  void transform(Sample& loaded, Rng& rng, Stage& stage) const;

 private:
  void apply(std::size_t from, std::size_t to, Sample& sample, Rng& rng, Stage& stage) const;
  std::string key_of(std::size_t index) const;
  std::string make_key(std::size_t index) const;

  std::vector<Sample> items_;
  Transforms transforms_;
  std::shared_ptr<CacheManager> cache_;
  bool is_shared_;
  std::size_t random_from_;  // the first random transform
  int64_t draws_ = 1;
  std::string prefix_;  // of cache keys: what is done before the first random transform
  mutable std::mutex mutex_;
  mutable std::vector<std::string> keys_;  // by item; empty: not made yet
};

}  // namespace cytra::data
