#include "inference/engines/traced.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>

#include "inference/isolated.h"

namespace cytra::inference {

Tensor windows_to_trace(const Tensor& example) {
  return at::arange(example.numel(), example.options()).sin_().view(example.sizes());
}

exporting::Forward traced(const EngineModel& model,
                          const EngineOptions& options,
                          const Tensor& example) {
  const at::NoGradGuard no_grad;
  const c10::InferenceMode no_inference_mode(false);  // the tracer needs version counters
  const device::Precision precision = precision_of(options);
  const auto forward = [&](const Tensor& windows) {
    const device::Autocast autocast(precision, model.device.type());  // its casts are traced
    std::vector<Tensor> outputs = model.forward(windows);
    for (Tensor& output : outputs) output = output.to(at::kFloat);
    return outputs;
  };
  exporting::set_fusion_strategy(options.fusion_strategy);
  return isolated(exporting::compile(exporting::Forward(forward), windows_to_trace(example)));
}

}  // namespace cytra::inference
