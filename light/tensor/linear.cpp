// Algebra of small matrices.
#include <cmath>

#include "walk.h"

namespace at {
namespace {

struct Matrix {
  explicit Matrix(const Tensor& x) : rows(x.size(0)), columns(x.size(1)) {
    const Tensor dense = x.to(kDouble).contiguous();
    const double* from = dense.const_data_ptr<double>();
    values.assign(from, from + rows * columns);
  }
  double& operator()(int64_t i, int64_t k) {
    return values[static_cast<std::size_t>(i * columns + k)];
  }
  Tensor as(ScalarType type) {
    return from_blob(values.data(), {rows, columns}, kDouble).to(type, false, true);
  }
  int64_t rows, columns;
  std::vector<double> values;
};

}  // namespace

Tensor Tensor::matmul(const Tensor& b) const {
  if (dim() == 1) return unsqueeze(0).matmul(b).squeeze(0);
  if (b.dim() == 1) return matmul(b.unsqueeze(1)).squeeze(-1);
  if (dim() != 2 || b.dim() != 2 || size(1) != b.size(0)) throw Error("matrices that don't fit");
  const ScalarType type = common_type(*this, b);
  const Tensor x = to(kDouble).contiguous(), y = b.to(kDouble).contiguous();
  const Tensor made = zeros({size(0), b.size(1)}, kDouble);
  const int64_t inner = size(1), columns = b.size(1);
  const double *p = x.const_data_ptr<double>(), *q = y.const_data_ptr<double>();
  double* to = made.mutable_data_ptr<double>();
  parallel_for(0, columns, 8192, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < size(0); ++i)
      for (int64_t k = 0; k < inner; ++k)
        for (int64_t j = begin; j < end; ++j)
          to[i * columns + j] += p[i * inner + k] * q[k * columns + j];
  });
  return made.to(type);
}

Tensor linalg_solve(const Tensor& a, const Tensor& b) {
  Matrix m(a), x(b.dim() == 1 ? b.unsqueeze(1) : b);
  for (int64_t c = 0; c < m.rows; ++c) {
    int64_t pivot = c;
    for (int64_t i = c + 1; i < m.rows; ++i)
      if (std::fabs(m(i, c)) > std::fabs(m(pivot, c))) pivot = i;
    if (m(pivot, c) == 0) throw Error("a singular matrix");
    for (int64_t k = 0; k < m.columns; ++k) std::swap(m(c, k), m(pivot, k));
    for (int64_t k = 0; k < x.columns; ++k) std::swap(x(c, k), x(pivot, k));
    for (int64_t i = c + 1; i < m.rows; ++i) {
      const double factor = m(i, c) / m(c, c);
      for (int64_t k = c; k < m.columns; ++k) m(i, k) -= factor * m(c, k);
      for (int64_t k = 0; k < x.columns; ++k) x(i, k) -= factor * x(c, k);
    }
  }
  for (int64_t i = m.rows - 1; i >= 0; --i) {
    for (int64_t k = 0; k < x.columns; ++k) {
      for (int64_t j = i + 1; j < m.rows; ++j) x(i, k) -= m(i, j) * x(j, k);
      x(i, k) /= m(i, i);
    }
  }
  const Tensor made = x.as(a.scalar_type());
  return b.dim() == 1 ? made.squeeze(1) : made;
}
Tensor linalg_inv(const Tensor& a) {
  return linalg_solve(a, eye(a.size(0), a.options()));
}

Tensor linalg_cholesky(const Tensor& a) {
  Matrix m(a), low(zeros(a.sizes(), kDouble));
  for (int64_t i = 0; i < m.rows; ++i) {
    for (int64_t k = 0; k <= i; ++k) {
      double rest = m(i, k);
      for (int64_t j = 0; j < k; ++j) rest -= low(i, j) * low(k, j);
      if (i == k && !(rest > 0)) throw Error("a matrix that is not positive");
      low(i, k) = i == k ? std::sqrt(rest) : rest / low(k, k);
    }
  }
  return low.as(a.scalar_type());
}

/// By Jacobi's rotations of the columns. Source: Golub, Van Loan, Matrix Computations, 8.6.3.
std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& a, bool /*full_matrices*/) {
  Matrix u(a), v(eye(a.size(1), kDouble));
  for (int sweep = 0; sweep < 60; ++sweep) {
    double off = 0;
    for (int64_t p = 0; p < u.columns; ++p) {
      for (int64_t q = p + 1; q < u.columns; ++q) {
        double pp = 0, qq = 0, pq = 0;
        for (int64_t i = 0; i < u.rows; ++i) {
          pp += u(i, p) * u(i, p);
          qq += u(i, q) * u(i, q);
          pq += u(i, p) * u(i, q);
        }
        if (std::fabs(pq) <= 1e-17 * std::sqrt(pp * qq) || pq == 0) continue;
        off = std::max(off, std::fabs(pq) / std::sqrt(pp * qq));
        const double zeta = (qq - pp) / (2 * pq);
        const double t = std::copysign(1 / (std::fabs(zeta) + std::sqrt(1 + zeta * zeta)), zeta);
        const double c = 1 / std::sqrt(1 + t * t), s = c * t;
        const auto turn = [&](Matrix& m) {
          for (int64_t i = 0; i < m.rows; ++i) {
            const double x = m(i, p), y = m(i, q);
            m(i, p) = c * x - s * y;
            m(i, q) = s * x + c * y;
          }
        };
        turn(u);
        turn(v);
      }
    }
    if (off < 1e-15) break;
  }
  const Tensor columns = u.as(kDouble), values = columns.norm(2, {0});
  const Tensor order = values.argsort(true, 0, true);
  const Tensor sorted = values.index_select(0, order);
  return {columns.index_select(1, order).div(sorted).to(a.scalar_type()),
          sorted.to(a.scalar_type()),
          v.as(kDouble).index_select(1, order).t().contiguous().to(a.scalar_type())};
}

}  // namespace at
