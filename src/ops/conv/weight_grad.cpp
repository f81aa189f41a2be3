// Part of ops/conv/backward.h: the weight's gradient as outer products of pixels, summed in
// registers: as a matrix product of the packed images (channels x pixels) and gradients (pixels x
// channels) for every place of the kernel. Packing: Goto, van de Geijn, Anatomy of high-performance
// matrix multiplication, 2008.
#include <algorithm>
#include <numeric>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/util/accumulate.h>

#include "ops/conv/backward.h"
#include "ops/conv/kernels.h"
#include "ops/conv/shapes.h"

namespace cytra::ops::cpu {
namespace {

constexpr int64_t kBlockUnits = 256;  // a wide tile's gradients fill half a first-level cache
constexpr int64_t kChunkBytes = 512 * 1024;         // of sums: half a second-level cache
constexpr int64_t kChunkGrads = 64;                 // channels
constexpr int64_t kMinChannels = 32;                // with fewer oneDNN is as fast
constexpr int64_t kSplitBytes = int64_t{64} << 20;  // of all sums that are added at the end

/// The size of a part, a multiple of `multiple`, when 0 to `size` is cut into as few equal parts
/// of at most `most` as possible.
int64_t part_size(int64_t size, int64_t most, int64_t multiple) {
  const int64_t parts = divide_up(size, std::max(most, multiple));
  return divide_up(divide_up(size, parts), multiple) * multiple;
}

/// The sizes, and how the work is cut: into chunks (image channels x gradient channels), and each
/// of them into ranges of blocks of pixels, whose sums are added at the end.
struct WeightGradPlan {
  WeightGradPlan(const at::Tensor& image,
                 const at::Tensor& grad,
                 const ConvForm& form,
                 const ConvKernels& k)
      : kernels(k),
        samples(image.size(0)),
        channels(image.size(1)),
        grads(grad.size(1)),
        in(triple(image.sizes().slice(2), 1)),
        out(triple(grad.sizes().slice(2), 1)),
        kernel(triple(form.kernel, 1)),
        stride(triple(form.stride, 1)),
        padding(triple(form.padding, 0)),
        taps(kernel[0] * kernel[1] * kernel[2]),
        chunk_grads(part_size(grads, kChunkGrads, k.lanes)),
        chunk_channels(part_size(channels, kChunkBytes / (4 * taps * chunk_grads), k.channels)),
        grad_chunks(divide_up(grads, chunk_grads)),
        chunks(grad_chunks * divide_up(channels, chunk_channels)) {
    block[2] = part_size(out[2], out[0] == 1 ? 32 : 16, k.unit);
    block[0] = std::min<int64_t>(out[0], 4);
    block[1] = part_size(out[1], kBlockUnits * k.unit / (block[0] * block[2]), 1);
    blocks = samples;
    for (std::size_t d = 0; d < 3; ++d) {
      grid[d] = divide_up(out[d], block[d]);
      blocks *= grid[d];
    }
    // A unit of the next offset is `period` columns further: a copy of the row serves all places
    // of the kernel that are a multiple of it apart.
    period = k.unit == 1 ? stride[2] : stride[2] == 1 ? k.unit : kernel[2];
    copies = std::min(period, kernel[2]);
    const int64_t threads = at::get_num_threads();
    splits = std::clamp<int64_t>(threads / std::gcd(threads, chunks),
                                 1,
                                 std::min(blocks, kSplitBytes / (4 * chunks * sums()) + 1));
  }
  int64_t sums() const { return taps * chunk_channels * chunk_grads; }  // of a task
  int64_t tasks() const { return chunks * splits; }

  const ConvKernels& kernels;
  int64_t samples, channels, grads;
  Triple in, out, kernel, stride, padding;
  int64_t taps, chunk_grads, chunk_channels, grad_chunks, chunks;
  Triple block{}, grid{};
  int64_t blocks = 0, period = 0, copies = 0, splits = 0;
};

/// Pixels of the output.
struct PixelBlock {
  PixelBlock(const WeightGradPlan& plan, int64_t number) {
    for (std::size_t d = 3; d-- > 0; number /= plan.grid[d]) {
      begin[d] = number % plan.grid[d] * plan.block[d];
      size[d] = std::min(plan.block[d], plan.out[d] - begin[d]);
      halo[d] = (size[d] - 1) * plan.stride[d] + plan.kernel[d];
      first[d] = begin[d] * plan.stride[d] - plan.padding[d];
    }
    sample = number;
  }
  int64_t sample;
  Triple begin, size;
  Triple first, halo;  // of the image's part; it may leave the image
};

/// Fetches memory into the second-level cache while something else is computed.
class Prefetch {
 public:
  void add(const void* from, int64_t bytes) { ranges_.push_back({from, bytes}); }
  /// Spreads the fetching over `calls` calls of run().
  void begin(int64_t calls) { step_ = divide_up(std::ssize(ranges_), calls); }
  void run() {
    for (int64_t i = 0; i < step_ && !ranges_.empty(); ++i, ranges_.pop_back()) {
      const auto& [from, bytes] = ranges_.back();
      for (int64_t byte = 0; byte < bytes; byte += 64)
        __builtin_prefetch(static_cast<const char*>(from) + byte, 0, 2);
    }
  }

