#include "ops/norm/gpu.h"

#include <ATen/ATen.h>

#include "device/backend.h"
#include "ops/cuda/norm.h"

namespace cytra::ops::gpu {
namespace {

struct NormPasses {
  CudaNormPass forward = nullptr;
  CudaNormGradPass backward = nullptr;
};
const NormPasses& norm_passes(c10::Device device) {
  static const NormPasses passes = {device::kernel<CudaNormPass>(device, kCudaNorm),
                                    device::kernel<CudaNormGradPass>(device, kCudaNormGrad)};
  return passes;
}

at::MemoryFormat format_of(const at::Tensor& x) {
  return x.is_contiguous() ? at::MemoryFormat::Contiguous : x.suggest_memory_format();
}

/// A task, and the memory that it needs on the device.
struct Prepared {
  Prepared(const at::Tensor& x,
           const at::Tensor& weight,
           const at::Tensor& bias,
           const cpu::NormForm& form) {
    Cells& cells = task.cells;
    cells.samples = x.size(0);
    cells.channels = x.size(1);
    cells.voxels = x.numel() / (cells.samples * cells.channels);
    cells.groups = form.groups;
    cells.is_channels_last = !x.is_contiguous();
    cells.eps = form.eps;
    cells.slope = static_cast<float>(form.slope);
    task.sums.splits = splits_of(cells, x.element_size());
    const int64_t count = cells.count();
    sums = at::empty({task.sums.splits, count, 2}, x.options().dtype(at::kDouble));
    task.device = x.get_device();
    task.type = x.scalar_type();
    task.x = x.const_data_ptr();
    task.weight = weight.defined() ? weight.const_data_ptr<float>() : nullptr;
    task.bias = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
    task.sums.of_splits = static_cast<Sums*>(sums.mutable_data_ptr());
  }
  CudaNorm task{};
  at::Tensor sums;
};

}  // namespace

bool is_supported(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (!device::is_accelerator(x.device()) || x.layout() != at::kStrided ||
      norm_passes(x.device()).forward == nullptr)
    return false;
  const at::ScalarType type = x.scalar_type();
  if (type != at::kFloat && type != at::kBFloat16 && type != at::kHalf) return false;
  if (x.dim() < 3 || x.numel() == 0 || x.is_neg()) return false;
  if (weight.defined() != bias.defined()) return false;
  for (const at::Tensor* parameter : {&weight, &bias}) {
    const bool fits =
        !parameter->defined() || (parameter->device() == x.device() && parameter->is_contiguous() &&
                                  at::isFloatingType(parameter->scalar_type()) &&
                                  parameter->dim() == 1 && parameter->size(0) == x.size(1));
    if (!fits) return false;
  }
  return x.is_contiguous() || x.is_contiguous(x.suggest_memory_format());
}

cpu::Normalized normalize(const at::Tensor& x,
                          const at::Tensor& weight,
                          const at::Tensor& bias,
                          const cpu::NormForm& form) {
  Prepared prepared(x, weight, bias, form);
  CudaNorm& task = prepared.task;
  const at::Tensor statistics = at::empty({task.cells.shares(), 2}, x.options().dtype(at::kDouble));
  const at::Tensor y = at::empty_like(x);
  const at::Tensor coefficients =
      at::empty({task.cells.count(), static_cast<int64_t>(sizeof(Coefficients) / sizeof(float))},
                x.options().dtype(at::kFloat));
  task.statistics = statistics.mutable_data_ptr<double>();
  task.coefficients = static_cast<Coefficients*>(coefficients.mutable_data_ptr());
  task.y = y.mutable_data_ptr();
  norm_passes(x.device()).forward(task);
  return {y, statistics, coefficients};
}

cpu::Gradients normalize_backward(const cpu::SavedForBackward& saved,
                                  const at::Tensor& grad,
                                  bool needs_x) {
  const at::Tensor& x = saved.tensor;
  const at::Tensor dense = grad.to(x.scalar_type()).contiguous(format_of(x));
  const at::Tensor dx = needs_x ? at::empty_like(x) : at::Tensor();
  Prepared prepared(x, saved.weight, saved.bias, saved.form);
  CudaNorm& norm = prepared.task;
  norm.statistics = saved.statistics.mutable_data_ptr<double>();
  norm.coefficients = static_cast<Coefficients*>(saved.coefficients.mutable_data_ptr());
  CudaNormGrad task{norm, dense.const_data_ptr(), nullptr, nullptr, nullptr};
  if (needs_x) task.dx = dx.mutable_data_ptr();
  if (!saved.weight.defined()) {
    norm_passes(x.device()).backward(task);
    return {dx, {}, {}};
  }
  const at::Tensor dweight = at::empty({x.size(1)}, x.options().dtype(at::kFloat));
  const at::Tensor dbias = at::empty_like(dweight);
  task.dweight = dweight.mutable_data_ptr<float>();
  task.dbias = dbias.mutable_data_ptr<float>();
  norm_passes(x.device()).backward(task);
  return {dx, dweight, dbias};
}

}  // namespace cytra::ops::gpu
