#include "metrics/dice.h"

#include <cmath>

#include <ATen/ATen.h>

namespace cytra::metrics {

void Dice::update(const at::Tensor& prediction, const at::Tensor& truth) {
  std::vector<int64_t> space;
  for (int64_t d = 2; d < truth.dim(); ++d) space.push_back(d);
  // Sums in double: float32 stops counting at 2^24 voxels.
  const auto count = [&](const at::Tensor& x) {
    return x.sum(space, false, at::kDouble).cpu();
  };  // (N,K)
  const at::Tensor both = count(prediction * truth), predicted = count(prediction),
                   true_count = count(truth);
  const auto both_of = both.accessor<double, 2>(), predicted_of = predicted.accessor<double, 2>(),
             truth_of = true_count.accessor<double, 2>();
  const int64_t first = include_background_ || truth.size(1) == 1 ? 0 : 1;
  for (int64_t n = 0; n < truth.size(0); ++n) {
    double sum = 0;
    int64_t classes = 0;
    for (int64_t k = first; k < truth.size(1); ++k) {
      if (truth_of[n][k] == 0 && ignore_empty_) continue;
      const double total = truth_of[n][k] + predicted_of[n][k];
      sum += total == 0 ? 1 : 2 * both_of[n][k] / total;
      ++classes;
    }
    if (classes == 0) continue;
    sum_ += sum / static_cast<double>(classes);
    images_ += 1;
  }
}

double Dice::compute() const {
  return images_ > 0 ? sum_ / images_ : std::nan("");
}

}  // namespace cytra::metrics
