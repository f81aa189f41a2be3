// The work of `export_model`: a trained model as one file for other programs.
#include <filesystem>
#include <map>
#include <stdexcept>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "app/entry.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/version.h"
#include "inference/trained_model.h"
#include "io/safetensors.h"
#include "nn/model.h"
#include "nn/weights.h"
#include "perf/compile.h"

namespace cytra::app {
namespace {

/// All that `export_model` takes.
struct ExportConfig : CommonConfig {
  inference::CheckpointOptions checkpoint;
  std::string format = "safetensors", output;
  template <class V>
  void visit(V& v) {
    v("checkpoint", checkpoint, "the trained model");
    v("format",
      format,
      "safetensors: the weights, with PyTorch's names; torchscript: the whole model",
      {"safetensors", "torchscript"});
    v("output", output, "the file to write", config::required);
    CommonConfig::visit(v);
    v("seed", config::Unused{}, "nothing is random here");
  }
};
const bool export_is_added = add_program<ExportConfig>("export_model");

using Metadata = std::map<std::string, std::string>;

void write_weights(const std::string& path, const nn::Model& model, const Metadata& metadata) {
  std::map<std::string, at::Tensor> kept;
  io::TensorViews views;
  for (const auto& [name, tensor] : nn::state_of(model)) {
    kept[name] = tensor.detach().contiguous();
    views[name] = nn::view_of(kept[name]);
  }
  io::write_safetensors(path, views, metadata);
}

/// `batch` images whose sides are `count` times the smallest.
at::Tensor example(const nn::Model& model, int64_t batch, int64_t count) {
  std::vector<int64_t> shape{batch, model.in_channels()};
  for (const int64_t side : model.divisor()) shape.push_back(count * side);
  return at::rand(shape);
}

void write_torchscript(const std::string& path, nn::Model& model, const Metadata& metadata) {
  for (at::Tensor& parameter : model.parameters()) parameter.requires_grad_(false);
  const auto forward = [&](const at::Tensor& image) { return model.forward(image); };
  const at::NoGradGuard no_grad;
  const std::string bytes = perf::to_torchscript(forward, example(model, 2, 4), metadata);
  // A trace holds what was done once: it must do for other images, too.
  const at::Tensor other = example(model, 1, 6), expected = forward(other),
                   got = perf::from_torchscript(bytes)(other);
  const double most = expected.abs().max().item<double>();
  const double difference = (got - expected).abs().max().item<double>();
  if (!(difference <= 1e-4 * std::max(1.0, most)))
    throw std::runtime_error(fmt::format("the exported model differs by {}", difference));
  write_file(path, bytes);
}

int export_model(cli::Run run, const ExportConfig& config) {
  if (config.checkpoint.ckpt_path.size() > 1)
    throw ConfigError("checkpoint.ckpt_path: expected one model: a file holds no average");
  const std::string& path = config.checkpoint.ckpt_path.at(0);
  std::error_code ignored;
  if (std::filesystem::equivalent(config.output, path, ignored)) {
    throw ConfigError(
        fmt::format("output: {} is the checkpoint itself, which holds more; expected another file",
                    config.output));
  }
  const inference::LoadedModel trained = inference::load_models(config.checkpoint).at(0);
  const Metadata metadata{
      {"format", "pt"}, {"cytra_version", version()}, {"config", config::to_yaml(trained.config)}};
  if (config.format == "safetensors") {
    write_weights(config.output, *trained.network, metadata);
  } else {
    write_torchscript(config.output, *trained.network, metadata);
  }
  log::info("{}: {} parameters as {}", path, nn::count_parameters(*trained.network), config.format);
  cli::Results results(run.json);
  results.add("output", config.output);
  results.print();
  return 0;
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_export_model(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::export_model);
}
