// Part of ops/labels/operations.h: makes labels of scores.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "ops/labels/operations.h"

namespace cytra::ops {
namespace {

at::Tensor channels_of(const at::Tensor& labels, int64_t classes) {
  if (labels.size(0) != 1)
    throw DataError(fmt::format("{} channels, expected 1 of classes", labels.size(0)));
  const at::Tensor wrong = labels.ge(0)
                               .logical_and_(labels.lt(classes))
                               .logical_and_(labels.eq(labels.floor()))
                               .logical_not_();
  if (wrong.any().item<bool>()) {
    const at::Tensor values = labels.masked_select(wrong);
    throw DataError(fmt::format(
        "{} values (such as {:g}) are not classes from 0 to {}, which to_onehot expects",
        values.numel(),
        values[0].item<double>(),
        classes - 1));
  }
  const at::Tensor numbers = at::arange(classes, at::device(labels.device()).dtype(at::kLong));
  std::vector<int64_t> shape(static_cast<std::size_t>(labels.dim()), 1);
  shape[0] = classes;
  return labels.to(at::kLong).eq(numbers.reshape(shape));
}

}  // namespace

void AsDiscrete::check() const {
  if (to_onehot && (*to_onehot < 1 || *to_onehot > 65536))
    throw ConfigError("to_onehot: expected 1 to 65536 classes");
  if (rounding && *rounding != "torchrounding")
    throw ConfigError("rounding: '" + *rounding + "', expected torchrounding");
  if (is_idle()) throw ConfigError("expected argmax, to_onehot, threshold or rounding");
}

at::Tensor AsDiscrete::operator()(const at::Tensor& image) const {
  at::Tensor result = image;
  if (argmax) result = result.argmax(0, /*keepdim=*/true);
  if (to_onehot) result = channels_of(result, *to_onehot);
  if (threshold) result = result.ge(*threshold);
  if (rounding) result = result.to(at::kFloat).round();
  return result;
}

}  // namespace cytra::ops
