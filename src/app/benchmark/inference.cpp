// Part of app/benchmark/measures.h: the forward pass of a model.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "app/benchmark/measures.h"
#include "base/warn_once.h"
#include "device/device.h"
#include "device/precision.h"
#include "inference/engines/engine.h"
#include "nn/model.h"

namespace cytra::app {
namespace {

using Outputs = std::vector<at::Tensor>;

Measured measure_pass(const auto& pass,
                      const at::Tensor& input,
                      const perf::Repeats& repeats,
                      c10::Device device) {
  Measured measured;
  Outputs outputs;
  device::reset_peak_memory(device);
  const auto run = [&] {
    at::manual_seed(0);  // random operations draw the same numbers in each pass
    outputs = pass(input);
  };
  measured.times = perf::measure(run, repeats, device);
  measured.peak_bytes = device::peak_memory(device);
  for (const at::Tensor& output : outputs) measured.results.push_back(output.to(at::kFloat));
  return measured;
}

/// A pass by PyTorch's operations, in any precision.
Ready eager_pass(std::shared_ptr<nn::Model> model,
                 const Variant& variant,
                 const at::Tensor& input,
                 c10::Device device) {
  const device::Precision precision = device::precision_of(variant.precision);
  if (precision.parameters != at::kFloat) nn::cast(*model, precision.parameters);
  return [=](const perf::Repeats& repeats) {
    const at::NoGradGuard no_grad;
    // One autocast covers all passes, and the weights require a gradient: then it keeps the casts.
    const device::Autocast autocast(precision, device.type());
    const auto pass = [&](const at::Tensor& images) {
      return model->all(images.to(precision.parameters));
    };
    return measure_pass(pass, input, repeats, device);
  };
}

Ready engine_pass(std::shared_ptr<nn::Model> model,
                  const Variant& variant,
                  const at::Tensor& input,
                  c10::Device device) {
  for (at::Tensor& parameter : model->parameters()) parameter.requires_grad_(false);
  inference::EngineModel eager;
  eager.forward = [model](const at::Tensor& windows) { return model->all(windows); };
  eager.device = device;
  inference::EngineOptions options;
  options.backend = variant.engine;
  options.precision = variant.precision;
  options.compile_model = true;
  options.compile_mode = variant.compile_mode;
  const std::shared_ptr<inference::Engine> engine = inference::make_engine(eager, options, input);
  return [=](const perf::Repeats& repeats) {
    const at::NoGradGuard no_grad;
    const auto pass = [&](const at::Tensor& images) { return engine->run(images); };
    return measure_pass(pass, input, repeats, device);
  };
}

}  // namespace

Ready prepare_inference(const Workload& workload, const Variant& variant, int64_t batch) {
  if (variant.engine == "eager" && workload.config.get<bool>("task.model.compile_model", false))
    warn_once(
        "model.compile_model: no effect on a pass by PyTorch's operations; --compare-opts has "
        "a row for each engine");
  const config::Node config = prepared(workload, variant);
  const std::shared_ptr<nn::Model> model = make_model(workload, config.at("task.model"), variant);
  const at::NoGradGuard no_grad;
  at::manual_seed(0);
  const at::Tensor input = at::randn(workload.shape_of(batch)).to(workload.device);
  return variant.engine == "eager" ? eager_pass(model, variant, input, workload.device)
                                   : engine_pass(model, variant, input, workload.device);
}

nn::Flops count_inference(const Workload& workload, int64_t batch) {
  const config::Node config = prepared(workload, {});
  const std::shared_ptr<nn::Model> model = make_model(workload, config.at("task.model"), {});
  const at::NoGradGuard no_grad;
  const at::Tensor input = at::zeros(workload.shape_of(batch)).to(workload.device);
  return nn::count_flops([&] { model->all(input); });
}

}  // namespace cytra::app
