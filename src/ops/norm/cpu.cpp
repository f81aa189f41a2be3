// The gradient follows torch's native_group_norm; the choice of what is kept for it follows the
// source in norm.cpp.
#include "ops/norm/cpu.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/ATen.h>

#include "ops/norm/kernels.h"
#include "ops/norm/layout.h"

namespace cytra::ops::cpu {
namespace {

/// The mean and squared deviations of a run's cells from those of its blocks, stored in the place
/// of the first block. Source: Chan, Golub, LeVeque, Algorithms for computing the sample variance,
/// 1983.
void combine_moments(const Layout& layout, int64_t partial_size, double* partials) {
  if (layout.blocks == 1) return;
  const int64_t channels = layout.channels;
  std::vector<double> mean(static_cast<std::size_t>(channels)), squares(mean.size());
  const double total = static_cast<double>(layout.rows);
  for (int64_t b = 0; b < layout.blocks; ++b) {
    const double share = static_cast<double>(layout.block(b).rows) / total;
    const double* block_mean = partials + b * partial_size;
    for (int64_t c = 0; c < channels; ++c) mean[c] += share * block_mean[c];
  }
  for (int64_t b = 0; b < layout.blocks; ++b) {
    const double count = static_cast<double>(layout.block(b).rows);
    const double* block_mean = partials + b * partial_size;
    for (int64_t c = 0; c < channels; ++c) {
      const double shift = block_mean[c] - mean[c];
      squares[c] += block_mean[channels + c] + count * shift * shift;
    }
  }
  std::ranges::copy(mean, partials);
  std::ranges::copy(squares, partials + channels);
}

/// The affine map of every cell.
struct Affine {
  const float *weights = nullptr, *biases = nullptr;
  int64_t channels;
  Affine(const at::Tensor& weight, const at::Tensor& bias, int64_t all_channels)
      : channels(all_channels) {
    if (!weight.defined()) return;
    weights = weight.const_data_ptr<float>();
    biases = bias.const_data_ptr<float>();
  }
  double weight(int64_t cell) const { return weights == nullptr ? 1 : weights[cell % channels]; }
  double bias(int64_t cell) const { return biases == nullptr ? 0 : biases[cell % channels]; }
};

double reciprocal_deviation(double variance, double eps) {
  return 1 / std::sqrt(variance + eps);
}

struct Coefficients {
  Coefficients(const Layout& layout, int64_t arrays)
      : channels_(layout.channels),
        stride_(arrays * layout.channels),
        values_(static_cast<std::size_t>(layout.runs * stride_)) {}
  const float* run(int64_t index) const { return values_.data() + index * stride_; }
  void set(int64_t run, int64_t array, int64_t channel, double value) {
    values_[static_cast<std::size_t>(run * stride_ + array * channels_ + channel)] =
        static_cast<float>(value);
  }
  /// Sets a kernel's values to normalise the input. Both passes call it, so the gradient finds the
  /// same signs.
  void set_norm(int64_t run, int64_t channel, double mean, double scale, double bias) {
    // The part of the mean that float32 can't hold goes into the shift: a large offset of the input
    // costs no digits.
    const double center = static_cast<double>(static_cast<float>(mean));
    set(run, kCenter, channel, mean);
    set(run, kScale, channel, scale);
    set(run, kShift, channel, bias - (mean - center) * scale);
  }

