#include "metrics/masks/mask_metric.h"

#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"

namespace cytra::metrics {
namespace {

at::Tensor others_in(const at::Tensor& mask) {
  if (mask.scalar_type() == at::kBool) return at::zeros({}, mask.options().dtype(at::kDouble));
  return mask.ne(0).logical_and_(mask.ne(1)).sum().to(at::kDouble);
}

void add_to(at::Tensor& sums, const at::Tensor& values) {
  sums = sums.to(values.device()).add_(values);
}

}  // namespace

at::Tensor voxels_of(const at::Tensor& masks) {
  // Rows are summed in float32, exact for their few values, and rows in double: float32 stops
  // counting at 2^24 voxels.
  return masks.to(at::kFloat).sum(-1).flatten(2).sum(-1, false, at::kDouble);
}

void MaskMetric::expect(int64_t channels) {
  channels_ = channels;
  sums_ = at::zeros(shape(channels - first()), at::TensorOptions(at::kDouble));
  others_ = at::zeros({}, sums_.options());
}

void MaskMetric::update(const Compared& batch) {
  check_shapes(name_, batch, sums_.defined() ? channels_ : 0);
  if (!sums_.defined()) expect(batch.truth.size(1));
  const auto classes = [&](const at::Tensor& masks) {
    const at::Tensor chosen = masks.slice(1, first());
    return batch.mask.defined() ? chosen * batch.mask : chosen;
  };
  add_to(others_, others_in(batch.prediction) + others_in(batch.truth));
  add_to(sums_,
         count({classes(batch.prediction), classes(batch.truth), batch.mask, batch.spacing_um}));
}

at::Tensor MaskMetric::counted() const {
  if (!sums_.defined()) return {};
  if (const auto others = others_.item<double>(); others != 0) {
    throw DataError(
        "{}: {} values are neither 0 nor 1; class numbers must be one-hot, probabilities rounded",
        name_,
        others);
  }
  return sums_.cpu();
}

std::string MaskMetric::class_name(const std::string& name, int64_t k) const {
  return fmt::format("{}_class_{}", name, k + first());
}

at::Tensor ClassMeans::count(const Compared& batch) const {
  const Values measured = measure(batch);
  const at::Tensor counts = measured.counts.to(at::kDouble);
  const at::Tensor values = at::where(measured.counts, measured.values, 0);  // 0 * inf is NaN
  const at::Tensor classes = counts.sum(1);                                  // (N)
  const at::Tensor mean = values.sum(1) / classes.clamp_min(1);
  return at::cat({at::stack({mean.sum(), classes.gt(0).sum().to(at::kDouble)}).unsqueeze(0),
                  at::stack({values.sum(0), counts.sum(0)}, 1)});
}

std::map<std::string, double> ClassMeans::compute() const {
  const at::Tensor sums = counted();
  if (!sums.defined()) return {{name(), std::nan("")}};
  const at::Tensor means = sums.select(1, 0) / sums.select(1, 1);
  const auto values = means.accessor<double, 1>();
  std::map<std::string, double> named{{name(), values[0]}};
  for (int64_t k = 0; !is_single() && k + 1 < values.size(0); ++k)
    named[class_name(name(), k)] = values[k + 1];
  return named;
}

}  // namespace cytra::metrics
