#include "metrics/dice.h"

#include <cmath>

#include <ATen/ATen.h>

namespace cytra::metrics {

Dice::Dice(bool include_background, bool ignore_empty)
    : include_background_(include_background), ignore_empty_(ignore_empty) {
  reset();
}

void Dice::reset() {
  sums_ = at::zeros({2}, at::TensorOptions(at::kDouble));
}

void Dice::update(const at::Tensor& prediction, const at::Tensor& truth) {
  std::vector<int64_t> space;
  for (int64_t d = 2; d < truth.dim(); ++d) space.push_back(d);
  const int64_t first = include_background_ || truth.size(1) == 1 ? 0 : 1;
  // Sums in double: float32 stops counting at 2^24 voxels.
  const auto count = [&](const at::Tensor& x) {  // (N,K)
    return x.slice(1, first).sum(space, false, at::kDouble);
  };
  const at::Tensor both = count(prediction * truth), true_count = count(truth);
  const at::Tensor total = true_count + count(prediction);
  const at::Tensor dice = at::where(total.eq(0), at::ones_like(total), 2 * both / total);
  const at::Tensor counts =
      (ignore_empty_ ? true_count.gt(0) : at::ones_like(true_count)).to(at::kDouble);
  const at::Tensor classes = counts.sum(1);
  const at::Tensor mean = (dice * counts).sum(1) / classes.clamp_min(1);  // (N)
  if (sums_.device() != mean.device()) sums_ = sums_.to(mean.device());
  sums_.add_(at::stack({mean.sum(), classes.gt(0).sum().to(at::kDouble)}));
}

double Dice::compute() const {
  const at::Tensor sums = sums_.cpu();
  const double* numbers = sums.const_data_ptr<double>();
  return numbers[1] > 0 ? numbers[0] / numbers[1] : std::nan("");
}

}  // namespace cytra::metrics
