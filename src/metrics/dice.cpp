#include "metrics/dice.h"

#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace cytra::metrics {
namespace {

/// A host copy of the sums, whose values were all 0 or 1.
at::Tensor checked(const at::Tensor& sums) {
  at::Tensor host = sums.cpu();
  const auto wrong = static_cast<int64_t>(host[-1][1].item<double>());
  if (wrong == 0) return host;
  throw DataError(
      fmt::format("Dice: {} values are neither 0 nor 1; class numbers must be one-hot, "
                  "probabilities rounded",
                  wrong));
}

double mean_of(const double* sum_and_number) {
  return sum_and_number[1] > 0 ? sum_and_number[0] / sum_and_number[1] : std::nan("");
}

/// (N,K). Rows are summed in float32, exact for their few values, and rows in double: float32 stops
/// counting at 2^24 voxels.
at::Tensor voxels(const at::Tensor& mask) {
  return mask.to(at::kFloat).sum(-1).flatten(2).sum(-1, false, at::kDouble);
}

at::Tensor count_others(const at::Tensor& mask) {
  if (mask.scalar_type() == at::kBool) return at::zeros({}, mask.options().dtype(at::kDouble));
  return mask.ne(0).logical_and_(mask.ne(1)).sum().to(at::kDouble);
}

}  // namespace

Dice::Dice(int64_t channels, bool include_background, bool ignore_empty)
    : channels_(channels),
      first_(include_background || channels == 1 ? 0 : 1),
      ignore_empty_(ignore_empty) {
  reset();
}

void Dice::reset() {
  sums_ = at::zeros({channels_ + 2, 2}, at::TensorOptions(at::kDouble));
}

void Dice::update(const at::Tensor& prediction, const at::Tensor& truth) {
  if (truth.dim() < 4 || truth.size(1) != channels_ || prediction.sizes() != truth.sizes()) {
    throw DataError(fmt::format("Dice: a prediction ({}) and a truth ({}), expected (N,{},[D,]H,W)",
                                fmt::join(prediction.sizes(), ","),
                                fmt::join(truth.sizes(), ","),
                                channels_));
  }
  const at::Tensor true_count = voxels(truth), total = true_count + voxels(prediction);
  const at::Tensor dice =
      at::where(total.eq(0), at::ones_like(total), 2 * voxels(prediction * truth) / total);
  at::Tensor counts =
      (ignore_empty_ ? true_count.gt(0) : at::ones_like(true_count)).to(at::kDouble);
  if (first_ > 0) counts.select(1, 0).zero_();
  const at::Tensor classes = counts.sum(1);  // (N)
  const at::Tensor mean = (dice * counts).sum(1) / classes.clamp_min(1);
  const at::Tensor images = at::full({}, truth.size(0), sums_.options().device(mean.device()));
  if (sums_.device() != mean.device()) sums_ = sums_.to(mean.device());
  sums_[0].add_(at::stack({mean.sum(), classes.gt(0).sum().to(at::kDouble)}));
  sums_.slice(0, 1, channels_ + 1).add_(at::stack({(dice * counts).sum(0), counts.sum(0)}, 1));
  sums_[-1].add_(at::stack({images, count_others(prediction) + count_others(truth)}));
}

double Dice::compute() const {
  return mean_of(checked(sums_).const_data_ptr<double>());
}

std::vector<double> Dice::per_class() const {
  const at::Tensor sums = checked(sums_);
  const double* numbers = sums.const_data_ptr<double>();
  std::vector<double> means;
  for (int64_t k = 1; k <= channels_; ++k) means.push_back(mean_of(numbers + 2 * k));
  return means;
}

Dice::Counts Dice::counts() const {
  const at::Tensor sums = sums_.cpu();
  const double* numbers = sums.const_data_ptr<double>();
  const auto number = [&](int64_t at) { return static_cast<int64_t>(numbers[at]); };
  Counts counts;
  counts.images = number(2 * channels_ + 2);
  counts.with_foreground = number(1);
  for (int64_t k = 1; k <= channels_; ++k) counts.with_class.push_back(number(2 * k + 1));
  return counts;
}

}  // namespace cytra::metrics