 private:
  std::vector<std::pair<const void*, int64_t>> ranges_;
  int64_t step_ = 0;
};

/// The sums of a chunk over some blocks.
template <class T>
class WeightGradTile {
 public:
  WeightGradTile(const WeightGradPlan& plan, int64_t chunk, const T* image, const T* grad)
      : plan_(plan),
        kernels_(plan.kernels),
        image_(image),
        grad_(grad),
        first_channel_(chunk / plan.grad_chunks * plan.chunk_channels),
        first_grad_(chunk % plan.grad_chunks * plan.chunk_grads),
        channels_(std::min(plan.chunk_channels, plan.channels - first_channel_)),
        grads_(std::min(plan.chunk_grads, plan.grads - first_grad_)),
        unit_(kernels_.channels * kernels_.unit) {}

  void run(int64_t first, int64_t end, float* sums) {
    const Triple &size = plan_.block, &stride = plan_.stride, &kernel = plan_.kernel;
    row_ = (units_of(size[2]) + extra_units()) * unit_;
    plane_ = ((size[1] - 1) * stride[1] + kernel[1]) * row_;
    copy_ = ((size[0] - 1) * stride[0] + kernel[0]) * plane_;
    tile_ = copy_ * plan_.copies;
    image_tiles_.resize(static_cast<std::size_t>(tile_ * divide_up(channels_, kernels_.channels)));
    grad_tiles_.resize(static_cast<std::size_t>(size[0] * size[1] * units_of(size[2]) *
                                                kernels_.unit * plan_.chunk_grads));
    for (int64_t number = first; number < end; ++number) {
      const PixelBlock block(plan_, number);
      pack_image(block);
      pack_grad(block);
      if (number + 1 < end) prefetch({plan_, number + 1});
      multiply(block, sums);
    }
  }

  /// Calls f(offset of its sums, channels of the gradient from `k` on, number of them, how many
  /// fit) for each tile of the gradient.
  void each_grad_tile(const auto& f) const {
    for (int64_t k = 0, width = 0; k < grads_; k += width) {
      width = grads_ - k > kernels_.lanes ? 2 * kernels_.lanes : kernels_.lanes;
      f(k, std::min(width, grads_ - k), width);
    }
  }
  int64_t first_channel() const { return first_channel_; }
  int64_t first_grad() const { return first_grad_; }
  int64_t channels() const { return channels_; }

 private:
  int64_t units_of(int64_t pixels) const { return divide_up(pixels, kernels_.unit); }
  int64_t extra_units() const { return (plan_.kernel[2] - 1) / plan_.period; }

  /// The row in the chunk's first channel; null outside of the image.
  const T* image_row(int64_t sample, int64_t z, int64_t y) const {
    const Triple& in = plan_.in;
    if (z < 0 || z >= in[0] || y < 0 || y >= in[1]) return nullptr;
    return image_ + ((sample * in[0] + z) * in[1] + y) * in[2] * plan_.channels + first_channel_;
  }
  const T* grad_row(int64_t sample, int64_t z, int64_t y) const {
    const Triple& out = plan_.out;
    return grad_ + ((sample * out[0] + z) * out[1] + y) * out[2] * plan_.grads + first_grad_;
  }

  void pack_image(const PixelBlock& block) {
    const int64_t units = units_of(block.size[2]) + extra_units();
    for (int64_t plane = 0; plane < block.halo[0]; ++plane) {
      for (int64_t row = 0; row < block.halo[1]; ++row) {
        const T* const from = image_row(block.sample, block.first[0] + plane, block.first[1] + row);
        T* to = image_tiles_.data() + plane * plane_ + row * row_;
        for (int64_t c = 0; c < channels_; c += kernels_.channels, to += tile_) {
          for (int64_t copy = 0; copy < plan_.copies; ++copy) {
            kernels_.pack({from == nullptr ? image_ : from + c,
                           plan_.channels,
                           from == nullptr ? 0 : plan_.in[2],
                           block.first[2] + copy,
                           plan_.stride[2],
                           std::min(kernels_.channels, channels_ - c)},
                          units,
                          kernels_.channels,
                          to + copy * copy_);
          }
        }
      }
    }
  }

