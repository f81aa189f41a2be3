#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cytra::data {

/// The images of an epoch, and their order.
struct SamplerSpec {
  std::size_t items = 0;
  bool shuffle = false;
  /// The weights by which images are drawn, where not empty (each >= 0, not all 0): `num_samples`
  /// (-1: as many as items) of them. Follows: torch.utils.data.WeightedRandomSampler.
  std::vector<double> weights;
  int64_t num_samples = -1;
  bool replacement = true;
  /// The number of images of an epoch, over all processes: pass after pass, the last one cut; -1:
  /// one pass.
  int64_t images = -1;
  /// The number of this process, and of all. Each process takes every world_size-th image. Follows
  /// DistributedSampler: with `pad` all get equally many, using the first images again when the
  /// number is not divisible.
  int64_t rank = 0, world_size = 1;
  bool pad = true;
  bool drop = false;  // leaves those images out instead
};

/// Checks the weights. Throws: ConfigError for weights that can't be drawn from.
void check(const SamplerSpec& spec);
/// The number of images of one process in an epoch.
std::size_t count(const SamplerSpec& spec);
/// The order of images, equal for every process and run with this seed.
std::vector<std::size_t> order(const SamplerSpec& spec, uint64_t seed, int64_t epoch);

/// How often each image of the order came before.
std::vector<uint32_t> repeats(const std::vector<std::size_t>& order);

}  // namespace cytra::data
