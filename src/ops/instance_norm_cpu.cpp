#include "ops/instance_norm_cpu.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "ops/instance_norm_kernels.h"

namespace cytra::ops::cpu {
namespace {

// Large against the cost of a call, small against a second-level cache.
constexpr int64_t kBlockSize = 16384;  // values
constexpr int64_t kGrain = 32768;      // values: less is done before a second thread has started
constexpr int64_t kMinBlockRows = 64;  // so that the partial sums stay small against the block

/// A tensor as `groups` runs of memory (rows, channels). Channels-first: a group is a plane, with
/// one channel; channels-last: a group is a sample.
struct Layout {
  int64_t groups, channels, rows, weights;
  int64_t block_rows, blocks;  // of a group: fixed by the shape, so no sum depends on the threads

  Layout(const at::Tensor& x, bool channels_last)
      : groups(channels_last ? x.size(0) : x.size(0) * x.size(1)),
        channels(channels_last ? x.size(1) : 1),
        rows(x.numel() / (groups * channels)),
        weights(x.size(1)),
        block_rows(std::max(kMinBlockRows, kBlockSize / channels)),
        blocks((rows + block_rows - 1) / block_rows) {}
  Block block(int64_t index) const {
    return {std::min(block_rows, rows - index * block_rows), channels};
  }
  int64_t offset(int64_t group, int64_t index) const {
    return (group * rows + index * block_rows) * channels;
  }
  int64_t weight(int64_t group, int64_t channel) const {
    return (group * channels + channel) % weights;
  }
};

bool is_channels_last(const at::Tensor& x) {
  return !x.is_contiguous() && x.is_contiguous(x.suggest_memory_format());
}

/// reduce(group, block, partial) fills the block's partial sums, finish(group, partials) gathers
/// those of all its blocks, apply(group, block) then writes the block.
template <class Reduce, class Finish, class Apply>
void two_passes(const Layout& layout,
                int64_t partial_size,
                const Reduce& reduce,
                const Finish& finish,
                const Apply& apply) {
  const int64_t blocks = layout.blocks, stride = blocks * partial_size;
  const int64_t group_size = layout.rows * layout.channels;
  if (layout.groups >= 2 * at::get_num_threads() || blocks == 1) {
    // Group by group: its second pass finds it in the cache.
    at::parallel_for(0,
                     layout.groups,
                     std::max<int64_t>(1, kGrain / group_size),
                     [&](int64_t begin, int64_t end) {
                       std::vector<double> partials(static_cast<std::size_t>(stride));
                       for (int64_t group = begin; group < end; ++group) {
                         for (int64_t b = 0; b < blocks; ++b)
                           reduce(group, b, partials.data() + b * partial_size);
                         finish(group, partials.data());
                         for (int64_t b = blocks - 1; b >= 0; --b) apply(group, b);
                       }
                     });
    return;
  }
  std::vector<double> partials(static_cast<std::size_t>(layout.groups * stride));
  const int64_t block_size = group_size / blocks;
  at::parallel_for(0,
                   layout.groups * blocks,
                   std::max<int64_t>(1, kGrain / block_size),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t unit = begin; unit < end; ++unit) {
                       reduce(unit / blocks, unit % blocks, partials.data() + unit * partial_size);
                     }
                   });
  for (int64_t group = 0; group < layout.groups; ++group) {
    finish(group, partials.data() + group * stride);
  }
  // Backwards, from what is still in the cache.
  at::parallel_for(0,
                   layout.groups * blocks,
                   std::max<int64_t>(1, kGrain / block_size),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t unit = end - 1; unit >= begin; --unit)
                       apply(unit / blocks, unit % blocks);
                   });
}

/// Mean and squared deviations of a group from those of its blocks, in the first block's place.
/// Source: Chan, Golub, LeVeque, Algorithms for computing the sample variance, 1983.
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
  std::copy(mean.begin(), mean.end(), partials);
  std::copy(squares.begin(), squares.end(), partials + channels);
}

