// RandBiasFieldd: multiplies by a smooth field, exp of Legendre polynomials. Source:
// monai.transforms.RandBiasFieldd.
#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

/// Legendre polynomials 0..degree at `size` places of [-1, 1]. Shape: (degree + 1, size).
at::Tensor legendre(int64_t degree, int64_t size) {
  const at::Tensor x = at::linspace(-1, 1, size, at::kDouble);
  std::vector<at::Tensor> rows{at::ones_like(x), x};
  for (int64_t n = 2; n <= degree; ++n) {  // Bonnet: n P_n = (2n - 1) x P_(n-1) - (n - 1) P_(n-2)
    const auto order = static_cast<double>(n);
    rows.push_back(
        (x * rows[rows.size() - 1] * (2 * order - 1) - rows[rows.size() - 2] * (order - 1)) /
        order);
  }
  return at::stack(rows);
}

struct RandBiasFieldd : RandKeyOptions {
  int64_t degree = 3;
  std::vector<double> coeff_range{0, 0.1};
  void visit(auto& v) {
    RandKeyOptions::visit(v);
    visit_dtype(v);
    v("degree", degree, "degree of the polynomials", 1, 100);
    v("coeff_range", coeff_range, "range of their coefficients");
  }
  void check() const { check_range("coeff_range", coeff_range, false); }

  auto draw(Rng& rng, const at::Tensor& first) const {
    const int64_t axes = first.dim() - 1, side = degree + 1;
    at::Tensor coefficients =
        at::zeros(std::vector<int64_t>(static_cast<std::size_t>(axes), side), at::kDouble);
    const Range range(coeff_range, 0);
    // These are the coefficients that MONAI sets: the lower triangle of a plane, i + j + k <=
    // degree of a stack.
    for (int64_t i = 0; i < side; ++i) {
      for (int64_t j = 0; j < (axes == 2 ? i + 1 : side - i); ++j) {
        if (axes == 2) coefficients[i][j] = range.draw(rng);
        for (int64_t k = 0; axes == 3 && k < side - i - j; ++k)
          coefficients[i][j][k] = range.draw(rng);
      }
    }
    return [this, coefficients](const at::Tensor& image) {
      if (image.dim() - 1 != coefficients.dim())
        throw DataError("another number of axes than the first key, expected as many");
      at::Tensor field = coefficients;  // each step turns the first axis into the last, in voxels
      for (int64_t d = 1; d < image.dim(); ++d)
        field = at::tensordot(field, legendre(degree, image.size(d)), {0}, {0});
      return (image * field.exp()).to(at::kFloat);
    };
  }
};
CYTRA_REGISTER(Transform, RandPerKey<RandBiasFieldd>, "RandBiasFieldd");

}  // namespace
}  // namespace cytra::data
