#include "nn/losses/channels.h"

#include <map>
#include <mutex>
#include <tuple>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace cytra::nn {
namespace {

/// Numbers of the options, on the device and in the type of `values`. They are cached, since each
/// copy would make the host wait for a GPU.
at::Tensor numbers_like(const std::vector<double>& numbers, const at::Tensor& values) {
  using Key = std::tuple<std::vector<double>, std::string, at::ScalarType>;
  static std::mutex mutex;
  static auto& kept = *new std::map<Key, at::Tensor>;  // outlives what frees a GPU's memory
  const std::lock_guard lock(mutex);
  at::Tensor& known = kept[{numbers, values.device().str(), values.scalar_type()}];
  if (!known.defined()) {
    const c10::InferenceMode no_inference(false);  // a training may use it, too
    known = at::tensor(numbers, at::kDouble)
                .to(at::TensorOptions(values.device()).dtype(values.scalar_type()));
  }
  return known;
}

}  // namespace

at::Tensor ReducedOptions::reduced(const at::Tensor& values, const at::Tensor& mask) const {
  const at::Tensor counted = mask.defined() ? values * mask : values;
  if (reduction == "sum") return counted.sum();
  return mask.defined() ? counted.sum() / mask.expand_as(values).sum().clamp_min(1) : values.mean();
}

void ChannelOptions::check() const {
  if (sigmoid.value_or(false) && softmax.value_or(false))
    throw ConfigError("choose sigmoid or softmax, not both");
}

Channels ChannelOptions::channels(const LossInput& in) const {
  const auto& [logits, target, mask] = in;
  const bool is_exclusive = softmax.value_or(false) && logits.size(1) > 1;
  const at::Tensor prediction = sigmoid.value_or(false) ? at::sigmoid(logits)
                                : is_exclusive          ? at::softmax(logits, 1)
                                                        : logits;
  Channels counted{counted_channels(prediction, include_background),
                   counted_channels(truth_of(in, to_onehot_y.value_or(false)), include_background)};
  if (mask.defined()) counted = {counted.prediction * mask, counted.truth * mask};
  return counted;
}

at::Tensor counted_channels(const at::Tensor& all, bool include_background) {
  const int64_t channels = all.size(1);
  return include_background || channels == 1 ? all : all.narrow(1, 1, channels - 1);
}

at::Tensor voxel_means(const at::Tensor& values, const at::Tensor& mask, bool batch) {
  const auto sums = [&](const at::Tensor& of_voxels) {
    const at::Tensor of_images = of_voxels.flatten(2).sum(2);
    return batch ? of_images.sum(0, /*keepdim=*/true) : of_images;
  };
  return mask.defined() ? sums(values * mask) / sums(mask.expand_as(values)).clamp_min(1)
                        : sums(values) / sums(at::ones_like(values));
}

at::Tensor truth_of(const LossInput& in, bool is_numbers) {
  const auto& [logits, target, mask] = in;
  const int64_t classes = logits.size(1);
  at::Tensor truth = target;
  if (is_numbers && classes > 1 && target.size(1) == 1) {
    std::vector<int64_t> shape(static_cast<std::size_t>(target.dim()), 1);
    shape[1] = classes;
    truth = target.eq(at::arange(classes, target.options()).view(shape));
  }
  if (truth.sizes() != logits.sizes()) {
    throw DataError(
        "loss: target ({}) does not fit the logits ({}); for class numbers set to_onehot_y=true",
        fmt::join(target.sizes(), ","),
        fmt::join(logits.sizes(), ","));
  }
  return truth.to(logits.scalar_type());
}

at::Tensor per_channel(const std::vector<double>& numbers,
                       const at::Tensor& values,
                       const char* key) {
  const int64_t count = std::ssize(numbers);
  if (count != 1 && count != values.size(1)) {
    throw ConfigError(
        "loss.{}: {} numbers, expected one, or one for each of the {} channels that count",
        key,
        count,
        values.size(1));
  }
  std::vector<int64_t> shape(static_cast<std::size_t>(values.dim()) - 1, 1);
  shape[0] = count;
  return numbers_like(numbers, values).view(shape);
}

}  // namespace cytra::nn
