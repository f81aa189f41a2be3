#include "data/loader/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "base/error.h"
#include "base/lists.h"
#include "base/rng.h"

namespace cytra::data {
namespace {

std::size_t of_a_pass(const SamplerSpec& spec) {
  return spec.weights.empty() || spec.num_samples < 0 ? spec.items
                                                      : static_cast<std::size_t>(spec.num_samples);
}

std::size_t drawn(const SamplerSpec& spec) {
  return spec.images < 0 || spec.items == 0 ? of_a_pass(spec)
                                            : static_cast<std::size_t>(spec.images);
}

std::vector<std::size_t> with_replacement(const SamplerSpec& spec, Rng& rng) {
  std::vector<double> sums(spec.items);
  std::partial_sum(spec.weights.begin(), spec.weights.end(), sums.begin());
  // the last image with a weight: rounding must not lead beyond it
  const auto last = std::ranges::lower_bound(sums, sums.back());
  std::vector<std::size_t> images(of_a_pass(spec));
  for (std::size_t& image : images) {
    const auto place = std::upper_bound(sums.begin(), last, rng.uniform() * sums.back());
    image = static_cast<std::size_t>(place - sums.begin());
  }
  return images;
}

/// Chooses the images with the largest keys u^(1/w) (Efraimidis and Spirakis 2006).
std::vector<std::size_t> without_replacement(const SamplerSpec& spec, Rng& rng) {
  std::vector<std::pair<double, std::size_t>> keys;
  for (std::size_t i = 0; i < spec.items; ++i) {
    const double waiting = -std::log(1.0 - rng.uniform());
    if (spec.weights[i] > 0) keys.emplace_back(waiting / spec.weights[i], i);
  }
  std::ranges::sort(keys);
  std::vector<std::size_t> images;
  for (std::size_t i = 0; i < of_a_pass(spec); ++i) images.push_back(keys[i].second);
  return images;
}

std::vector<std::size_t> one_pass(const SamplerSpec& spec, Rng& rng) {
  if (!spec.weights.empty())
    return spec.replacement ? with_replacement(spec, rng) : without_replacement(spec, rng);
  std::vector<std::size_t> images(spec.items);
  std::iota(images.begin(), images.end(), std::size_t{0});
  for (std::size_t i = spec.shuffle ? images.size() : 0; i > 1; --i)  // Fisher-Yates
    std::swap(images[i - 1], images[rng.below(i)]);
  return images;
}

}  // namespace

void check(const SamplerSpec& spec) {
  if (spec.weights.empty()) return;
  std::size_t positive = 0;
  for (const double weight : spec.weights) {
    if (!(weight >= 0) || std::isinf(weight))
      throw ConfigError("an image has weight {}, expected a number from 0 on", weight);
    if (weight > 0) ++positive;
  }
  if (positive == 0) throw ConfigError("all images have weight 0, expected one above 0");
  if (!spec.replacement && of_a_pass(spec) > positive) {
    throw ConfigError(
        "data.num_samples: {} of {} images with a weight above 0, expected at most as many; or set "
        "data.replacement=true",
        of_a_pass(spec),
        positive);
  }
}

std::size_t count(const SamplerSpec& spec) {
  const auto world = static_cast<std::size_t>(spec.world_size);
  const auto rank = static_cast<std::size_t>(spec.rank);
  const std::size_t all = drawn(spec);
  if (spec.drop) return all / world;
  if (spec.pad) return (all + world - 1) / world;
  return all / world + (rank < all % world ? 1 : 0);
}

std::vector<std::size_t> order(const SamplerSpec& spec, uint64_t seed, int64_t epoch) {
  Rng rng(seed, static_cast<uint64_t>(epoch));
  std::vector<std::size_t> images = one_pass(spec, rng);
  while (images.size() < drawn(spec)) {
    const std::vector<std::size_t> again = one_pass(spec, rng);
    images.insert(images.end(), again.begin(), again.end());
  }
  images.resize(drawn(spec));
  if (spec.world_size == 1 || images.empty()) return images;
  std::vector<std::size_t> own(count(spec));
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::size_t place =
        static_cast<std::size_t>(spec.rank) + i * static_cast<std::size_t>(spec.world_size);
    own[i] = images[place % images.size()];
  }
  return own;
}

std::vector<uint32_t> repeats(const std::vector<std::size_t>& order) {
  std::unordered_map<std::size_t, uint32_t> seen;
  return mapped(order, [&](std::size_t image) { return seen[image]++; });
}

}  // namespace cytra::data
