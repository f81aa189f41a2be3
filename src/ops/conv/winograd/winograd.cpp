#include "ops/conv/winograd/winograd.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/memory.h"
#include "device/convolution.h"
#include "ops/conv/winograd/kernels.h"
#include "ops/conv/winograd/tiling.h"

namespace cytra::ops::cpu {
namespace {

constexpr int64_t kStagger = 16;  // floats between points: else all would fall on the same lines

/// Memory of a thread, which is kept: its first use costs as much as a transform.
float* scratch(int64_t floats) {
  struct Free {
    void operator()(float* data) const { std::free(data); }
  };
  thread_local std::unique_ptr<float, Free> memory;
  thread_local int64_t size = 0;
  if (floats > size) {
    constexpr std::size_t kPage = std::size_t{2} << 20;
    const std::size_t bytes = (static_cast<std::size_t>(floats) * 4 + kPage - 1) / kPage * kPage;
    memory.reset(static_cast<float*>(std::aligned_alloc(kPage, bytes)));
    if (memory == nullptr) throw std::bad_alloc();
    prefer_large_pages(memory.get(), bytes);
    size = static_cast<int64_t>(bytes / 4);
  }
  return memory.get();
}

at::MemoryFormat channels_last(const at::Tensor& tensor) {
  return tensor.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
}

/// Whether a kernel has no depth: its convolution is one of planes.
bool is_flat(const at::Tensor& weight) {
  return weight.dim() == 4 || weight.size(2) == 1;
}

/// A weight's tensor as its convolution reads it; or as the convolution of gradients does, which
/// goes from output channels to input channels with the kernel turned around.
WinogradKernels::Weights weights_of(const at::Tensor& weight, bool is_turned) {
  const int64_t last = weight.dim() - 1, places = is_turned ? 2 : 0;
  WinogradKernels::Weights weights{weight.data_ptr<float>(),
                                   weight.stride(is_turned ? 0 : 1),
                                   weight.stride(is_turned ? 1 : 0),
                                   is_flat(weight) ? 0 : weight.stride(2),
                                   weight.stride(last - 1),
                                   weight.stride(last)};
  if (is_turned) {
    int64_t* const steps[] = {&weights.plane_step, &weights.row_step, &weights.column_step};
    for (int64_t* step : steps) {
      weights.first += places * *step;
      *step = -*step;
    }
  }
  return weights;
}

/// The points of a weight, as [panel][point][input channel][channel of the panel].
at::Tensor weight_points(const WinogradKernels& kernels,
                         const Tiling& tiling,
                         const WinogradKernels::Weights& weights,
                         int64_t in,
                         int64_t out,
                         int64_t panel) {
  at::Tensor result = at::empty({out / panel * tiling.points() * (in * panel + kStagger)}, at::kFloat);
  float* const to = result.data_ptr<float>();
  prefer_large_pages(to, static_cast<std::size_t>(result.nbytes()));
  const auto transform = kernels.transforms[tiling.depth_index()].weights;
  const int64_t panels = out / panel, step = in * panel + kStagger;
  at::parallel_for(0, panels * in, 16, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      WinogradKernels::Weights from = weights;
      const int64_t p = i / in, c = i % in;
      from.first += c * from.in_step + p * panel * from.out_step;
      transform(from, panel, to + p * tiling.points() * step + c * panel, step);
    }
  });
  return result;
}

