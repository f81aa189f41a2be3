#include "app/benchmark/workload.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "device/backend.h"
#include "device/convolution.h"
#include "device/fast_precision.h"
#include "nn/model.h"
#include "nn/weights.h"

namespace cytra::app {

using config::Node;

std::vector<int64_t> Workload::shape_of(int64_t batch) const {
  std::vector<int64_t> sizes = shape;
  sizes[0] = batch;
  return sizes;
}

Node prepared(const Workload& workload, const Variant& variant) {
  const device::Backend& backend = device::backend_of(workload.device);
  if (variant.tf32) {
    const std::string problem = backend.why_no_tf32(workload.device);
    if (!problem.empty()) throw ConfigError(problem);
  }
  backend.set_tf32({variant.tf32, variant.tf32});
  if (variant.convolution != device::ConvAlgorithm::automatic && !workload.device.is_cpu())
    throw ConfigError("the choice is of a CPU");
  device::set_conv_algorithm(variant.convolution);
  Node config = workload.config;
  Node& model = *config.find("task.model");
  if (variant.channels_last) model.set("channels_last", Node::make_boolean(*variant.channels_last));
  if (variant.gradient_checkpointing)
    model.set("gradient_checkpointing", Node::make_boolean(*variant.gradient_checkpointing));
  // If this were left open, a launch-bound step would be recorded in rows of another name.
  const bool is_recorded = variant.engine == "cudagraph";
  model.set("compile_model",
            Node::make_boolean(is_recorded || model.get<bool>("compile_model", false)));
  if (is_recorded) model.set("compile_mode", Node::make_string(variant.compile_mode));
  if (variant.fused) {
    Node& optimizer = *config.find("optimizer");
    optimizer.set("fused", Node::make_boolean(*variant.fused));
    if (*variant.fused) optimizer.set("foreach", {});
  }
  return config;
}

std::shared_ptr<nn::Model> make_model(const Workload& workload,
                                      const Node& node,
                                      const Variant& variant) {
  at::manual_seed(0);  // without a checkpoint, too, every variant has the same weights
  std::shared_ptr<nn::Model> model = make<nn::Model>(node);
  if (!workload.checkpoint.empty()) nn::load_weights(workload.checkpoint, *model);
  model->eval();
  nn::place(*model, workload.device, device::uses_tensor_cores(variant.precision, workload.device));
  return model;
}

}  // namespace cytra::app
