#pragma once
// What follows from the sums of norm_cells.h, for each value and each mean.
#include "ops/cuda/norm_cells.h"

namespace cytra::ops::gpu {

/// Computes a share's mean and population variance, and its cells' coefficients, from the sums of
/// MomentTerm. Its steps are taken by lanes that have cells of the share each; what they return is
/// summed over all cells before the next.
struct FinishMoments {
  Cells of_all;
  const Sums* sums;            // of each cell
  const float *weight, *bias;  // of each channel; null: 1 and 0
  double* statistics;          // (shares,2)
  Coefficients* coefficients;
  CYTRA_CELL const Cells& cells() const { return of_all; }
  CYTRA_CELL double mean_of(int64_t cell) const {
    return sums[cell].first / static_cast<double>(of_all.voxels);
  }
  CYTRA_CELL Sums first_step(int64_t cell, int64_t) const { return {mean_of(cell), 0}; }
  CYTRA_CELL Sums second_step(int64_t cell, const Sums& all) const {
    const double mean = mean_of(cell);
    const double variance = sums[cell].second / static_cast<double>(of_all.voxels) - mean * mean;
    const double shift = mean - all.first / static_cast<double>(of_all.share_cells());
    return {(variance < 0 ? 0 : variance) + shift * shift, 0};
  }
  CYTRA_CELL void last_step(int64_t cell, int64_t share, const Sums& all, const Sums& more) const {
    const auto count = static_cast<double>(of_all.share_cells());
    const double mean = all.first / count, variance = more.first / count;
    if (cell == of_all.cell(share, 0)) {
      statistics[2 * share] = mean;
      statistics[2 * share + 1] = variance;
    }
    const int64_t channel = of_all.channel(cell);
    const double rstd = 1 / sqrt(variance + of_all.eps);
    const double scale = (weight == nullptr ? 1. : static_cast<double>(weight[channel])) * rstd;
    // The part of the mean that float32 can't hold goes into the shift.
    const double center = static_cast<float>(mean);
    Coefficients& of = coefficients[cell];
    of.center = static_cast<float>(center);
    of.scale = static_cast<float>(scale);
    of.shift = static_cast<float>((bias == nullptr ? 0. : static_cast<double>(bias[channel])) -
                                  (mean - center) * scale);
  }
};

/// y = act((x - center) scale + shift)
struct Normalize {
  static constexpr bool kTakesGrad = false;
  const Coefficients* coefficients;
  float slope;
  CYTRA_CELL float operator()(const Coefficients& of, float x, float) const {
    const float z = (x - of.center) * of.scale + of.shift;
    return z > 0 ? z : z * slope;
  }
};

/// Computes from the sums of GradTerm the sums of dz and dz xhat of each cell, which replace them,
/// and the coefficients of the input's gradient. Its steps are as in FinishMoments. Source:
/// torch's native_group_norm.
struct FinishGrad {
  Cells of_all;
  Sums* sums;
  const float* weight;
  const double* statistics;
  Coefficients* coefficients;
  CYTRA_CELL const Cells& cells() const { return of_all; }
  CYTRA_CELL double rstd(int64_t share) const {
    return 1 / sqrt(statistics[2 * share + 1] + of_all.eps);
  }
  /// (center - mean) rstd: the center is the mean in float32.
  CYTRA_CELL double rest(int64_t share) const {
    const double mean = statistics[2 * share];
    return (static_cast<double>(static_cast<float>(mean)) - mean) * rstd(share);
  }
  CYTRA_CELL Sums first_step(int64_t cell, int64_t share) const {
    Sums& of = sums[cell];
    of.second = of.second * rstd(share) + of.first * rest(share);
    return {weight_of(cell) * of.first, weight_of(cell) * of.second};
  }
  CYTRA_CELL Sums second_step(int64_t, const Sums&) const { return {0, 0}; }
  CYTRA_CELL void last_step(int64_t cell, int64_t share, const Sums& all, const Sums&) const {
    const double values =
        static_cast<double>(of_all.voxels) * static_cast<double>(of_all.share_cells());
    const double of_rstd = rstd(share);
    Coefficients& of = coefficients[cell];
    of.grad_scale = static_cast<float>(weight_of(cell) * of_rstd);
    of.slant = static_cast<float>(-of_rstd * of_rstd * all.second / values);
    of.offset = static_cast<float>(-of_rstd * (all.first + rest(share) * all.second) / values);
  }
  CYTRA_CELL double weight_of(int64_t cell) const {
    return weight == nullptr ? 1. : static_cast<double>(weight[of_all.channel(cell)]);
  }
};

/// The gradients of a channel's weight and bias, over all samples.
struct ParameterGrad {
  Cells cells;
  const Sums* sums;  // of each cell, after FinishGrad
  float *dweight, *dbias;
  CYTRA_CELL void operator()(int64_t channel) const {
    Sums all{0, 0};
    for (int64_t cell = channel; cell < cells.count(); cell += cells.channels) {
      all.first += sums[cell].first;
      all.second += sums[cell].second;
    }
    dweight[channel] = static_cast<float>(all.second);
    dbias[channel] = static_cast<float>(all.first);
  }
};

/// dx = dz grad_scale + (x - center) slant + offset
struct InputGrad {
  static constexpr bool kTakesGrad = true;
  const Coefficients* coefficients;
  float slope;
  CYTRA_CELL float operator()(const Coefficients& of, float x, float grad) const {
    const float centered = x - of.center;
    const float dz = centered * of.scale + of.shift > 0 ? grad : grad * slope;
    return dz * of.grad_scale + centered * of.slant + of.offset;
  }
};

}  // namespace cytra::ops::gpu
