#include "nn/plan_unet.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace cytra::nn {
namespace {

constexpr double kAnisotropy =
    3;                           // an axis is coarse when its spacing is this many times the others
constexpr double kShortest = 4;  // voxels of a feature map along an axis
constexpr int64_t kFirstFeatures = 32, kMostFeatures2d = 512, kMostFeatures3d = 320;
constexpr int64_t kLeastBatch = 2;
constexpr double kMostOfDataset = 0.05;
/// The number of values of one patch's feature maps that fit into 8 GB, with batches of this size.
struct Reference {
  double values, batch;
};
constexpr double kReferenceGb = 8;
constexpr Reference kReference2d{85e6, 12}, kReference3d{560e6, 2};

/// numpy.percentile: linear between the two nearest values.
double percentile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (place - std::floor(place));
}

template <class T>
std::vector<double> along(const std::vector<std::vector<T>>& of_images, std::size_t axis) {
  std::vector<double> values;
  for (const std::vector<T>& image : of_images) values.push_back(static_cast<double>(image[axis]));
  return values;
}

double product(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 1.0, std::multiplies<>());
}

std::vector<double> real_of(const Sizes& sizes) {
  return {sizes.begin(), sizes.end()};
}

/// Values of the feature maps that a training keeps of one patch: two convolutions per level down
/// and up, the upsampling, the logits.
double feature_values(const Topology& topology, const Sizes& features, int64_t outputs) {
  std::vector<double> size = real_of(topology.patch);
  double values = 0;
  for (std::size_t level = 0; level < features.size(); ++level) {
    for (std::size_t d = 0; d < size.size(); ++d)
      size[d] /= static_cast<double>(topology.strides[level][d]);
    const bool is_bottom = level + 1 == features.size();
    const double maps = static_cast<double>(features[level]) * (is_bottom ? 2 : 5) +
                        (level == 0 ? static_cast<double>(outputs) : 0);
    values += maps * product(size);
  }
  return values;
}

}  // namespace

std::vector<double> target_spacing(const DataFacts& data) {
  std::vector<double> target, shape;
  for (std::size_t d = 0; d < data.spacings.front().size(); ++d) {
    target.push_back(percentile(along(data.spacings, d), 0.5));
    shape.push_back(percentile(along(data.shapes, d), 0.5));
  }
  const auto coarse = static_cast<std::size_t>(std::ranges::max_element(target) - target.begin());
  double coarsest_other = 0, shortest_other = INFINITY;
  for (std::size_t d = 0; d < target.size(); ++d) {
    if (d == coarse) continue;
    coarsest_other = std::max(coarsest_other, target[d]);
    shortest_other = std::min(shortest_other, shape[d]);
  }
  if (target.size() == 3 && target[coarse] > kAnisotropy * coarsest_other &&
      shape[coarse] * kAnisotropy < shortest_other) {
    const double fine = percentile(along(data.spacings, coarse), 0.1);
    target[coarse] = fine < coarsest_other ? coarsest_other + 1e-5 : fine;
  }
  return target;
}

std::vector<double> median_shape(const DataFacts& data, const std::vector<double>& spacing) {
  std::vector<double> median;
  for (std::size_t d = 0; d < spacing.size(); ++d) {
    std::vector<double> sizes = along(data.shapes, d);
    for (std::size_t i = 0; i < sizes.size(); ++i)
      sizes[i] = std::nearbyint(data.spacings[i][d] / spacing[d] * sizes[i]);
    median.push_back(percentile(std::move(sizes), 0.5));
  }
  return median;
}

