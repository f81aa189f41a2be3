#include "ops/dice_ce/dice_ce.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include "base/error.h"
#include "ops/dice_ce/gpu.h"
#include "ops/dice_ce/kernels.h"

namespace cytra::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kChunk = 64 * cpu::kClassTile;  // voxels of one task: their sums are one number

/// Images (N,C,[D,]H,W), read and written a tile of voxels at a time, whatever their layout.
struct ClassRows {
  explicit ClassRows(const at::Tensor& images)
      : channels(images.size(1)),
        voxels(images.numel() / std::max<int64_t>(images.size(0) * channels, 1)),
        is_last(!images.is_contiguous()) {}
  int64_t channels, voxels;
  bool is_last;  // channels-last
  int64_t begin(int64_t image, int64_t voxel) const {
    return image * channels * voxels + (is_last ? voxel * channels : voxel);
  }
  /// `line`: room for as many rows as `tile` has.
  template <class T>
  void load(const T* images, int64_t image, int64_t voxel, int64_t count, float* tile, float* line)
      const {
    const T* from = images + begin(image, voxel);
    const auto& kernels = cpu::class_kernels<T>();
    const float* values = line;  // of channels-last images
    if constexpr (std::is_same_v<T, float>)
      values = from;
    else if (is_last)
      kernels.widen(from, count * channels, line);
    for (int64_t c = 0; c < channels; ++c) {
      float* row = tile + c * cpu::kClassTile;
      if (is_last)
        for (int64_t v = 0; v < count; ++v) row[v] = values[v * channels + c];
      else
        kernels.widen(from + c * voxels, count, row);
      std::fill(row + count, row + cpu::kClassTile, 0.0F);
    }
  }
  template <class T>
  void store(const float* tile, int64_t image, int64_t voxel, int64_t count, T* images, float* line)
      const {
    T* to = images + begin(image, voxel);
    const auto& kernels = cpu::class_kernels<T>();
    float* values = line;
    if constexpr (std::is_same_v<T, float>) values = to;
    for (int64_t c = 0; c < channels; ++c) {
      const float* row = tile + c * cpu::kClassTile;
      if (is_last)
        for (int64_t v = 0; v < count; ++v) values[v * channels + c] = row[v];
      else
        kernels.narrow(row, count, to + c * voxels);
    }
    if (is_last && values == line) kernels.narrow(line, count * channels, to);
  }
};

struct ClassInputs {
  at::Tensor logits, target, mask;
  bool is_exclusive, squared;
};

/// Calls f(task, image, voxel, count, tile) for each tile: the chunks of an image in any order,
/// the tiles of a chunk one after the other.
template <class T, class F>
void for_each_class_tile(const ClassInputs& in, F f) {
  const ClassRows logits(in.logits), target(in.target);
  const T* const z = static_cast<const T*>(in.logits.const_data_ptr());
  const float* const t = in.target.const_data_ptr<float>();
  const float* const m = in.mask.defined() ? in.mask.const_data_ptr<float>() : nullptr;
  const int64_t chunks = (logits.voxels + kChunk - 1) / kChunk;
  at::parallel_for(0, in.logits.size(0) * chunks, 1, [&](int64_t first, int64_t last) {
    const int64_t rows = 2 * logits.channels + target.channels + 1;
    std::vector<float> memory(static_cast<std::size_t>(rows * cpu::kClassTile));
    float* const truth = memory.data() + logits.channels * cpu::kClassTile;
    float* const mask = truth + target.channels * cpu::kClassTile;
    float* const spare = mask + cpu::kClassTile;
    const cpu::ClassTile tile{
        memory.data(), truth, mask, spare, logits.channels, in.is_exclusive, in.squared};
    for (int64_t task = first; task < last; ++task) {
      const int64_t image = task / chunks, begin = task % chunks * kChunk;
      const int64_t end = std::min(begin + kChunk, logits.voxels);
      for (int64_t voxel = begin; voxel < end; voxel += cpu::kClassTile) {
        const int64_t count = std::min(cpu::kClassTile, end - voxel);
        logits.load(z, image, voxel, count, tile.logits, spare);
        target.load(t, image, voxel, count, truth, spare);
        for (int64_t v = 0; v < cpu::kClassTile; ++v)
          mask[v] = v < count ? (m == nullptr ? 1.0F : m[image * logits.voxels + voxel + v]) : 0.0F;
        f(task, image, voxel, count, tile);
      }
    }
  });
}

/// (N,3K+1): both, prediction, truth, cross-entropy.
template <class T>
at::Tensor sums_of(const ClassInputs& in) {
  const int64_t images = in.logits.size(0), classes = in.logits.size(1), width = 3 * classes + 1;
  const int64_t voxels = in.logits.numel() / std::max<int64_t>(images * classes, 1);
  const int64_t chunks = (voxels + kChunk - 1) / kChunk;
  const at::Tensor of_chunks = at::zeros({images, chunks, width}, at::kDouble);
  double* const sums = of_chunks.mutable_data_ptr<double>();
  for_each_class_tile<T>(in,
                         [&](int64_t task, int64_t, int64_t, int64_t, const cpu::ClassTile& tile) {
                           double* const own = sums + task * width;
                           cpu::class_kernels<T>().sums(
                               tile, own, own + classes, own + 2 * classes, own + 3 * classes);
                         });
  return of_chunks.sum(1);
}

