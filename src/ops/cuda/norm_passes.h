#pragma once
// What follows from the sums of norm_cells.h, for each value and each mean.
#include "ops/cuda/norm_cells.h"

namespace cytra::ops::gpu {

/// From the sums of MomentTerm to a share's mean and population variance, and to its cells'
/// coefficients; or to these alone, from statistics that are there.
template <class T>
struct FinishMoments {
  MomentTerm<T> term;
  const Sums* sums;            // of each cell; null: the statistics are there
  const float *weight, *bias;  // of each channel; null: 1 and 0
  double* statistics;          // (shares,2)
  Coefficients* coefficients;
  CYTRA_CELL double mean_of(int64_t cell) const {
    return term.pivot(cell) + sums[cell].first / static_cast<double>(term.cells.voxels);
  }
  CYTRA_CELL void operator()(int64_t share) const {
    const Cells& cells = term.cells;
    const int64_t count = cells.share_cells();
    const auto voxels = static_cast<double>(cells.voxels);
    double* of_share = statistics + 2 * share;
    if (sums != nullptr) {
      double mean = 0, variance = 0;
      for (int64_t i = 0; i < count; ++i) mean += mean_of(cells.cell(share, i));
      mean /= static_cast<double>(count);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t cell = cells.cell(share, i);
        const Sums of = sums[cell];
        const double squares = of.second - of.first * of.first / voxels;
        const double shift = mean_of(cell) - mean;
        variance += (squares > 0 ? squares : 0) / voxels + shift * shift;
      }
      of_share[0] = mean;
      of_share[1] = variance / static_cast<double>(count);
    }
    const double rstd = 1 / sqrt(of_share[1] + cells.eps);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t cell = cells.cell(share, i), channel = cell % cells.channels;
      const double scale = (weight == nullptr ? 1. : static_cast<double>(weight[channel])) * rstd;
      // What float32 can't hold of the mean goes into the shift.
      const double center = static_cast<float>(of_share[0]);
      Coefficients& of = coefficients[cell];
      of.center = static_cast<float>(center);
      of.scale = static_cast<float>(scale);
      of.shift = static_cast<float>((bias == nullptr ? 0. : static_cast<double>(bias[channel])) -
                                    (of_share[0] - center) * scale);
    }
  }
};

/// y = act((x - center) scale + shift)
template <class T>
struct Normalize {
  Cells cells;
  const T* x;
  T* y;
  const Coefficients* coefficients;
  CYTRA_CELL void operator()(int64_t at) const {
    const Coefficients& of = coefficients[cells.cell_of(at)];
    const float z = (static_cast<float>(x[at]) - of.center) * of.scale + of.shift;
    y[at] = static_cast<T>(z > 0 ? z : z * cells.slope);
  }
};

/// From the sums of GradTerm to those of dz and dz xhat of each cell, in their place, and to the
/// coefficients of the input's gradient. Source: torch's native_group_norm.
struct FinishGrad {
  Cells cells;
  Sums* sums;
  const float* weight;
  const double* statistics;
  Coefficients* coefficients;
  CYTRA_CELL void operator()(int64_t share) const {
    const int64_t count = cells.share_cells();
    const double mean = statistics[2 * share];
    const double rstd = 1 / sqrt(statistics[2 * share + 1] + cells.eps);
    const double rest = (static_cast<double>(static_cast<float>(mean)) - mean) * rstd;
    double first = 0, second = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t cell = cells.cell(share, i);
      Sums& of = sums[cell];
      of.second = of.second * rstd + of.first * rest;
      first += weight_of(cell) * of.first;
      second += weight_of(cell) * of.second;
    }
    const double values = static_cast<double>(cells.voxels) * static_cast<double>(count);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t cell = cells.cell(share, i);
      Coefficients& of = coefficients[cell];
      of.grad_scale = static_cast<float>(weight_of(cell) * rstd);
      of.slant = static_cast<float>(-rstd * rstd * second / values);
      of.offset = static_cast<float>(-rstd * (first + rest * second) / values);
    }
  }
  CYTRA_CELL double weight_of(int64_t cell) const {
    return weight == nullptr ? 1. : static_cast<double>(weight[cell % cells.channels]);
  }
};

template <class T>
struct InputGrad {
  GradTerm<T> term;
  T* dx;
  CYTRA_CELL void operator()(int64_t at) const {
    const int64_t cell = term.cells.cell_of(at);
    const Coefficients& of = term.coefficients[cell];
    const float centered = static_cast<float>(term.x[at]) - of.center;
    dx[at] = static_cast<T>(term.dz(cell, at) * of.grad_scale + centered * of.slant + of.offset);
  }
};

}  // namespace cytra::ops::gpu
