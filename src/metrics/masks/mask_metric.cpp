#include "metrics/masks/mask_metric.h"

#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace cytra::metrics {
namespace {

at::Tensor others_in(const at::Tensor& mask) {
  if (mask.scalar_type() == at::kBool) return at::zeros({}, mask.options().dtype(at::kDouble));
  return mask.ne(0).logical_and_(mask.ne(1)).sum().to(at::kDouble);
}

}  // namespace

at::Tensor voxels_of(const at::Tensor& masks) {
  // Rows are summed in float32, exact for their few values, and rows in double: float32 stops
  // counting at 2^24 voxels.
  return masks.to(at::kFloat).sum(-1).flatten(2).sum(-1, false, at::kDouble);
}

void check_shapes(const std::string& name, const Compared& batch, int64_t channels) {
  const at::Tensor& truth = batch.truth;
  if (truth.dim() >= 4 && batch.prediction.sizes() == truth.sizes() &&
      (channels == 0 || truth.size(1) == channels)) {
    return;
  }
  throw DataError(fmt::format("{}: a prediction ({}) and a truth ({}), expected (N,{},[D,]H,W)",
                              name,
                              fmt::join(batch.prediction.sizes(), ","),
                              fmt::join(truth.sizes(), ","),
                              channels == 0 ? "K" : fmt::to_string(channels)));
}

at::Tensor count_others(const Compared& batch) {
  return others_in(batch.prediction) + others_in(batch.truth);
}

void check_others(const std::string& name, double others) {
  if (others == 0) return;
  throw DataError(
      fmt::format("{}: {} values are neither 0 nor 1; class numbers must be one-hot, "
                  "probabilities rounded",
                  name,
                  others));
}

MaskMetric::MaskMetric(std::string name, const MaskOptions& options, bool include_background)
    : name_(std::move(name)),
      with_background_(options.include_background.value_or(include_background)) {}

void MaskMetric::expect(int64_t channels) {
  channels_ = channels;
  sums_ = at::zeros({channels - first_of(channels) + 2, 2}, at::TensorOptions(at::kDouble));
}

void MaskMetric::update(const Compared& batch) {
  check_shapes(name_, batch, sums_.defined() ? channels_ : 0);
  if (!sums_.defined()) expect(batch.truth.size(1));
  const int64_t first = first_of(channels_);
  const auto counted = [&](const at::Tensor& masks) {
    const at::Tensor classes = masks.slice(1, first);
    return batch.mask.defined() ? classes * batch.mask : classes;
  };
  const Values measured =
      measure(counted(batch.prediction), counted(batch.truth), batch.spacing_um);
  const at::Tensor counts = measured.counts.to(at::kDouble);
  const at::Tensor values = at::where(measured.counts, measured.values, 0);  // 0 * inf is NaN
  const at::Tensor classes = counts.sum(1);                                  // (N)
  const at::Tensor mean = values.sum(1) / classes.clamp_min(1);
  const at::Tensor others = count_others(batch).to(values.device());
  if (sums_.device() != values.device()) sums_ = sums_.to(values.device());
  sums_.add_(at::cat({at::stack({mean.sum(), classes.gt(0).sum().to(at::kDouble)}).unsqueeze(0),
                      at::stack({values.sum(0), counts.sum(0)}, 1),
                      at::stack({others, at::zeros_like(others)}).unsqueeze(0)}));
}

std::map<std::string, double> MaskMetric::compute() const {
  if (!sums_.defined()) return {{name_, std::nan("")}};
  const at::Tensor host = sums_.cpu();
  const auto sums = host.accessor<double, 2>();
  const int64_t classes = host.size(0) - 2;
  check_others(name_, sums[classes + 1][0]);
  const auto mean = [&](int64_t row) {
    return sums[row][1] > 0 ? sums[row][0] / sums[row][1] : std::nan("");
  };
  std::map<std::string, double> values{{name_, mean(0)}};
  const int64_t first = first_of(channels_);
  for (int64_t k = 0; channels_ > 1 && k < classes; ++k)
    values[fmt::format("{}_class_{}", name_, k + first)] = mean(k + 1);
  return values;
}

}  // namespace cytra::metrics
