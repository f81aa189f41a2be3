#include "training/checkpoint.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "base/version.h"
#include "io/safetensors.h"
#include "nn/model.h"
#include "nn/weights.h"

namespace cytra::training {
namespace {

config::Node state_to_node(const TrainState& state) {
  const auto real = [](double value) {
    config::Node node;
    node.kind = config::Kind::real;
    node.real = value;
    return node;
  };
  config::Node node = config::Node::make_map();
  node.set("epoch", config::Node::make_integer(state.epoch));
  node.set("batch", config::Node::make_integer(state.batch));
  node.set("step", config::Node::make_integer(state.step));
  node.set("best_score", real(state.best_score));
  node.set("best_path", config::Node::make_string(state.best_path));
  config::Node& metrics = node.set("metrics", config::Node::make_map());
  for (const auto& [name, value] : state.metrics) metrics.set(name, real(value));
  return node;
}

TrainState state_from_node(const config::Node& node) {
  TrainState state;
  state.epoch = node.get<int64_t>("epoch");
  state.batch = node.get<int64_t>("batch");
  state.step = node.get<int64_t>("step");
  state.best_score = node.get<double>("best_score");
  state.best_path = node.get<std::string>("best_path");
  for (const auto& [name, value] : node.at("metrics").map) state.metrics[name] = value.as<double>();
  return state;
}

const std::string& metadata_of(const io::SafetensorsFile& file,
                               const std::string& path,
                               const std::string& key) {
  const auto entry = file.metadata().find(key);
  if (entry != file.metadata().end()) return entry->second;
  throw DataError(
      fmt::format("{}: not a checkpoint of Cytra (no '{}' in its metadata); for bare weights set "
                  "checkpoint.weights_only=true",
                  path,
                  key));
}

}  // namespace

void save_checkpoint(const std::string& path,
                     const TrainState& state,
                     const nn::Model& model,
                     const Optimizer& optimizer,
                     const config::Node& config) {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, tensor] : nn::state_of(model)) tensors["model." + name] = tensor;
  for (const auto& [name, tensor] : optimizer.state()) tensors["optimizer." + name] = tensor;
  {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard lock(generator.mutex());
    tensors["rng.cpu"] = generator.get_state();
  }
  std::map<std::string, io::TensorView> views;
  for (auto& [name, tensor] : tensors) {
    tensor = tensor.detach().to(at::kCPU).contiguous();
    views[name] = nn::view_of(tensor);
  }
  io::write_safetensors(path,
                        views,
                        {{"format", "pt"},
                         {"cytra_version", version()},
                         {"state", config::to_yaml(state_to_node(state))},
                         {"config", config::to_yaml(config)}});
}

TrainState load_checkpoint(const std::string& path,
                           nn::Model& model,
                           Optimizer& optimizer,
                           bool strict) {
  const io::SafetensorsFile file(path);
  const TrainState state =
      state_from_node(config::parse_yaml(metadata_of(file, path, "state"), path + " (state)"));
  nn::load_state(model, file, path, "model.", strict);
  const at::NoGradGuard no_grad;
  for (auto& [name, tensor] : optimizer.state()) {
    const auto stored = file.tensors().find("optimizer." + name);
    if (stored == file.tensors().end() || stored->second.shape != tensor.sizes().vec()) {
      throw DataError(
          fmt::format("{}: the optimizer's state does not fit ({}); checkpoint.weights_only=true "
                      "starts it afresh",
                      path,
                      name));
    }
    at::Tensor(tensor).copy_(nn::tensor_of(stored->second, name));
  }
  const auto rng = file.tensors().find("rng.cpu");
  if (rng != file.tensors().end()) {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard lock(generator.mutex());
    generator.set_state(nn::tensor_of(rng->second, "rng.cpu"));
  }
  return state;
}

void load_weights(const std::string& path, nn::Model& model, bool strict) {
  const io::SafetensorsFile file(path);
  bool prefixed = false;
  for (const auto& [name, view] : file.tensors())
    prefixed = prefixed || starts_with(name, "model.");
  nn::load_state(model, file, path, prefixed ? "model." : "", strict);
}

config::Node checkpoint_config(const std::string& path) {
  const io::SafetensorsFile file(path);
  config::Node config = config::parse_yaml(metadata_of(file, path, "config"), path + " (config)");
  return config;
}

}  // namespace cytra::training
