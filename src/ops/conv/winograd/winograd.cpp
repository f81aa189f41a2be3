#include "ops/conv/winograd/winograd.h"

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/memory.h"
#include "device/convolution.h"
#include "ops/conv/constant_weights.h"
#include "ops/conv/shapes.h"
#include "ops/conv/winograd/kernels.h"
#include "ops/conv/winograd/tiling.h"

namespace cytra::ops::cpu {
namespace {

/// Whether the kernels read and write pixels of this type.
bool has_kernels(at::ScalarType type) {
  return type == at::kFloat || type == at::kBFloat16 || type == at::kHalf;
}

/// Whether the kernels can.
bool fits(const at::Tensor& x, const at::Tensor& weight, const ConvOptions& options) {
  const at::ScalarType type = x.scalar_type();
  if (options.transposed || options.groups != 1 || !are_all(options.stride, 1) ||
      !are_all(options.dilation, 1) || !has_kernels(type) ||
      (weight.scalar_type() != at::kFloat && weight.scalar_type() != type) ||
      x.dim() != weight.dim() || x.numel() == 0 || x.size(1) != weight.size(1) ||
      x.size(1) % 16 != 0 || weight.size(0) % 16 != 0)
    return false;
  for (int64_t side = 2; side < x.dim(); ++side) {
    const int64_t padding = options.padding[static_cast<std::size_t>(side - 2)],
                  kernel = x.dim() == 5 && side == 2 && weight.size(2) == 1 ? 1 : 3;
    if (weight.size(side) != kernel || padding < 0 || padding > kernel / 2 ||
        x.size(side) + 2 * padding < kernel)
      return false;
  }
  return winograd_kernels() != nullptr;
}

/// What a convolution costs, in multiplications of a direct one.
struct Costs {
  double direct, winograd;
};

/// Estimates the costs. Measured on a Zen 4 (docs/benchmarks.md, "conv").
Costs costs_of(const at::Tensor& x, const at::Tensor& weight, const ConvOptions& options) {
  constexpr double kTransform = 20, kWeight = 120;  // of a value, to or from a point
  Triple sides{1, 1, 1};
  for (int64_t side = 2; side < x.dim(); ++side) {
    const auto i = static_cast<std::size_t>(side);
    sides[i + 3 - static_cast<std::size_t>(x.dim())] =
        x.size(side) + 2 * options.padding[i - 2] + 1 - weight.size(side);
  }
  const Tiling tiling(x.size(0), sides, triple(options.padding, 0), is_flat(weight));
  const auto out = static_cast<double>(weight.size(0)), in = static_cast<double>(weight.size(1)),
             points = static_cast<double>(tiling.points()),
             tiles = static_cast<double>(tiling.tiles()),
             pixels = static_cast<double>(x.size(0) * sides[0] * sides[1] * sides[2]);
  // What is prepared once and kept does not count, so that it holds for any batch.
  const double of_weights = ConstantWeights::active(weight, options) != nullptr ? 0 : kWeight;
  return {pixels * static_cast<double>(weight.numel()),
          points * (tiles * (in * out + kTransform * (in + out)) + of_weights * in * out)};
}

thread_local double spared = 0;

/// The points of a weight, as [panel][point][input channel][channel of the panel], with kStagger
/// values between points.
at::Tensor weight_points(const WinogradKernels& kernels,
                         const Tiling& tiling,
                         const WinogradKernels::Weights& weights,
                         int64_t in,
                         int64_t out,
                         int64_t panel) {
  const int64_t panels = out / panel, step = in * panel + kStagger, size = tiling.points() * step;
  at::Tensor result = at::empty({panels * size}, at::kFloat);
  float* const to = result.data_ptr<float>();
  prefer_large_pages(to, result.nbytes());
  const auto transform = kernels.transforms[tiling.depth_index()].weights;
  at::parallel_for(0, panels * in, 16, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      WinogradKernels::Weights from = weights;
      const int64_t p = i / in, channel = i % in;
      from.first += channel * from.in_step + p * panel * from.out_step;
      transform(from, panel, to + p * size + channel * panel, step);
    }
  });
  return result;
}

constexpr std::size_t kCacheBytes = 16'000'000;  // that are likely to be read again from a cache