/// Convolves with weights that lead to `out` channels.
at::Tensor convolve(const at::Tensor& given,
                    const at::Tensor& weight,
                    bool is_turned,
                    const Triple& padding,
                    const at::Tensor& bias) {
  const WinogradKernels& kernels = *winograd_kernels();
  const at::Tensor x = given.contiguous(channels_last(given));
  const int64_t out = weight.size(is_turned ? 1 : 0);
  std::vector<int64_t> shape{x.size(0), out};
  for (int64_t side = 2; side < x.dim(); ++side) {
    shape.push_back(x.size(side) + 1 - weight.size(side) +
                    2 * padding[static_cast<std::size_t>(side + 3 - x.dim())]);
  }
  at::Tensor y = at::empty(shape, x.options().memory_format(channels_last(x)));
  const Pixels input(x), output(y);
  const Tiling tiling(input.samples, output.sides, padding, is_flat(weight));
  const int64_t in = input.channels, points = tiling.points(), panel = kernels.panel(out),
                step = kernels.rows(panel);
  const at::Tensor prepared = weight_points(kernels, tiling, weights_of(weight, is_turned), in, out, panel);
  const float* const of_weights = prepared.const_data_ptr<float>();
  const float* const shift = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
  const auto& transforms = kernels.transforms[tiling.depth_index()];
  const int64_t env_block = getenv("WB") ? atoi(getenv("WB")) : tiling.points() == 36 ? 48 : 24;
  const int64_t most = env_block / step * step;
  const std::vector<float> zeros(static_cast<std::size_t>(in), 0.0F);
  at::parallel_for(0, tiling.tiles(), step, [&](int64_t first, int64_t last) {
    const int64_t block =
        std::min(most, (last - first + step - 1) / step * step);
    const int64_t in_step = block * in + kStagger, out_step = block * panel + kStagger;
    float* const in_points = scratch(points * (in_step + out_step));
    float* const out_points = in_points + points * in_step;
    std::vector<Tiling::Position> positions(static_cast<std::size_t>(block));
    const float* pixels[Tiling::kMostPixels];
    for (int64_t begin = first; begin < last; begin += block) {
      const int64_t tiles = std::min(block, last - begin), rows = (tiles + step - 1) / step * step;
      for (int64_t t = 0; t < tiles; ++t) {
        const auto& position = positions[static_cast<std::size_t>(t)] =
            tiling.position(begin + t);
        tiling.patch(position, input, zeros.data(), pixels);
        transforms.input(pixels, in, in_points + t * in, in_step);
      }
      for (int64_t p = 0; p < out / panel; ++p) {
        for (int64_t point = 0; point < points; ++point) {
          kernels.multiply(in_points + point * in_step,
                           of_weights + (p * points + point) * (in * panel + kStagger),
                           out_points + point * out_step,
                           rows,
                           in,
                           panel);
        }
        for (int64_t t = 0; t < tiles; ++t) {
          WinogradKernels::Tile tile = tiling.tile(positions[static_cast<std::size_t>(t)], output);
          tile.pixels += p * panel;
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

namespace {

/// Whether the kernels take it.
bool fits(const at::Tensor& x, const at::Tensor& weight, const ConvOptions& options) {
  if (options.transposed || options.groups != 1 || !are_all(options.stride, 1) ||
      !are_all(options.dilation, 1) || x.scalar_type() != at::kFloat ||
      weight.scalar_type() != at::kFloat || x.dim() != weight.dim() || x.numel() == 0 ||
      x.size(1) != weight.size(1) || x.size(1) % 16 != 0 || weight.size(0) % 16 != 0)
    return false;
  for (int64_t side = x.dim() - 1; side >= 2; --side) {
    const int64_t padding = options.padding[static_cast<std::size_t>(side - 2)];
    const bool has_no_depth = side == x.dim() - 3 && weight.size(side) == 1;
    if (padding < 0 || padding > (has_no_depth ? 0 : 1) ||
        weight.size(side) != (has_no_depth ? 1 : 3) || x.size(side) + 2 * padding < weight.size(side))
      return false;
  }
  return winograd_kernels() != nullptr;
}

}  // namespace

bool uses_winograd(const at::Tensor& x, const at::Tensor& weight, const ConvOptions& options) {
  const device::ConvAlgorithm algorithm = device::conv_algorithm();
  return algorithm != device::ConvAlgorithm::direct && fits(x, weight, options);
}

at::Tensor winograd(const at::Tensor& x,
                    const at::Tensor& weight,
                    const at::Tensor& bias,
                    at::IntArrayRef padding) {
  return convolve(x,
                  weight,
                  false,
                  triple(padding, 0),
                  bias.defined() ? bias.contiguous() : bias);
}

at::Tensor winograd_input_grad(const at::Tensor& grad,
                               const at::Tensor& weight,
                               at::IntArrayRef padding) {
  std::vector<int64_t> around = padding.vec();
  for (std::size_t side = 0; side < around.size(); ++side)
    around[side] = weight.size(static_cast<int64_t>(side) + 2) - 1 - around[side];
  return convolve(grad, weight, true, triple(around, 0), {});
}

at::Tensor winograd_weight_grad(const at::Tensor& given_x,
                                const at::Tensor& given_grad,
                                const at::Tensor& weight,
                                at::IntArrayRef padding) {
  const WinogradKernels& kernels = *winograd_kernels();
  const at::Tensor x = given_x.contiguous(channels_last(given_x)),
                   grad = given_grad.contiguous(channels_last(given_grad));
  at::Tensor result = at::empty_like(weight);
  const Pixels input(x), output(grad);
  const Tiling tiling(input.samples, output.sides, triple(padding, 0), is_flat(weight));
  const int64_t in = input.channels, out = output.channels, points = tiling.points(),
                sums_step = in * out + kStagger, sums_size = points * sums_step,
                tiles = tiling.tiles();
  const auto& transforms = kernels.transforms[tiling.depth_index()];
  // The tiles' sums in groups, whose number depends on shapes alone and so does every bit.
  constexpr int64_t kGroupFloats = int64_t{4} << 20, kGroupTiles = 128;
  const int64_t groups = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(
      std::clamp<int64_t>(std::min(kGroupFloats / sums_size, tiles / kGroupTiles), 1, 16))));
  static const int64_t env_block = getenv("WG") ? atoi(getenv("WG")) : 64;
  const int64_t block = std::min(env_block, (tiles + groups - 1) / groups);
  at::Tensor sums = at::zeros({groups * sums_size}, at::kFloat);
  const std::vector<float> zeros(static_cast<std::size_t>(std::max(in, out)), 0.0F);
  const int64_t in_step = block * in + kStagger, out_step = block * out + kStagger;

  const auto to_points = [&](float* in_points, float* out_points, int64_t begin, int64_t t) {
    const float* pixels[Tiling::kMostPixels];
    const auto position = tiling.position(begin + t);
    tiling.patch(position, input, zeros.data(), pixels);
    transforms.input(pixels, in, in_points + t * in, in_step);
    tiling.pixels(position, output, zeros.data(), pixels);
    transforms.grad(pixels, out, out_points + t * out, out_step);
  };
  const auto add = [&](const float* in_points,
                       const float* out_points,
                       float* to,
                       int64_t point,
                       int64_t row,
                       int64_t rows,
                       int64_t depth) {
    kernels.add_products(in_points + point * in_step + row,
                         in,
                         out_points + point * out_step,
                         out,
                         to + point * sums_step + row * out,
                         out,
                         rows,
                         out,
                         depth);
  };
  if (groups > 1) {
    at::parallel_for(0, groups, 1, [&](int64_t first, int64_t last) {
      float* const in_points = scratch(points * (in_step + out_step));
      float* const out_points = in_points + points * in_step;
      for (int64_t group = first; group < last; ++group) {
        const int64_t end = tiles * (group + 1) / groups;
        for (int64_t begin = tiles * group / groups; begin < end; begin += block) {
          const int64_t count = std::min(block, end - begin);
          for (int64_t t = 0; t < count; ++t) to_points(in_points, out_points, begin, t);
          for (int64_t point = 0; point < points; ++point) {
            add(in_points,
                out_points,
                sums.data_ptr<float>() + group * sums_size,
                point,
                0,
                in,
                count);
          }
        }
      }
    });
  } else {
    float* const in_points = scratch(points * (in_step + out_step));
    float* const out_points = in_points + points * in_step;
    for (int64_t begin = 0; begin < tiles; begin += block) {
      const int64_t count = std::min(block, tiles - begin);
      at::parallel_for(0, count, 1, [&](int64_t first, int64_t last) {
        for (int64_t t = first; t < last; ++t) to_points(in_points, out_points, begin, t);
      });
      const int64_t parts = in / 16;
      at::parallel_for(0, points * parts, 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
          add(in_points,
              out_points,
              sums.data_ptr<float>(),
              i / parts,
              i % parts * 16,
              16,
              count);
        }
      });
    }
  }
  WinogradKernels::Weights to = weights_of(result, false);
  at::parallel_for(0, in, 1, [&](int64_t first, int64_t last) {
    float* const of_sums = sums.data_ptr<float>();
    for (int64_t c = first; c < last; ++c) {
      for (int64_t group = 1; group < groups; ++group) {
        for (int64_t point = 0; point < points; ++point) {
          float* const total = of_sums + point * sums_step + c * out;
          const float* const more = total + group * sums_size;
          for (int64_t k = 0; k < out; ++k) total[k] += more[k];
        }
      }
      WinogradKernels::Weights of_channel = to;
      of_channel.first += c * to.in_step;
      transforms.weight_grad(of_sums + c * out, sums_step, out, of_channel);
    }
  });
  return result;
}

}  // namespace cytra::ops::cpu
