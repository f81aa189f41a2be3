#include "inference/postprocess/step.h"

namespace cytra::inference {

std::vector<double> spacing_of(const Result& result) {
  const auto& spacing = result.geometry.spacing_um;
  const auto dims = static_cast<std::size_t>(result.values.dim()) - 1;
  std::vector<double> known(spacing.end() - static_cast<std::ptrdiff_t>(dims), spacing.end());
  for (const double step : known) {
    if (step <= 0) return {};
  }
  return known;
}

}  // namespace cytra::inference