/// Convolves with a weight, or with the turned one that leads gradients back. `kept` keeps what is
/// prepared of the weight; null: nothing does.
at::Tensor convolve(const at::Tensor& given,
                    const at::Tensor& weight,
                    bool is_turned,
                    const Triple& padding,
                    const at::Tensor& given_bias,
                    ConstantWeights* kept) {
  const WinogradKernels& kernels = *winograd_kernels();
  const at::Tensor x = given.contiguous(channels_last(given));
  const int64_t in = x.size(1), out = weight.size(is_turned ? 1 : 0);
  std::vector<int64_t> shape{x.size(0), out};
  for (int64_t side = 2; side < x.dim(); ++side) {
    shape.push_back(x.size(side) + 1 - weight.size(side) +
                    2 * padding[static_cast<std::size_t>(side + 3 - x.dim())]);
  }
  const at::Tensor y = at::empty(shape, x.options().memory_format(channels_last(x)));
  const Pixels input(x), output(y);
  const Tiling tiling(input.samples, output.sides, padding, is_flat(weight));
  const auto& transforms = transforms_of(kernels.transforms[tiling.depth_index()], x.scalar_type());
  const int64_t points = tiling.points(), panel = kernels.panel(out), step = kernels.rows(panel),
                weight_step = in * panel + kStagger;
  const auto prepare = [&] {
    const at::Tensor floats = weight.to(at::kFloat);
    return weight_points(kernels, tiling, weights_of(floats, is_turned), in, out, panel);
  };
  const at::Tensor prepared = kept != nullptr ? kept->get(weight, points, prepare) : prepare();
  const float* const of_weights = prepared.const_data_ptr<float>();
  const at::Tensor bias =
      given_bias.defined() ? given_bias.to(at::kFloat).contiguous() : given_bias;
  const float* const shift = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
  const PixelBoxes patches(input, tiling.patch_sizes());
  const bool past_caches = y.nbytes() > kCacheBytes;
  // A block's points stay in a second-level cache.
  const int64_t most = (tiling.depth().in == 1 ? 48 : 24) / step * step;
  at::parallel_for(0, tiling.tiles(), step, [&](int64_t first, int64_t last) {
    const int64_t block = std::min(most, divide_up(last - first, step) * step),
                  in_step = block * in + kStagger, out_step = block * panel + kStagger;
    float* const in_points = scratch(points * (in_step + out_step));
    float* const out_points = in_points + points * in_step;
    std::vector<Tiling::Position> positions(static_cast<std::size_t>(block));
    const std::byte* pixels[PixelBoxes::kMost];
    for (int64_t begin = first; begin < last; begin += block) {
      const int64_t tiles = std::min(block, last - begin), rows = divide_up(tiles, step) * step;
      for (int64_t t = 0; t < tiles; ++t) {
        auto& position = positions[static_cast<std::size_t>(t)] = tiling.position(begin + t);
        patches.addresses(position.sample, tiling.patch(position), pixels);
        transforms.input(pixels, in, in_points + t * in, in_step);
      }
      for (int64_t p = 0; p < out / panel; ++p) {
        for (int64_t point = 0; point < points; ++point) {
          kernels.multiply(in_points + point * in_step,
                           of_weights + (p * points + point) * weight_step,
                           out_points + point * out_step,
                           rows,
                           in,
                           panel);
        }
        for (int64_t t = 0; t < tiles; ++t) {
          WinogradKernels::Tile tile =
              tiling.tile(positions[static_cast<std::size_t>(t)], output, past_caches);
          tile.pixels += p * panel * output.value_bytes;
          transforms.output(out_points + t * panel,
                            out_step,
                            panel,
                            shift != nullptr ? shift + p * panel : nullptr,
                            tile);
        }
      }
    }
  });
  return y.contiguous(given.suggest_memory_format());
}

}  // namespace

bool uses_winograd(const at::Tensor& x, const at::Tensor& weight, const ConvOptions& options) {
  constexpr double kMargin = 1.15;
  const device::ConvAlgorithm algorithm = device::conv_algorithm();
  if (algorithm == device::ConvAlgorithm::direct || !fits(x, weight, options)) return false;
  if (algorithm == device::ConvAlgorithm::winograd) return true;
  if (x.scalar_type() != at::kFloat && device::has_matrix_units(x.scalar_type())) return false;
  const auto [direct, winograd] = costs_of(x, weight, options);
  return kMargin * winograd <= direct;
}

double spared_multiplications() {
  return spared;
}

at::Tensor winograd(const at::Tensor& x,
                    const at::Tensor& weight,
                    const at::Tensor& bias,
                    const ConvOptions& options) {
  const Costs costs = costs_of(x, weight, options);
  spared += costs.direct - costs.winograd;
  return convolve(
      x, weight, false, triple(options.padding, 0), bias, ConstantWeights::active(weight, options));
}

at::Tensor winograd_input_grad(const at::Tensor& grad,
                               const at::Tensor& weight,
                               at::IntArrayRef padding) {
  Triple around = triple(padding, 0);
  for (int64_t side = 2; side < weight.dim(); ++side) {
    int64_t& pixels = around[static_cast<std::size_t>(side + 3 - weight.dim())];
    pixels = weight.size(side) - 1 - pixels;
  }
  return convolve(grad, weight, true, around, {}, nullptr);
}

}  // namespace cytra::ops::cpu
