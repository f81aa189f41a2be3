#include "metrics/metric.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace cytra::metrics {

void check_shapes(const std::string& name, const Compared& batch, int64_t channels) {
  const at::Tensor& truth = batch.truth;
  if (truth.dim() >= 4 && batch.prediction.sizes() == truth.sizes() &&
      (channels == 0 || truth.size(1) == channels)) {
    return;
  }
  throw DataError("{}: a prediction ({}) and a truth ({}), expected (N,{},[D,]H,W)",
                  name,
                  fmt::join(batch.prediction.sizes(), ","),
                  fmt::join(truth.sizes(), ","),
                  channels == 0 ? "K" : fmt::to_string(channels));
}

void SumsMetric::add(const at::Tensor& values) {
  sums_ = sums_.to(values.device()).add_(values);
}

void SumsMetric::clear() {
  sums_ = at::zeros(shape_, at::TensorOptions(at::kDouble));
}

}  // namespace cytra::metrics