struct Coefficients {
  Coefficients(const Layout& layout, int64_t arrays)
      : channels_(layout.channels),
        stride_(arrays * layout.channels),
        values_(static_cast<std::size_t>(layout.groups * stride_)) {}
  const float* group(int64_t index) const { return values_.data() + index * stride_; }
  void set(int64_t group, int64_t array, int64_t channel, double value) {
    values_[static_cast<std::size_t>(group * stride_ + array * channels_ + channel)] =
        static_cast<float>(value);
  }
  /// For a kernel that reads the input. Both passes come here: the gradient finds the same signs.
  void set_norm(
      int64_t group, int64_t channel, double mean, double rstd, float weight, float bias) {
    // The part of the mean that float32 can't hold goes into the shift: a large offset of the input
    // costs no digits.
    const double center = static_cast<double>(static_cast<float>(mean));
    set(group, kCenter, channel, mean);
    set(group, kScale, channel, weight * rstd);
    set(group, kShift, channel, bias - (mean - center) * weight * rstd);
  }

 private:
  int64_t channels_, stride_;
  std::vector<float> values_;
};

}  // namespace

bool is_supported(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (!x.device().is_cpu() || x.layout() != at::kStrided || x.scalar_type() != at::kFloat) {
    return false;
  }
  if (x.dim() < 3 || x.numel() == 0 || x.is_neg()) return false;
  for (const at::Tensor* parameter : {&weight, &bias}) {
    const bool fits = parameter->defined() && parameter->device().is_cpu() &&
                      parameter->scalar_type() == at::kFloat && parameter->is_contiguous() &&
                      parameter->dim() == 1 && parameter->size(0) == x.size(1);
    if (!fits) return false;
  }
  return x.is_contiguous() || is_channels_last(x);
}

Normalized instance_norm(const at::Tensor& x,
                         const at::Tensor& weight,
                         const at::Tensor& bias,
                         double eps,
                         double slope) {
  const Layout layout(x, is_channels_last(x));
  const int64_t channels = layout.channels, partial_size = 3 * channels;
  const Kernels& kernel = kernels();
  const at::Tensor y = at::empty_like(x);
  const at::Tensor statistics = at::empty({x.size(0), x.size(1), 2}, at::kDouble);
  const float *from = x.const_data_ptr<float>(), *w = weight.const_data_ptr<float>(),
              *b = bias.const_data_ptr<float>();
  float* to = y.mutable_data_ptr<float>();
  double* stats = statistics.mutable_data_ptr<double>();
  Coefficients coefficients(layout, kNormCoefficients);

  const auto reduce = [&](int64_t group, int64_t block, double* partial) {
    kernel.moments(from + layout.offset(group, block),
                   layout.block(block),
                   partial,
                   partial + channels,
                   reinterpret_cast<float*>(partial + 2 * channels));
  };
  const auto finish = [&](int64_t group, double* partials) {
    combine_moments(layout, partial_size, partials);
    for (int64_t c = 0; c < channels; ++c) {
      const double variance = partials[channels + c] / static_cast<double>(layout.rows);
      const double mean = partials[c], rstd = 1 / std::sqrt(variance + eps);
      double* of_channel = stats + 2 * (group * channels + c);
      std::tie(of_channel[0], of_channel[1]) = std::tie(mean, rstd);
      const int64_t parameter = layout.weight(group, c);
      coefficients.set_norm(group, c, mean, rstd, w[parameter], b[parameter]);
    }
  };
  const auto apply = [&](int64_t group, int64_t block) {
    const int64_t offset = layout.offset(group, block);
    kernel.normalize(from + offset,
                     to + offset,
                     layout.block(block),
                     coefficients.group(group),
                     static_cast<float>(slope));
  };
  two_passes(layout, partial_size, reduce, finish, apply);
  return {y, statistics};
}

namespace {

/// The coefficients of the gradient, and the sums over the groups.
class GradTerms {
 public:
  GradTerms(const Kept& kept, const Layout& layout)
      : layout_(layout),
        is_output_(kept.is_output),
        weight_(kept.weight.const_data_ptr<float>()),
        bias_(kept.bias.const_data_ptr<float>()),
        statistics_(kept.statistics.const_data_ptr<double>()),
        coefficients_(layout, kGradCoefficients),
        sums_(static_cast<std::size_t>(2 * layout.groups * layout.channels)) {
    for (int64_t group = 0; group < layout.groups; ++group) {
      for (int64_t c = 0; c < layout.channels; ++c) {
        const int64_t parameter = layout.weight(group, c);
        const double* of_channel = statistics_ + 2 * (group * layout.channels + c);
        if (is_output_) {
          coefficients_.set(group, kCenter, c, bias_[parameter]);
        } else {
          coefficients_.set_norm(
              group, c, of_channel[0], of_channel[1], weight_[parameter], bias_[parameter]);
        }
      }
    }
  }
  const float* coefficients(int64_t group) const { return coefficients_.group(group); }

