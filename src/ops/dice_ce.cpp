#include "ops/dice_ce.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include "base/error.h"
#include "ops/dice_ce_kernels.h"

namespace cytra::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kChunk = 64 * cpu::kClassTile;  // voxels of one task: their sums are one number

/// ClassRows of images (N,C,[D,]H,W), read and written a tile of voxels at a time, whatever their
/// layout.
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
  void load(const float* images, int64_t image, int64_t voxel, int64_t count, float* tile) const {
    const float* from = images + begin(image, voxel);
    for (int64_t c = 0; c < channels; ++c) {
      float* row = tile + c * cpu::kClassTile;
      for (int64_t v = 0; v < count; ++v)
        row[v] = is_last ? from[v * channels + c] : from[c * voxels + v];
      std::fill(row + count, row + cpu::kClassTile, 0.0F);
    }
  }
  void store(const float* tile, int64_t image, int64_t voxel, int64_t count, float* images) const {
    float* to = images + begin(image, voxel);
    for (int64_t c = 0; c < channels; ++c) {
      const float* row = tile + c * cpu::kClassTile;
      for (int64_t v = 0; v < count; ++v)
        (is_last ? to[v * channels + c] : to[c * voxels + v]) = row[v];
    }
  }
};

struct ClassInputs {
  at::Tensor logits, target, mask;
  bool is_exclusive, squared;
};

/// f(image, chunk, voxel, count, tile) for each tile; the chunks of an image in any order, the
/// tiles of one after each other.
template <class F>
void for_each_class_tile(const ClassInputs& in, F f) {
  const ClassRows logits(in.logits), target(in.target);
  const float* const z = in.logits.const_data_ptr<float>();
  const float* const t = in.target.const_data_ptr<float>();
  const float* const m = in.mask.defined() ? in.mask.const_data_ptr<float>() : nullptr;
  const int64_t chunks = (logits.voxels + kChunk - 1) / kChunk;
  at::parallel_for(0, in.logits.size(0) * chunks, 1, [&](int64_t first, int64_t last) {
    const int64_t rows = logits.channels + target.channels + 1;
    std::vector<float> memory(static_cast<std::size_t>(rows * cpu::kClassTile));
    float* const truth = memory.data() + logits.channels * cpu::kClassTile;
    float* const mask = truth + target.channels * cpu::kClassTile;
    const cpu::ClassTile tile{
        memory.data(), truth, mask, logits.channels, in.is_exclusive, in.squared};
    for (int64_t task = first; task < last; ++task) {
      const int64_t image = task / chunks, begin = task % chunks * kChunk;
      const int64_t end = std::min(begin + kChunk, logits.voxels);
      for (int64_t voxel = begin; voxel < end; voxel += cpu::kClassTile) {
        const int64_t count = std::min(cpu::kClassTile, end - voxel);
        logits.load(z, image, voxel, count, tile.logits);
        target.load(t, image, voxel, count, truth);
        for (int64_t v = 0; v < cpu::kClassTile; ++v)
          mask[v] = v < count ? (m == nullptr ? 1.0F : m[image * logits.voxels + voxel + v]) : 0.0F;
        f(task, image, voxel, count, tile);
      }
    }
  });
}

/// (N,3K+1): both, prediction, truth, cross-entropy.
at::Tensor sums_of(const ClassInputs& in) {
  const int64_t images = in.logits.size(0), classes = in.logits.size(1), width = 3 * classes + 1;
  const int64_t voxels = in.logits.numel() / std::max<int64_t>(images * classes, 1);
  const int64_t chunks = (voxels + kChunk - 1) / kChunk;
  const at::Tensor of_chunks = at::zeros({images, chunks, width}, at::kDouble);
  double* const sums = of_chunks.mutable_data_ptr<double>();
  for_each_class_tile(in, [&](int64_t task, int64_t, int64_t, int64_t, const cpu::ClassTile& tile) {
    double* const own = sums + task * width;
    cpu::class_kernels().sums(tile, own, own + classes, own + 2 * classes, own + 3 * classes);
  });
  return of_chunks.sum(1);
}