  void pack_grad(const PixelBlock& block) {
    const int64_t units = units_of(block.size[2]);
    T* to = grad_tiles_.data();
    each_grad_tile([&](int64_t k, int64_t present, int64_t width) {
      for (int64_t z = 0; z < block.size[0]; ++z) {
        for (int64_t y = 0; y < block.size[1]; ++y, to += units * width * kernels_.unit) {
          kernels_.pack({grad_row(block.sample, block.begin[0] + z, block.begin[1] + y) + k,
                         plan_.grads,
                         block.begin[2] + block.size[2],
                         block.begin[2],
                         1,
                         present},
                        units,
                        width,
                        to);
        }
      }
    });
  }

  void prefetch(const PixelBlock& block) {
    const int64_t begin = std::max<int64_t>(block.first[2], 0),
                  end = std::min(block.first[2] + block.halo[2], plan_.in[2]);
    for (int64_t z = 0; z < block.halo[0]; ++z) {
      for (int64_t y = 0; y < block.halo[1]; ++y) {
        const T* const row = image_row(block.sample, block.first[0] + z, block.first[1] + y);
        for (int64_t x = begin; x < end && row != nullptr; ++x)
          prefetch_.add(row + x * plan_.channels, channels_ * int64_t{sizeof(T)});
      }
    }
    for (int64_t z = 0; z < block.size[0]; ++z) {
      for (int64_t y = 0; y < block.size[1]; ++y) {
        const T* const row = grad_row(block.sample, block.begin[0] + z, block.begin[1] + y);
        for (int64_t x = 0; x < block.size[2]; ++x)
          prefetch_.add(row + (block.begin[2] + x) * plan_.grads, grads_ * int64_t{sizeof(T)});
      }
    }
    prefetch_.begin(divide_up(grads_, 2 * kernels_.lanes) *
                    divide_up(channels_, kernels_.channels) * plan_.taps);
  }

  void multiply(const PixelBlock& block, float* sums) {
    const Triple &size = block.size, &kernel = plan_.kernel;
    const ConvUnits units{
        size[0], size[1], units_of(size[2]), plan_.stride[0] * plane_, plan_.stride[1] * row_};
    const T* dy = grad_tiles_.data();
    each_grad_tile([&](int64_t, int64_t, int64_t width) {
      const auto run = width == kernels_.lanes ? kernels_.multiply : kernels_.multiply_wide;
      const T* x = image_tiles_.data();
      for (int64_t c = 0; c < channels_; c += kernels_.channels, x += tile_) {
        for (int64_t i = 0; i < kernel[0]; ++i) {
          for (int64_t j = 0; j < kernel[1]; ++j) {
            const T* const row = x + i * plane_ + j * row_;
            for (int64_t l = 0; l < kernel[2]; ++l, sums += kernels_.channels * width) {
              run(row + l % plan_.period * copy_ + l / plan_.period * unit_, dy, units, sums);
              prefetch_.run();
            }
          }
        }
      }
      dy += size[0] * size[1] * units.units * width * kernels_.unit;
    });
  }