/// The gradient by the logits, from the gradients of the sums.
template <class T>
at::Tensor gradient_of(const ClassInputs& in, const variable_list& grads) {
  const int64_t images = in.logits.size(0);
  const auto dense = [&](const at::Tensor& grad, at::IntArrayRef shape) {
    return grad.defined() ? grad.contiguous() : at::zeros(shape);
  };
  const at::Tensor both = dense(grads[0], {images, in.logits.size(1)}),
                   prediction = dense(grads[1], {images, in.logits.size(1)}),
                   cross_entropy = dense(grads[3], {images});
  at::Tensor result = at::empty_like(in.logits);
  const ClassRows rows(result);
  T* const to = static_cast<T*>(result.mutable_data_ptr());
  const int64_t classes = rows.channels;
  for_each_class_tile<T>(
      in, [&](int64_t, int64_t image, int64_t voxel, int64_t count, const cpu::ClassTile& tile) {
        cpu::class_kernels<T>().gradients(tile,
                                          both.const_data_ptr<float>() + image * classes,
                                          prediction.const_data_ptr<float>() + image * classes,
                                          cross_entropy.const_data_ptr<float>()[image]);
        rows.store(tile.logits, image, voxel, count, to, tile.spare);
      });
  return result;
}

void check_numbers(const ClassInputs& in, const at::Tensor& truth) {
  // The value is read from memory: item() would look like a step that waits for a GPU.
  const double found = *truth.sum().const_data_ptr<double>();
  const double expected = in.mask.defined() ? *in.mask.sum(at::kDouble).const_data_ptr<double>()
                                            : static_cast<double>(in.target.numel());
  if (found == expected) return;
  throw DataError("loss: {:.0f} voxels of the target have no class number from 0 to {}",
                  expected - found,
                  in.logits.size(1) - 1);
}

struct ClassSumsFunction : torch::autograd::Function<ClassSumsFunction> {
  static variable_list forward(AutogradContext* context,
                               const at::Tensor& logits,
                               const at::Tensor& target,
                               const std::optional<at::Tensor>& mask,
                               bool is_exclusive,
                               bool squared) {
    const ClassInputs in{logits, target, mask.value_or(at::Tensor()), is_exclusive, squared};
    context->save_for_backward({logits, target, in.mask});
    context->saved_data["is_exclusive"] = is_exclusive;
    context->saved_data["squared"] = squared;
    context->set_materialize_grads(false);
    if (!logits.is_cpu()) {
      const ClassSums sums = gpu::class_sums(logits, target, in.mask, is_exclusive, squared);
      context->mark_non_differentiable({sums.truth});
      return {sums.both, sums.prediction, sums.truth, sums.cross_entropy};
    }
    const int64_t classes = logits.size(1);
    const at::ScalarType type = logits.scalar_type();
    const auto typed = type == at::kFloat      ? sums_of<float>
                       : type == at::kBFloat16 ? sums_of<cpu::Bfloat16>
                                               : sums_of<cpu::Float16>;
    const std::vector<at::Tensor> sums =
        typed(in).split_with_sizes({classes, classes, classes, 1}, 1);
    if (is_exclusive) check_numbers(in, sums[2]);
    variable_list floats;
    for (const at::Tensor& sum : sums) floats.push_back(sum.to(at::kFloat));
    floats[3] = floats[3].squeeze(1);
    context->mark_non_differentiable({floats[2]});
    return floats;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    if (at::GradMode::is_enabled()) throw std::logic_error("class_sums has no second derivative");
    const variable_list saved = context->get_saved_variables();
    const ClassInputs in{saved[0],
                         saved[1],
                         saved[2],
                         context->saved_data["is_exclusive"].toBool(),
                         context->saved_data["squared"].toBool()};
    if (!in.logits.is_cpu()) {
      return {gpu::class_sums_backward(in.logits,
                                       in.target,
                                       in.mask,
                                       in.is_exclusive,
                                       in.squared,
                                       {grads[0], grads[1], {}, grads[3]}),
              {},
              {},
              {},
              {}};
    }
    const at::ScalarType type = in.logits.scalar_type();
    const auto typed = type == at::kFloat      ? gradient_of<float>
                       : type == at::kBFloat16 ? gradient_of<cpu::Bfloat16>
                                               : gradient_of<cpu::Float16>;
    return {typed(in, grads), {}, {}, {}, {}};
  }
};

bool is_dense_image(const at::Tensor& images) {
  return images.is_contiguous() ||
         images.is_contiguous(images.dim() == 4 ? at::MemoryFormat::ChannelsLast
                                                : at::MemoryFormat::ChannelsLast3d);
}

constexpr int64_t kMostImages = 65535;  // of a grid of blocks on a GPU

}  // namespace

bool has_class_sums(const at::Tensor& logits, const at::Tensor& target, const at::Tensor& mask) {
  const at::ScalarType type = logits.scalar_type();
  const auto matches = [&](const at::Tensor& t) {
    return t.device() == logits.device() && t.scalar_type() == at::kFloat &&
           t.size(0) == logits.size(0) && t.sizes().slice(2) == logits.sizes().slice(2);
  };
  return (logits.dim() == 4 || logits.dim() == 5) && logits.numel() > 0 &&
         (logits.is_cpu() ||
          (logits.size(0) <= kMostImages && gpu::has_class_kernels(logits.device()))) &&
         (type == at::kFloat || type == at::kBFloat16 || type == at::kHalf) &&
         is_dense_image(logits) && matches(target) && !target.requires_grad() &&
         (!mask.defined() || matches(mask)) && !torch::jit::tracer::isTracing();
}

ClassSums class_sums(const at::Tensor& logits,
                     const at::Tensor& target,
                     const at::Tensor& mask,
                     bool is_exclusive,
                     bool squared) {
  // A Function does not take undefined tensors.
  const std::optional<at::Tensor> counts =
      mask.defined() ? std::optional(mask.contiguous()) : std::nullopt;
  const variable_list sums =
      ClassSumsFunction::apply(logits, target.contiguous(), counts, is_exclusive, squared);
  return {sums[0], sums[1], sums[2], sums[3]};
}

}  // namespace cytra::ops
