// Part of ops/labels/operations.h: keeps the largest components.
#include <algorithm>
#include <map>
#include <numeric>

#include <ATen/ATen.h>

#include "base/error.h"
#include "ops/labels/components.h"
#include "ops/labels/operations.h"

namespace cytra::ops {

at::Tensor KeepLargestConnectedComponent::operator()(const at::Tensor& image) const {
  const bool onehot = is_onehot.value_or(image.size(0) > 1);
  if (!onehot && image.size(0) != 1)
    throw DataError(std::to_string(image.size(0)) + " channels, expected 1 of labels");
  return onehot ? of_channels(image) : of_labels(image);
}

at::Tensor KeepLargestConnectedComponent::of_labels(const at::Tensor& image) const {
  const at::Tensor labels = image[0];
  at::Tensor treated = applied_labels.empty() ? labels.ne(0) : at::zeros_like(labels, at::kBool);
  for (const int64_t label : applied_labels) treated.logical_or_(labels.eq(label));
  // Components are searched in one value: the label, or 1 for all labels.
  const at::Tensor values = independent ? labels.masked_fill(treated.logical_not(), 0) : treated;
  return image.masked_fill(to_clear(values), 0);
}

at::Tensor KeepLargestConnectedComponent::of_channels(const at::Tensor& image) const {
  std::vector<int64_t> channels = applied_labels;
  for (int64_t c = 1; applied_labels.empty() && c < image.size(0); ++c) channels.push_back(c);
  for (const int64_t c : channels) {
    if (c < 0 || c >= image.size(0)) {
      throw DataError("applied_labels has " + std::to_string(c) + ", expected a channel below " +
                      std::to_string(image.size(0)));
    }
  }
  at::Tensor result = image.clone();
  at::Tensor together;
  if (!independent && !channels.empty())
    together = to_clear(image.index_select(0, at::tensor(channels)).eq(1).any(0));
  for (const int64_t c : channels)
    result[c].masked_fill_(independent ? to_clear(image[c].gt(0)) : together, 0);
  return result;
}

/// Where components of a value are not among its num_components largest.
at::Tensor KeepLargestConnectedComponent::to_clear(const at::Tensor& values) const {
  const Components found = connected_components(values, connectivity.value_or(0));
  const int32_t* component = found.labels.const_data_ptr<int32_t>();
  std::vector<int64_t> first(found.sizes.size(), -1);  // voxel of each component
  for (int64_t i = 0; i < values.numel(); ++i) {
    int64_t& voxel = first[static_cast<std::size_t>(component[i])];
    if (voxel < 0) voxel = i;
  }
  std::vector<std::size_t> order(found.sizes.size() - 1);  // largest first
  std::iota(order.rbegin(), order.rend(), std::size_t{1});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return found.sizes[a] > found.sizes[b]; });
  const at::Tensor flat = values.flatten().to(at::kDouble);
  const double* value = flat.const_data_ptr<double>();
  std::map<double, int64_t> kept;
  std::vector<bool> clear(found.sizes.size());
  for (const std::size_t c : order) clear[c] = kept[value[first[c]]]++ >= num_components;
  at::Tensor mask = at::empty(values.sizes(), at::kBool);
  bool* out = mask.mutable_data_ptr<bool>();
  for (int64_t i = 0; i < values.numel(); ++i)
    out[i] = clear[static_cast<std::size_t>(component[i])];
  return mask;
}

}  // namespace cytra::ops