Topology topology_of(const std::vector<double>& spacing, const std::vector<double>& patch) {
  const std::size_t dims = spacing.size();
  std::vector<double> now = spacing, size = patch;
  Topology topology{{Sizes(dims, 1)}, {}, {}, Sizes(dims, 1)};
  Sizes kernel(dims, 1);
  for (;;) {
    double finest = INFINITY;
    for (std::size_t d = 0; d < dims; ++d) {
      if (size[d] >= 2 * kShortest) finest = std::min(finest, now[d]);
    }
    std::vector<std::size_t> halved;
    for (std::size_t d = 0; d < dims; ++d) {
      if (size[d] >= 2 * kShortest && now[d] / finest < 2) halved.push_back(d);
    }
    if (halved.empty() || (halved.size() == 1 && size[halved[0]] < 3 * kShortest)) break;
    const double least = *std::ranges::min_element(now);
    for (std::size_t d = 0; d < dims; ++d) {
      if (now[d] / least < 2) kernel[d] = 3;
    }
    Sizes stride(dims, 1);
    for (const std::size_t d : halved) {
      stride[d] = 2;
      topology.divisor[d] *= 2;
      now[d] *= 2;
      size[d] = std::ceil(size[d] / 2);
    }
    topology.strides.push_back(stride);
    topology.kernels.push_back(kernel);
  }
  topology.kernels.emplace_back(dims, 3);
  for (std::size_t d = 0; d < dims; ++d) {
    const auto unit = static_cast<double>(topology.divisor[d]);
    topology.patch.push_back(static_cast<int64_t>(std::ceil(patch[d] / unit) * unit));
  }
  return topology;
}

UNetPlan plan_unet(const DataFacts& data,
                   const std::vector<double>& spacing,
                   const std::vector<double>& median,
                   double memory_gb) {
  const std::size_t dims = spacing.size();
  const bool is_3d = dims == 3;
  const Reference reference = is_3d ? kReference3d : kReference2d;
  const double most = reference.values * memory_gb / kReferenceGb;

  // The search begins with a patch that is certainly too large, with sides of equal length in
  // space.
  const double volume = is_3d ? std::pow(256.0, 3) : std::pow(2048.0, 2);
  const double scale = std::pow(volume * product(spacing), 1.0 / static_cast<double>(dims));
  std::vector<double> patch;
  for (std::size_t d = 0; d < dims; ++d)
    patch.push_back(std::min(std::nearbyint(scale / spacing[d]), median[d]));

  UNetPlan plan;
  const auto set_topology = [&](const std::vector<double>& sizes) {
    plan.topology = topology_of(spacing, sizes);
    plan.features.clear();
    int64_t width = kFirstFeatures;
    for (std::size_t level = 0; level < plan.topology.strides.size(); ++level, width *= 2)
      plan.features.push_back(std::min(width, is_3d ? kMostFeatures3d : kMostFeatures2d));
    plan.values = feature_values(plan.topology, plan.features, data.outputs);
  };
  set_topology(patch);
  plan.first_patch = plan.topology.patch;
  while (plan.values * kLeastBatch / reference.batch > most) {
    std::size_t axis = 0;  // the longest beside the median image
    patch = real_of(plan.topology.patch);
    for (std::size_t d = 1; d < dims; ++d) {
      if (patch[d] / median[d] >= patch[axis] / median[axis]) axis = d;
    }
    // A smaller patch may have a smaller divisor, so that no size is left out.
    std::vector<double> smaller = patch;
    smaller[axis] -= static_cast<double>(plan.topology.divisor[axis]);
    patch[axis] -= static_cast<double>(topology_of(spacing, smaller).divisor[axis]);
    if (smaller[axis] < 0 || patch[axis] < kShortest) {
      throw ConfigError(
          "plan.memory_gb: {:.3g} GB are too few for any patch; expected more, or a smaller "
          "network that you choose yourself",
          memory_gb);
    }
    set_topology(patch);
  }
  double all = product(median) * static_cast<double>(data.shapes.size());
  const double fits = std::nearbyint(most / plan.values * reference.batch);
  const double share = std::nearbyint(all * kMostOfDataset / product(real_of(plan.topology.patch)));
  plan.batch_size = std::max(kLeastBatch, static_cast<int64_t>(std::min(fits, share)));
  return plan;
}

}  // namespace cytra::nn