  const WeightGradPlan& plan_;
  const ConvKernels& kernels_;
  const T *image_, *grad_;
  int64_t first_channel_, first_grad_, channels_, grads_;
  int64_t unit_, row_ = 0, plane_ = 0, copy_ = 0, tile_ = 0;  // values of the packed image
  std::vector<T> image_tiles_, grad_tiles_;
  Prefetch prefetch_;
};

/// result[k][c][tap] = the sum over the splits.
template <class T>
void add_splits(const WeightGradPlan& plan, const float* sums, at::Tensor& result) {
  T* const to = result.mutable_data_ptr<T>();
  const int64_t grad_step = result.stride(0), channel_step = result.stride(1),
                tap_step = result.stride(-1), tile = plan.kernels.channels;
  for (int64_t chunk = 0; chunk < plan.chunks; ++chunk, sums += plan.splits * plan.sums()) {
    const WeightGradTile<T> task(plan, chunk, nullptr, nullptr);
    const float* from = sums;
    task.each_grad_tile([&](int64_t k, int64_t present, int64_t width) {
      for (int64_t c = 0; c < task.channels(); c += tile) {
        T* to_tap =
            to + (task.first_grad() + k) * grad_step + (task.first_channel() + c) * channel_step;
        const int64_t count = std::min(tile, task.channels() - c);
        for (int64_t tap = 0; tap < plan.taps; ++tap, to_tap += tap_step, from += tile * width) {
          for (int64_t i = 0; i < present; ++i) {
            for (int64_t j = 0; j < count; ++j) {
              float sum = from[j * width + i];
              for (int64_t split = 1; split < plan.splits; ++split)
                sum += from[split * plan.sums() + j * width + i];
              to_tap[i * grad_step + j * channel_step] = static_cast<T>(sum);
            }
          }
        }
      }
    });
  }
}

template <class T>
void run_plan(const WeightGradPlan& plan,
              const at::Tensor& image,
              const at::Tensor& grad,
              at::Tensor& result) {
  const at::Tensor memory = at::zeros({plan.tasks(), plan.sums()}, at::kFloat);
  float* const sums = memory.mutable_data_ptr<float>();
  const T *x = image.const_data_ptr<T>(), *dy = grad.const_data_ptr<T>();
  at::parallel_for(0, plan.tasks(), 1, [&](int64_t first, int64_t last) {
    for (int64_t number = first; number < last; ++number) {
      const int64_t split = number % plan.splits;
      WeightGradTile<T>(plan, number / plan.splits, x, dy)
          .run(plan.blocks * split / plan.splits,
               plan.blocks * (split + 1) / plan.splits,
               sums + number * plan.sums());
    }
  });
  add_splits<T>(plan, sums, result);
}

bool is_last(const at::Tensor& t) {
  return t.is_contiguous(t.dim() == 4 ? at::MemoryFormat::ChannelsLast
                                      : at::MemoryFormat::ChannelsLast3d);
}

}  // namespace

/// Whether our kernel is faster. With AVX-512, packing pays where many pixels share it, and oneDNN
/// is slower with strides and with batches. (With AVX2 oneDNN is slower throughout.) Measured:
/// docs/benchmarks.md, "Weight gradients".
static bool outdoes_onednn(const at::Tensor& image, const at::Tensor& grad, const ConvForm& form) {
  const int64_t pixels = grad.numel() / grad.size(1);
  const bool is_strided = c10::multiply_integers(form.stride) > 1;
  if (image.size(0) == 1) return false;
  if (image.scalar_type() == at::kFloat) return pixels >= (is_strided ? 1 << 12 : 1 << 14);
  return pixels >= 1 << 16 && grad.size(1) <= 64 &&
         (is_strided || image.dim() == 5 || image.size(1) >= 64);
}

bool has_conv_weight_grad(const at::Tensor& image, const at::Tensor& grad, const ConvForm& form) {
  const at::ScalarType type = image.scalar_type();
  if (!image.device().is_cpu() || (type != at::kFloat && type != at::kBFloat16) ||
      grad.scalar_type() != type || (image.dim() != 4 && image.dim() != 5) || image.numel() == 0 ||
      grad.numel() == 0 || !is_last(image))
    return false;
  const ConvKernels* const kernels = conv_kernels(type == at::kBFloat16);
  // Packing a place of the kernel costs a copy; a narrow tile reads a value for a multiplication.
  const auto dims = static_cast<std::size_t>(image.dim() - 2);
  return kernels != nullptr && form.kernel.size() == dims && form.stride.size() == dims &&
         form.padding.size() == dims && c10::multiply_integers(form.kernel) > 1 &&
         image.size(1) >= kMinChannels && grad.size(1) >= kMinChannels &&
         (kernels->lanes < 16 || outdoes_onednn(image, grad, form));
}

at::Tensor conv_weight_grad(const at::Tensor& image,
                            const at::Tensor& grad,
                            const ConvForm& form,
                            at::MemoryFormat format) {
  const bool is_short = image.scalar_type() == at::kBFloat16;
  const WeightGradPlan plan(image, grad, form, *conv_kernels(is_short));
  std::vector<int64_t> shape{plan.grads, plan.channels};
  shape.insert(shape.end(), form.kernel.begin(), form.kernel.end());
  at::Tensor result = at::empty(shape, image.options(), format);
  if (is_short) {
    run_plan<at::BFloat16>(plan, image, grad, result);
  } else {
    run_plan<float>(plan, image, grad, result);
  }
  return result;
}

}  // namespace cytra::ops::cpu