 private:
  int64_t channels_, stride_;
  std::vector<float> values_;
};

template <class T>
at::Tensor normalize_typed(const at::Tensor& x,
                           const Affine& affine,
                           const NormForm& form,
                           bool is_fixed,
                           bool in_place,
                           double* statistics) {
  const Layout layout(x, form);
  const int64_t channels = layout.channels, partial_size = 3 * channels;
  const Kernels<T>& kernel = kernels<T>();
  const at::Tensor y = in_place ? x : at::empty_like(x);
  T* to = static_cast<T*>(y.mutable_data_ptr());
  const T* from = static_cast<const T*>(x.const_data_ptr());
  Coefficients coefficients(layout, kNormCoefficients);

  const auto set_cell = [&](int64_t run, int64_t c, int64_t cell, const double*) {
    const double* of_share = statistics + 2 * layout.share(cell);
    const double scale = affine.weight(cell) * reciprocal_deviation(of_share[1], form.eps);
    coefficients.set_norm(run, c, of_share[0], scale, affine.bias(cell));
  };
  const auto reduce = [&](int64_t run, int64_t block, double* partial) {
    kernel.moments(from + layout.offset(run, block),
                   layout.block(block),
                   partial,
                   partial + channels,
                   reinterpret_cast<float*>(partial + 2 * channels));
  };
  const auto finish = [&](int64_t chunk, double* partials) {
    for (int64_t i = 0; i < layout.chunk_runs; ++i)
      combine_moments(layout, partial_size, partials + i * layout.blocks * partial_size);
    const auto cells = [&](const auto& f) { each_cell(layout, chunk, partial_size, partials, f); };
    const double count = static_cast<double>(layout.rows),
                 share_cells = static_cast<double>(layout.share_cells);
    cells([&](int64_t, int64_t c, int64_t cell, const double* of_run) {
      statistics[2 * layout.share(cell)] += of_run[c] / share_cells;
    });
    cells([&](int64_t, int64_t c, int64_t cell, const double* of_run) {
      double* of_share = statistics + 2 * layout.share(cell);
      const double shift = of_run[c] - of_share[0];
      of_share[1] += (of_run[channels + c] / count + shift * shift) / share_cells;
    });
    cells(set_cell);
  };
  const auto apply = [&](int64_t run, int64_t block) {
    const int64_t offset = layout.offset(run, block);
    kernel.normalize(from + offset,
                     to + offset,
                     layout.block(block),
                     coefficients.run(run),
                     static_cast<float>(form.slope));
  };
  if (!is_fixed) {
    two_passes(layout, partial_size, reduce, finish, apply);
    return y;
  }
  for (int64_t chunk = 0; chunk < layout.chunks; ++chunk)
    each_cell(layout, chunk, 0, nullptr, set_cell);
  each_block(layout, false, apply);
  return y;
}

/// The coefficients of the gradient, and the sums over the cells.
class GradTerms {
 public:
  GradTerms(const SavedForBackward& saved, const Layout& layout)
      : layout_(layout),
        is_output_(saved.is_output),
        is_fixed_(saved.is_fixed),
        eps_(saved.form.eps),
        affine_(saved.weight, saved.bias, layout.all_channels),
        statistics_(saved.statistics.const_data_ptr<double>()),
        coefficients_(layout, kGradCoefficients),
        cell_sums_(static_cast<std::size_t>(2 * layout.runs * layout.channels)),
        share_sums_(static_cast<std::size_t>(2 * layout.shares)) {
    for (int64_t run = 0; run < layout.runs; ++run) {
      for (int64_t c = 0; c < layout.channels; ++c) {
        const int64_t cell = run * layout.channels + c;
        if (is_output_) {
          coefficients_.set(run, kCenter, c, affine_.bias(cell));
        } else {
          coefficients_.set_norm(
              run, c, mean(cell), affine_.weight(cell) * rstd(cell), affine_.bias(cell));
        }
      }
    }
  }
  const float* coefficients(int64_t run) const { return coefficients_.run(run); }

  /// dx = weight rstd dz - rstd (mean(weight dz) + xhat mean(weight dz xhat)), the means over those
  /// that share statistics; xhat = (u - center) factor + rest.
  void finish(int64_t chunk, int64_t partial_size, double* partials) {
    const auto cells = [&](const auto& f) { each_cell(layout_, chunk, partial_size, partials, f); };
    cells([&](int64_t, int64_t c, int64_t cell, const double* of_run) {
      double sum = 0, product = 0;
      for (int64_t b = 0; b < layout_.blocks; ++b) {
        sum += of_run[b * partial_size + c];
        product += of_run[b * partial_size + layout_.channels + c];
      }
      cell_sums_[2 * cell] = sum;
      cell_sums_[2 * cell + 1] = product * factor(cell) + sum * rest(cell);
      double* of_share = share_sums_.data() + 2 * layout_.share(cell);
      for (int64_t i = 0; i < 2 && !is_fixed_; ++i)
        of_share[i] += affine_.weight(cell) * cell_sums_[2 * cell + i];
    });
    const double count = static_cast<double>(layout_.rows * layout_.share_cells);
    cells([&](int64_t run, int64_t c, int64_t cell, const double*) {
      const double* of_share = share_sums_.data() + 2 * layout_.share(cell);
      const double share_rstd = rstd(cell);
      coefficients_.set(run, kGradScale, c, affine_.weight(cell) * share_rstd);
      coefficients_.set(run, kSlant, c, -share_rstd * factor(cell) * of_share[1] / count);
      coefficients_.set(
          run, kOffset, c, -share_rstd * (of_share[0] + rest(cell) * of_share[1]) / count);
    });
  }

  /// The gradient of the bias (part 0) or of the weight (part 1).
  at::Tensor parameter_grad(int64_t part) const {
    const auto channels = static_cast<std::size_t>(layout_.all_channels);
    std::vector<double> grad(channels);
    for (std::size_t cell = 0; 2 * cell < cell_sums_.size(); ++cell)
      grad[cell % channels] += cell_sums_[2 * cell + static_cast<std::size_t>(part)];
    const at::Tensor result = at::empty({layout_.all_channels}, at::kFloat);
    std::ranges::copy(grad, result.mutable_data_ptr<float>());
    return result;
  }

