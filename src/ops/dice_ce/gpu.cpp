#include "ops/dice_ce/gpu.h"

#include <ATen/ATen.h>

#include "device/backend.h"
#include "ops/cuda/class_sums.h"

namespace cytra::ops::gpu {
namespace {

struct ClassPasses {
  CudaClassSumsPass forward = nullptr;
  CudaClassGradPass backward = nullptr;
};
const ClassPasses& class_passes(c10::Device device) {
  static const ClassPasses passes = {device::kernel<CudaClassSumsPass>(device, kCudaClassSums),
                                     device::kernel<CudaClassGradPass>(device, kCudaClassGrad)};
  return passes;
}

CudaClasses classes_of(const at::Tensor& logits,
                       const at::Tensor& target,
                       const at::Tensor& mask,
                       bool is_exclusive,
                       bool squared) {
  const int64_t images = logits.size(0), classes = logits.size(1);
  return {logits.get_device(),
          logits.scalar_type(),
          images,
          classes,
          logits.numel() / (images * classes),
          !logits.is_contiguous(),
          is_exclusive,
          squared,
          logits.const_data_ptr(),
          target.const_data_ptr<float>(),
          mask.defined() ? mask.const_data_ptr<float>() : nullptr};
}

}  // namespace

bool has_class_kernels(c10::Device device) {
  if (!device::is_accelerator(device)) return false;
  const ClassPasses& passes = class_passes(device);
  return passes.forward != nullptr && passes.backward != nullptr;
}

ClassSums class_sums(const at::Tensor& logits,
                     const at::Tensor& target,
                     const at::Tensor& mask,
                     bool is_exclusive,
                     bool squared) {
  const CudaClasses of = classes_of(logits, target, mask, is_exclusive, squared);
  const int64_t blocks = (of.voxels + kClassBlock - 1) / kClassBlock;
  const auto floats =
      logits.options().dtype(at::kFloat).memory_format(at::MemoryFormat::Contiguous);
  const at::Tensor room =
      at::empty({of.images, blocks, 3 * of.classes + 1}, floats.dtype(at::kDouble));
  const ClassSums sums{at::empty({of.images, of.classes}, floats),
                       at::empty({of.images, of.classes}, floats),
                       at::empty({of.images, of.classes}, floats),
                       at::empty({of.images}, floats)};
  class_passes(logits.device())
      .forward({of,
                room.mutable_data_ptr<double>(),
                sums.both.mutable_data_ptr<float>(),
                sums.prediction.mutable_data_ptr<float>(),
                sums.truth.mutable_data_ptr<float>(),
                sums.cross_entropy.mutable_data_ptr<float>()});
  return sums;
}

at::Tensor class_sums_backward(const at::Tensor& logits,
                               const at::Tensor& target,
                               const at::Tensor& mask,
                               bool is_exclusive,
                               bool squared,
                               const ClassSums& grads) {
  const auto dense = [](const at::Tensor& t) { return t.defined() ? t.contiguous() : t; };
  const at::Tensor both = dense(grads.both), prediction = dense(grads.prediction),
                   cross_entropy = dense(grads.cross_entropy);
  const auto data_of = [](const at::Tensor& t) {
    return t.defined() ? t.const_data_ptr<float>() : nullptr;
  };
  const at::Tensor grad = at::empty_like(logits);
  class_passes(logits.device())
      .backward({classes_of(logits, target, mask, is_exclusive, squared),
                 data_of(both),
                 data_of(prediction),
                 data_of(cross_entropy),
                 grad.mutable_data_ptr()});
  return grad;
}

}  // namespace cytra::ops::gpu
