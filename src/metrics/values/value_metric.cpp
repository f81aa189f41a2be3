#include "metrics/values/value_metric.h"

#include <cmath>
#include <limits>

#include <ATen/ATen.h>

namespace cytra::metrics {

at::Tensor sum_of(const at::Tensor& values, const at::Tensor& mask) {
  const at::Tensor counted = mask.defined() ? at::where(mask.ne(0), values, 0) : values;
  if (counted.dim() < 3) return counted.flatten(1).sum(1, /*keepdim=*/false, at::kDouble);
  // Rows in their own type, their sums in double: a double copy of every voxel is not needed.
  return counted.sum(-1).flatten(1).sum(1, /*keepdim=*/false, at::kDouble);
}

at::Tensor number_of(const Compared& batch) {
  return sum_of(at::ones({}, batch.truth.options()).expand_as(batch.truth), batch.mask);
}

at::Tensor range_of(const Compared& batch) {
  const auto outside = [&](double value) {
    return (batch.mask.defined() ? at::where(batch.mask.ne(0), batch.truth, value) : batch.truth)
        .flatten(1);
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return (outside(-kInfinity).amax(1) - outside(kInfinity).amin(1)).to(at::kDouble);
}

void ValueMetric::update(const Compared& batch) {
  check_shapes(name_, batch);
  Compared floats = batch;
  for (at::Tensor* values : {&floats.prediction, &floats.truth}) {
    if (values->scalar_type() != at::kDouble) *values = values->to(at::kFloat);
  }
  const Values measured = measure(floats);
  const at::Tensor values = at::where(measured.counts, measured.values, 0);
  add(at::stack({values.sum(), measured.counts.sum().to(at::kDouble)}));
}

std::map<std::string, double> ValueMetric::compute() const {
  const at::Tensor host = sums_.cpu();
  const double* sums = host.const_data_ptr<double>();
  return {{name_, sums[1] > 0 ? sums[0] / sums[1] : std::nan("")}};
}

}  // namespace cytra::metrics
