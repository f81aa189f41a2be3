// Part of ops/labels/operations.h: clears objects of few voxels.
#include <algorithm>
#include <unordered_map>

#include <ATen/ATen.h>

#include "base/error.h"
#include "ops/labels/components.h"
#include "ops/labels/volume.h"

namespace cytra::ops {
namespace {

/// Calls change(begin, end, value) for each run of equal values.
template <class T, class Change>
void for_runs(const T* data, int64_t count, const Change& change) {
  for (int64_t i = 0; i < count;) {
    const int64_t begin = i++;
    while (i < count && data[i] == data[begin]) ++i;
    change(begin, i, data[begin]);
  }
}

/// Clears objects that have fewer voxels than `smallest`, where each has a number; dense, in
/// place.
template <class T>
void clear_numbers(at::Tensor& labels, double smallest) {
  T* data = labels.mutable_data_ptr<T>();
  std::unordered_map<T, int64_t> sizes;
  for_runs(data, labels.numel(), [&](int64_t begin, int64_t end, T number) {
    if (!is_nan(number)) sizes[number] += end - begin;
  });
  for_runs(data, labels.numel(), [&](int64_t begin, int64_t end, T number) {
    if (is_nan(number) || static_cast<double>(sizes[number]) < smallest)
      std::fill(data + begin, data + end, T{0});
  });
}

/// Where components of a mask have fewer voxels than `smallest`.
at::Tensor small_components(const at::Tensor& mask, int64_t connectivity, double smallest) {
  const Components found = connected_components(mask, connectivity);
  std::vector<bool> is_small(found.sizes.size());
  for (std::size_t c = 1; c < is_small.size(); ++c)
    is_small[c] = static_cast<double>(found.sizes[c]) < smallest;
  const int32_t* label = found.labels.const_data_ptr<int32_t>();
  at::Tensor small = at::empty(mask.sizes(), at::kBool);
  bool* out = small.mutable_data_ptr<bool>();
  for (int64_t i = 0; i < mask.numel(); ++i) out[i] = is_small[static_cast<std::size_t>(label[i])];
  return small;
}

}  // namespace

at::Tensor RemoveSmallObjects::operator()(const at::Tensor& image) const {
  if (image.size(0) != 1)
    throw DataError(std::to_string(image.size(0)) + " channels, expected 1 of labels");
  const double least = smallest(image.dim() - 1);
  if (image.numel() == 0) return image;
  if (!independent_channels || image.max().item<double>() <= 1) {
    const at::Tensor mask = independent_channels ? image[0].ne(0) : image[0].gt(0);
    const int64_t reach = std::min(connectivity.value_or(0), mask.dim());
    return image.masked_fill(small_components(mask, reach, least).unsqueeze(0), 0);
  }
  const bool is_integral = at::isIntegralType(image.scalar_type(), /*includeBool=*/false);
  at::Tensor labels =
      image.to(is_integral ? at::kInt : at::kFloat, /*non_blocking=*/false, /*copy=*/true)
          .contiguous();
  is_integral ? clear_numbers<int32_t>(labels, least) : clear_numbers<float>(labels, least);
  return labels.to(image.scalar_type());
}

double RemoveSmallObjects::smallest(int64_t dims) const {
  if (by_measure && pixdim.size() != 1 && static_cast<int64_t>(pixdim.size()) != dims) {
    throw DataError(std::to_string(dims) + " spatial dimensions, expected as many in pixdim, or 1");
  }
  double volume = 1;
  for (int64_t d = 0; by_measure && d < dims; ++d)
    volume *= pixdim[pixdim.size() == 1 ? 0 : static_cast<std::size_t>(d)];
  return min_size / volume;
}

}  // namespace cytra::ops
