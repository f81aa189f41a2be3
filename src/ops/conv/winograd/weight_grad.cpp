// Part of ops/conv/winograd/winograd.h: the weight's gradient, products of points summed over
// tiles.
#include <algorithm>
#include <bit>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "ops/conv/shapes.h"
#include "ops/conv/winograd/kernels.h"
#include "ops/conv/winograd/tiling.h"
#include "ops/conv/winograd/winograd.h"

namespace cytra::ops::cpu {
namespace {

constexpr int64_t kGroupFloats = int64_t{4} << 20, kGroupTiles = 128, kMostGroups = 16;
constexpr int64_t kRows = 16;  // of a matrix of sums that a thread adds to

/// The sums of the products of points: matrices of input x output channels. Tiles are parted into
/// groups with sums of their own; where these would take much memory there is one group, and
/// threads share its matrices. The shapes alone decide, so the number of threads changes no bit.
class PointSums {
 public:
  PointSums(const at::Tensor& x, const at::Tensor& grad, const Triple& padding, bool is_flat)
      : input_(x),
        output_(grad),
        tiling_(input_.samples, output_.sides, padding, is_flat),
        transforms_(winograd_kernels()->transforms[tiling_.depth_index()]),
        of_pixels_(transforms_of(transforms_, x.scalar_type())),
        size_(tiling_.points() * step()),
        groups_(static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(
            std::min(kGroupFloats / size_, tiling_.tiles() / kGroupTiles), 1, kMostGroups))))),
        block_(std::min<int64_t>(divide_up(tiling_.tiles(), groups_),
                                 groups_ == 1              ? 64
                                 : tiling_.depth().in == 1 ? 48
                                                           : 24)),
        patches_(input_, tiling_.patch_sizes()),
        grads_(output_, tiling_.tile_sizes()),
        sums_(at::zeros({groups_ * size_}, at::kFloat)) {}

  void add_all() {
    if (groups_ == 1) {
      add_together();
      return;
    }
    at::parallel_for(0, groups_, 1, [&](int64_t first, int64_t last) {
      for (int64_t group = first; group < last; ++group) add_group(group);
    });
  }

  /// Writes the gradient; the sums are spent.
  void finish(const at::Tensor& weight_grad) {
    const WinogradKernels::Weights to = weights_of(weight_grad, false);
    float* const sums = sums_.data_ptr<float>();
    const int64_t out = output_.channels;
    at::parallel_for(0, input_.channels, 1, [&](int64_t first, int64_t last) {
      for (int64_t channel = first; channel < last; ++channel) {
        for (int64_t group = 1; group < groups_; ++group) {
          for (int64_t point = 0; point < tiling_.points(); ++point) {
            float* const total = sums + point * step() + channel * out;
            const float* const more = total + group * size_;
            for (int64_t k = 0; k < out; ++k) total[k] += more[k];
          }
        }
        WinogradKernels::Weights of_channel = to;
        of_channel.first += channel * to.in_step;
        transforms_.weight_grad(sums + channel * out, step(), out, of_channel);
      }
    });
  }

 private:
  /// The points of a block of tiles: of the image, then of the gradient.
  struct Block {
    float *in, *out;
    int64_t in_step, out_step;
  };

  int64_t step() const { return input_.channels * output_.channels + kStagger; }
  Block block() const {
    const int64_t in_step = block_ * input_.channels + kStagger,
                  out_step = block_ * output_.channels + kStagger;
    float* const memory = scratch(tiling_.points() * (in_step + out_step));
    return {memory, memory + tiling_.points() * in_step, in_step, out_step};
  }
  void to_points(const Block& block, int64_t tile, int64_t place) const {
    const std::byte* pixels[PixelBoxes::kMost];
    const Tiling::Position position = tiling_.position(tile);
    patches_.addresses(position.sample, tiling_.patch(position), pixels);
    of_pixels_.input(pixels, input_.channels, block.in + place * input_.channels, block.in_step);
    grads_.addresses(position.sample, position.first, pixels);
    of_pixels_.grad(pixels, output_.channels, block.out + place * output_.channels, block.out_step);
  }
  /// Adds the products of `tiles` tiles of a block for `rows` input channels.
  void add(const Block& block, int64_t tiles, float* sums, int64_t point, int64_t row, int64_t rows)
      const {
    winograd_kernels()->add_products(block.in + point * block.in_step + row,
                                     input_.channels,
                                     block.out + point * block.out_step,
                                     output_.channels,
                                     sums + point * step() + row * output_.channels,
                                     output_.channels,
                                     rows,
                                     output_.channels,
                                     tiles);
  }
  void add_group(int64_t group) {
    const Block points = block();
    const int64_t end = tiling_.tiles() * (group + 1) / groups_;
    for (int64_t begin = tiling_.tiles() * group / groups_; begin < end; begin += block_) {
      const int64_t tiles = std::min(block_, end - begin);
      for (int64_t t = 0; t < tiles; ++t) to_points(points, begin + t, t);
      for (int64_t point = 0; point < tiling_.points(); ++point)
        add(points, tiles, sums_.data_ptr<float>() + group * size_, point, 0, input_.channels);
    }
  }
  void add_together() {
    const Block points = block();
    const int64_t parts = input_.channels / kRows;
    for (int64_t begin = 0; begin < tiling_.tiles(); begin += block_) {
      const int64_t tiles = std::min(block_, tiling_.tiles() - begin);
      at::parallel_for(0, tiles, 1, [&](int64_t first, int64_t last) {
        for (int64_t t = first; t < last; ++t) to_points(points, begin + t, t);
      });
      at::parallel_for(0, tiling_.points() * parts, 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i)
          add(points, tiles, sums_.data_ptr<float>(), i / parts, i % parts * kRows, kRows);
      });
    }
  }

  const Pixels input_, output_;
  const Tiling tiling_;
  const WinogradKernels::Transforms& transforms_;
  const WinogradKernels::PixelTransforms& of_pixels_;
  const int64_t size_, groups_, block_;  // values of a group's sums; groups; tiles of a block
  const PixelBoxes patches_, grads_;
  const at::Tensor sums_;
};

}  // namespace

at::Tensor winograd_weight_grad(const at::Tensor& x,
                                const at::Tensor& grad,
                                const at::Tensor& weight,
                                at::IntArrayRef padding) {
  const at::Tensor input = x.contiguous(channels_last(x)),
                   output = grad.to(x.scalar_type()).contiguous(channels_last(grad));
  PointSums sums(input, output, triple(padding, 0), is_flat(weight));
  sums.add_all();
  const at::Tensor result = at::empty_like(weight, weight.options().dtype(at::kFloat));
  sums.finish(result);
  return result.to(weight.scalar_type());
}

}  // namespace cytra::ops::cpu