  /// dx = weight rstd (dz - mean(dz) - xhat mean(dz xhat)), xhat = (u - center) factor + rest.
  void finish(int64_t group, int64_t partial_size, const double* partials) {
    const int64_t channels = layout_.channels;
    const double count = static_cast<double>(layout_.rows);
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0, product = 0;
      for (int64_t b = 0; b < layout_.blocks; ++b) {
        sum += partials[b * partial_size + c];
        product += partials[b * partial_size + channels + c];
      }
      const int64_t index = group * channels + c;
      const double mean = statistics_[2 * index], rstd = statistics_[2 * index + 1];
      const double weight = weight_[layout_.weight(group, c)];
      const double center = static_cast<double>(static_cast<float>(mean));
      const double factor = is_output_ ? 1 / weight : rstd;
      const double rest = is_output_ ? 0 : (center - mean) * rstd;
      product = product * factor + sum * rest;  // from here on the sum of dz xhat
      const double scale = weight * rstd;
      coefficients_.set(group, kGradScale, c, scale);
      coefficients_.set(group, kSlant, c, -scale * factor * product / count);
      coefficients_.set(group, kOffset, c, -scale * (sum + rest * product) / count);
      sums_[2 * index] = sum;
      sums_[2 * index + 1] = product;
    }
  }

  /// The gradient of the bias (part 0) or of the weight (part 1).
  at::Tensor parameter_grad(int64_t part) const {
    std::vector<double> grad(static_cast<std::size_t>(layout_.weights));
    const int64_t total = layout_.groups * layout_.channels;
    for (int64_t i = 0; i < total; ++i) grad[i % layout_.weights] += sums_[2 * i + part];
    const at::Tensor result = at::empty({layout_.weights}, at::kFloat);
    std::copy(grad.begin(), grad.end(), result.mutable_data_ptr<float>());
    return result;
  }

 private:
  const Layout& layout_;
  bool is_output_;
  const float *weight_, *bias_;
  const double* statistics_;
  Coefficients coefficients_;
  std::vector<double> sums_;  // (N,C,2): of dz and of dz xhat
};

}  // namespace

Gradients instance_norm_backward(const Kept& kept, const at::Tensor& grad, bool needs_x) {
  const bool channels_last = is_channels_last(kept.tensor);
  const Layout layout(kept.tensor, channels_last);
  const int64_t partial_size = 2 * layout.channels;
  const at::Tensor dense = grad.to(at::kFloat)
                               .contiguous(channels_last ? kept.tensor.suggest_memory_format()
                                                         : at::MemoryFormat::Contiguous);
  const Kernels& kernel = kernels();
  const float* saved = kept.tensor.const_data_ptr<float>();
  const float* dy = dense.const_data_ptr<float>();
  const at::Tensor dx = needs_x ? at::empty_like(kept.tensor) : at::Tensor();
  float* to = needs_x ? dx.mutable_data_ptr<float>() : nullptr;
  const float slope = static_cast<float>(kept.slope);
  GradTerms terms(kept, layout);

  const auto reduce = [&](int64_t group, int64_t block, double* partial) {
    const int64_t offset = layout.offset(group, block);
    kernel.grad_sums(saved + offset,
                     kept.is_output,
                     dy + offset,
                     layout.block(block),
                     terms.coefficients(group),
                     slope,
                     partial,
                     partial + layout.channels);
  };
  const auto finish = [&](int64_t group, const double* partials) {
    terms.finish(group, partial_size, partials);
  };
  const auto apply = [&](int64_t group, int64_t block) {
    if (!needs_x) return;
    const int64_t offset = layout.offset(group, block);
    kernel.grad_input(saved + offset,
                      kept.is_output,
                      dy + offset,
                      to + offset,
                      layout.block(block),
                      terms.coefficients(group),
                      slope);
  };
  two_passes(layout, partial_size, reduce, finish, apply);
  return {dx, terms.parameter_grad(1), terms.parameter_grad(0)};
}

}  // namespace cytra::ops::cpu