 private:
  double mean(int64_t cell) const { return statistics_[2 * layout_.share(cell)]; }
  double rstd(int64_t cell) const {
    return reciprocal_deviation(statistics_[2 * layout_.share(cell) + 1], eps_);
  }
  double factor(int64_t cell) const { return is_output_ ? 1 / affine_.weight(cell) : rstd(cell); }
  double rest(int64_t cell) const {
    if (is_output_) return 0;
    return (static_cast<double>(static_cast<float>(mean(cell))) - mean(cell)) * rstd(cell);
  }

  const Layout& layout_;
  bool is_output_, is_fixed_;
  double eps_;
  Affine affine_;
  const double* statistics_;
  Coefficients coefficients_;
  std::vector<double> cell_sums_;   // of dz and of dz xhat
  std::vector<double> share_sums_;  // the same, times the weight; zero of fixed statistics
};

template <class T>
Gradients backward_typed(const SavedForBackward& saved, const at::Tensor& grad, bool needs_x) {
  const Layout layout(saved.tensor, saved.form);
  const int64_t partial_size = 2 * layout.channels;
  const Kernels<T>& kernel = kernels<T>();
  const T* values = static_cast<const T*>(saved.tensor.const_data_ptr());
  const T* dy = static_cast<const T*>(grad.const_data_ptr());
  const at::Tensor dx = needs_x ? at::empty_like(saved.tensor) : at::Tensor();
  T* to = needs_x ? static_cast<T*>(dx.mutable_data_ptr()) : nullptr;
  const float slope = static_cast<float>(saved.form.slope);
  GradTerms terms(saved, layout);

  const auto reduce = [&](int64_t run, int64_t block, double* partial) {
    const int64_t offset = layout.offset(run, block);
    kernel.grad_sums(values + offset,
                     saved.is_output,
                     dy + offset,
                     layout.block(block),
                     terms.coefficients(run),
                     slope,
                     partial,
                     partial + layout.channels);
  };
  const auto finish = [&](int64_t chunk, double* partials) {
    terms.finish(chunk, partial_size, partials);
  };
  const auto apply = [&](int64_t run, int64_t block) {
    if (!needs_x) return;
    const int64_t offset = layout.offset(run, block);
    kernel.grad_input(values + offset,
                      saved.is_output,
                      dy + offset,
                      to + offset,
                      layout.block(block),
                      terms.coefficients(run),
                      slope);
  };
  two_passes(layout, partial_size, reduce, finish, apply);
  return {dx, terms.parameter_grad(1), terms.parameter_grad(0)};
}

}  // namespace

bool is_supported(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (!x.device().is_cpu() || x.layout() != at::kStrided) return false;
  const at::ScalarType type = x.scalar_type();
  if (type != at::kFloat && type != at::kBFloat16 && type != at::kHalf) return false;
  if (x.dim() < 3 || x.numel() == 0 || x.is_neg()) return false;
  if (weight.defined() != bias.defined()) return false;
  for (const at::Tensor* parameter : {&weight, &bias}) {
    const bool fits =
        !parameter->defined() ||
        (parameter->device().is_cpu() &&
         (parameter->scalar_type() == at::kFloat || parameter->scalar_type() == type) &&
         parameter->is_contiguous() && parameter->dim() == 1 && parameter->size(0) == x.size(1));
    if (!fits) return false;
  }
  return x.is_contiguous() || is_channels_last(x);
}

Normalized normalize(const at::Tensor& x,
                     const at::Tensor& weight,
                     const at::Tensor& bias,
                     const NormForm& form,
                     const at::Tensor& fixed,
                     bool in_place) {
  const bool is_fixed = fixed.defined();
  const int64_t shares = form.across_batch ? x.size(1) : x.size(0) * form.groups;
  const at::Tensor statistics = is_fixed ? fixed : at::zeros({shares, 2}, at::kDouble);
  const Affine affine(weight, bias, x.size(1));
  const auto typed = x.scalar_type() == at::kFloat      ? normalize_typed<float>
                     : x.scalar_type() == at::kBFloat16 ? normalize_typed<Bfloat16>
                                                        : normalize_typed<Float16>;
  return {typed(x, affine, form, is_fixed, in_place, statistics.mutable_data_ptr<double>()),
          statistics};
}

Gradients normalize_backward(const SavedForBackward& saved, const at::Tensor& grad, bool needs_x) {
  const at::MemoryFormat format = is_channels_last(saved.tensor)
                                      ? saved.tensor.suggest_memory_format()
                                      : at::MemoryFormat::Contiguous;
  const at::ScalarType type = saved.tensor.scalar_type();
  const auto typed = type == at::kFloat      ? backward_typed<float>
                     : type == at::kBFloat16 ? backward_typed<Bfloat16>
                                             : backward_typed<Float16>;
  return typed(saved, grad.to(type).contiguous(format), needs_x);
}

}  // namespace cytra::ops::cpu
