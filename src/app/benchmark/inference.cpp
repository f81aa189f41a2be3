#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "app/benchmark/subject.h"
#include "inference/engine.h"
#include "nn/model.h"
#include "perf/device.h"
#include "perf/precision.h"

namespace cytra::app {
namespace {

using Outputs = std::vector<at::Tensor>;

/// PyTorch's operations, in any precision.
struct EagerPass {
  EagerPass(std::shared_ptr<nn::Model> network, const Variant& variant, c10::Device device)
      : model(std::move(network)),
        precision(perf::precision_of(variant.precision)),
        autocast(precision, device.type()) {
    if (precision.parameters != at::kFloat) nn::cast(*model, precision.parameters);
  }
  Outputs operator()(const at::Tensor& input) const {
    return model->all(input.to(precision.parameters));
  }
  std::shared_ptr<nn::Model> model;
  perf::Precision precision;
  // Over all passes, and of weights that require a gradient: so autocast keeps what it casts.
  perf::Autocast autocast;
};

struct EnginePass {
  EnginePass(const std::shared_ptr<nn::Model>& model,
             const Variant& variant,
             c10::Device device,
             const at::Tensor& input) {
    for (at::Tensor& parameter : model->parameters()) parameter.requires_grad_(false);
    inference::EngineModel eager;
    eager.forward = [model](const at::Tensor& windows) { return model->all(windows); };
    eager.device = device;
    inference::EngineOptions options;
    options.backend = variant.engine;
    options.precision = variant.precision;
    options.compile_model = true;
    options.compile_mode = variant.compile_mode;
    engine = inference::make_engine(eager, options, input);
  }
  Outputs operator()(const at::Tensor& input) const { return engine->run(input); }
  std::unique_ptr<inference::Engine> engine;
};

template <class Pass>
Measured measure_pass(const Pass& pass,
                      const at::Tensor& input,
                      const Repeats& repeats,
                      c10::Device device) {
  Measured measured;
  Outputs outputs;
  perf::reset_peak_memory(device);
  measured.times = measure([&] { outputs = pass(input); }, repeats, device);
  measured.peak_bytes = perf::peak_memory(device);
  for (const at::Tensor& output : outputs) measured.results.push_back(output.to(at::kFloat));
  return measured;
}

}  // namespace

Measured measure_inference(const Subject& subject,
                           const Variant& variant,
                           int64_t batch,
                           const Repeats& repeats) {
  const config::Node config = prepared(subject, variant);
  const std::shared_ptr<nn::Model> model = make_model(subject, config.at("task.model"), variant);
  const at::NoGradGuard no_grad;
  at::manual_seed(0);  // what is random in a pass, too
  const at::Tensor input = at::randn(subject.shape_of(batch)).to(subject.device);
  if (variant.engine != "eager") {
    return measure_pass(
        EnginePass(model, variant, subject.device, input), input, repeats, subject.device);
  }
  return measure_pass(EagerPass(model, variant, subject.device), input, repeats, subject.device);
}

nn::Flops count_inference(const Subject& subject, int64_t batch) {
  const config::Node config = prepared(subject, {});
  const std::shared_ptr<nn::Model> model = make_model(subject, config.at("task.model"), {});
  const at::NoGradGuard no_grad;
  const at::Tensor input = at::zeros(subject.shape_of(batch)).to(subject.device);
  return nn::count_flops([&] { model->all(input); });
}

}  // namespace cytra::app
