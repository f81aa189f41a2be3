#include "training/mean_loss.h"

#include <cmath>

#include <ATen/ATen.h>

namespace cytra::training {

at::Tensor MeanLoss::none() {
  return at::zeros({2}, at::TensorOptions(at::kDouble));
}

void MeanLoss::add(const at::Tensor& loss) {
  const at::Tensor value = loss.detach().to(at::kDouble);
  if (sums_.device() != value.device()) sums_ = sums_.to(value.device());
  sums_.add_(at::stack({value, at::ones_like(value)}));
}

double MeanLoss::take() {
  const double value = mean();
  sums_ = none();
  return value;
}

double MeanLoss::mean() const {
  const at::Tensor sums = sums_.cpu();
  const double* numbers = sums.const_data_ptr<double>();
  return numbers[1] > 0 ? numbers[0] / numbers[1] : std::nan("");
}

}  // namespace cytra::training