void check_numbers(const ClassInputs& in, const at::Tensor& truth) {
  // Read as memory: item() would look like a step that waits for a GPU.
  const double found = *truth.sum().const_data_ptr<double>();
  const double expected = in.mask.defined() ? *in.mask.sum(at::kDouble).const_data_ptr<double>()
                                            : static_cast<double>(in.target.numel());
  if (found == expected) return;
  throw DataError(fmt::format("loss: {:.0f} voxels of the target have no class number from 0 to {}",
                              expected - found,
                              in.logits.size(1) - 1));
}

struct ClassSumsFunction : torch::autograd::Function<ClassSumsFunction> {
  static variable_list forward(AutogradContext* context,
                               const at::Tensor& logits,
                               const at::Tensor& target,
                               const std::optional<at::Tensor>& mask,
                               bool is_exclusive,
                               bool squared) {
    const ClassInputs in{logits, target, mask.value_or(at::Tensor()), is_exclusive, squared};
    const int64_t classes = logits.size(1);
    const std::vector<at::Tensor> sums =
        sums_of(in).split_with_sizes({classes, classes, classes, 1}, 1);
    if (is_exclusive) check_numbers(in, sums[2]);
    context->save_for_backward({logits, target, in.mask});
    context->saved_data["is_exclusive"] = is_exclusive;
    context->saved_data["squared"] = squared;
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
    const at::Tensor both = grads[0].contiguous(), prediction = grads[1].contiguous(),
                     cross_entropy = grads[3].contiguous();
    at::Tensor result = at::empty_like(in.logits);
    const ClassRows rows(result);
    float* const to = result.mutable_data_ptr<float>();
    const int64_t classes = rows.channels;
    for_each_class_tile(
        in, [&](int64_t, int64_t image, int64_t voxel, int64_t count, const cpu::ClassTile& tile) {
          cpu::class_kernels().gradients(tile,
                                         both.const_data_ptr<float>() + image * classes,
                                         prediction.const_data_ptr<float>() + image * classes,
                                         cross_entropy.const_data_ptr<float>()[image]);
          rows.store(tile.logits, image, voxel, count, to);
        });
    return {result, {}, {}, {}, {}};
  }
};

bool is_dense_image(const at::Tensor& images) {
  return images.is_contiguous() ||
         images.is_contiguous(images.dim() == 4 ? at::MemoryFormat::ChannelsLast
                                                : at::MemoryFormat::ChannelsLast3d);
}

}  // namespace

bool has_class_sums(const at::Tensor& logits, const at::Tensor& target, const at::Tensor& mask) {
  const auto fits = [](const at::Tensor& t) {
    return t.device().is_cpu() && t.scalar_type() == at::kFloat;
  };
  const auto matches = [&](const at::Tensor& t) {
    return fits(t) && t.size(0) == logits.size(0) && t.sizes().slice(2) == logits.sizes().slice(2);
  };
  return (logits.dim() == 4 || logits.dim() == 5) && logits.numel() > 0 && fits(logits) &&
         is_dense_image(logits) && matches(target) && !target.requires_grad() &&
         (!mask.defined() || matches(mask)) && !torch::jit::tracer::isTracing();
}

ClassSums class_sums(const at::Tensor& logits,
                     const at::Tensor& target,
                     const at::Tensor& mask,
                     bool is_exclusive,
                     bool squared) {
  // An undefined tensor is no argument of a Function.
  const std::optional<at::Tensor> counts =
      mask.defined() ? std::optional(mask.contiguous()) : std::nullopt;
  const variable_list sums =
      ClassSumsFunction::apply(logits, target.contiguous(), counts, is_exclusive, squared);
  return {sums[0], sums[1], sums[2], sums[3]};
}

}  // namespace cytra::ops
