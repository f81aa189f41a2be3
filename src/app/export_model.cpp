// The work of `export_model`: a trained model as one file for other programs.
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/export/bioimageio.h"
#include "app/export/nnunet.h"
#include "app/run/entry.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/version.h"
#include "device/device.h"
#include "export/compile.h"
#include "export/onnx.h"
#include "inference/engines/engine.h"
#include "inference/engines/openvino.h"
#include "inference/models/trained_model.h"
#include "io/safetensors.h"
#include "nn/checkpoint_format.h"
#include "nn/detection_model.h"
#include "nn/exported/message.h"
#include "nn/fold.h"
#include "nn/weights.h"

namespace cytra::app {
namespace {
namespace fs = std::filesystem;
using config::Node;

/// The section `export`.
struct ShapeOptions {
  std::vector<int64_t> input_shape;
  void visit(auto& v) {
    v("input_shape",
      input_shape,
      "[D,]H,W of the only images that the file takes, for torchscript, onnx and openvino; []: any "
      "sides, where the network's own do not enter what it computes",
      1,
      4096);
  }
};

/// All that `export_model` takes.
struct ExportConfig : CommonConfig {
  inference::CheckpointOptions checkpoint;
  std::string format = "safetensors", quantization = "none", output;
  ShapeOptions shape;
  BioimageioOptions bioimageio;
  NnunetOptions nnunet;
  void visit(auto& v) {
    v("checkpoint", checkpoint, "the trained model");
    v("format",
      format,
      "safetensors: the weights, with PyTorch's names; the whole model: torchscript, onnx (opset "
      "17), openvino (OUTPUT.xml and OUTPUT.bin); bioimageio: a package of the model zoo; nnunet: "
      "a model that nnUNetv2_predict takes",
      {"safetensors", "torchscript", "onnx", "openvino", "bioimageio", "nnunet"});
    v("quantization",
      quantization,
      "int8_dynamic: linear layers in 8 bits, whose inputs are rounded by the range of each call, "
      "for CPUs; with format=torchscript",
      {"none", "int8_dynamic"});
    v("output", output, "the file to write", config::required);
    v("export", shape, "what the file takes");
    v("bioimageio", bioimageio, "what a package says of the model");
    v("nnunet", nnunet, "what nnU-Net needs to know");
    CommonConfig::visit(v);
    v("seed", config::Unused{}, "nothing is random here");
  }
  void check() const {
    if (quantization != "none" && format != "torchscript")
      throw ConfigError("quantization=" + quantization + ": expected format=torchscript, not " +
                        format);
    if (!shape.input_shape.empty() && format != "torchscript" && format != "onnx" &&
        format != "openvino")
      throw ConfigError("export.input_shape: expected format=torchscript, onnx or openvino, not " +
                        format);
    if (format == "bioimageio") expect_package_options(bioimageio, output);
    if (format == "nnunet") expect_nnunet_options(nnunet, output);
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

bool has_heads(const inference::LoadedModel& model) {
  return model.network && model.network->output_names().size() > 1;
}

/// Makes `batch` images whose sides are `count` times the divisor.
at::Tensor example(const inference::LoadedModel& model, int64_t batch, int64_t count) {
  std::vector<int64_t> shape{batch, model.in_channels};
  const bool is_fixed = !model.fixed_window.empty();
  for (const int64_t side : is_fixed ? model.fixed_window : model.divisor)
    shape.push_back(is_fixed ? side : count * side);
  return at::rand(shape);
}

/// How many times the divisor sides must be, of powers of two: a network may have a least side.
int64_t least_count(const inference::LoadedModel& model) {
  constexpr int64_t kMost = 64;
  for (int64_t count = 4;; count *= 2) {
    try {
      model.forward(example(model, 2, count));
      return count;
    } catch (const DataError&) {
      if (count == kMost || !model.fixed_window.empty()) throw;
    }
  }
}

/// The configuration that a file of the network alone holds: whoever reads it does not know which
/// sides the network takes.
Node config_of_network(const inference::LoadedModel& model) {
  Node config = model.config;
  const bool is_fixed = !model.fixed_window.empty();
  config.find("task.model")
      ->set(is_fixed ? "sides" : "divisor",
            Node::make_list(is_fixed ? model.fixed_window : model.divisor));
  if (Node* const windows = config.find("task.inference_args"); windows && is_fixed)
    windows->set("roi_size", Node::make_list(model.fixed_window));
  return config;
}

/// The size of windows that the model predicts with: its own where that fits the divisor.
std::vector<int64_t> window_of(const inference::LoadedModel& model) {
  const auto own = model.config.get<std::vector<int64_t>>("task.inference_args.roi_size", {});
  bool fits = own.size() == model.divisor.size();
  for (std::size_t d = 0; fits && d < own.size(); ++d)
    fits = own[d] > 0 && own[d] % model.divisor[d] == 0;
  return fits ? own : example(model, 1, least_count(model)).sizes().slice(2).vec();
}

/// The largest difference of the outputs, and the largest value; nothing where shapes differ.
std::optional<std::pair<double, double>> difference_of(const std::vector<at::Tensor>& got,
                                                       const std::vector<at::Tensor>& expected) {
  double difference = 0, most = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (got.at(i).sizes() != expected[i].sizes()) return std::nullopt;
    difference = std::max(difference, (got[i] - expected[i]).abs().max().item<double>());
    most = std::max(most, expected[i].abs().max().item<double>());
  }
  return std::pair(difference, most);
}

void expect_like_float32(const at::Tensor& got, const at::Tensor& expected) {
  const double share =
      ((got - expected).square().mean() / expected.square().mean()).sqrt().item<double>();
  log::info("int8_dynamic: differs from float32 by {:.1e} of the values' rms", share);
  constexpr double kMost = 0.2;  // as an engine's: inference/engines/engine.cpp
  if (share <= kMost) return;
  throw ConfigError(
      "quantization=int8_dynamic: the outputs differ from float32's by {:.2g} of the values' "
      "rms, {} is allowed; expected quantization=none",
      share,
      kMost);
}

/// A trace of `batch` images; nothing where it is not valid for one image, and for other sides
/// where the model takes them: a trace holds the sizes that the network computes with.
std::optional<std::string> traced(const inference::LoadedModel& model,
                                  const Metadata& metadata,
                                  bool is_int8,
                                  int64_t batch) {
  const exporting::Forward forward = [&](const at::Tensor& image) {
    std::vector<at::Tensor> outputs = model.forward(image);
    if (!has_heads(model)) outputs.resize(1);
    return outputs;
  };
  const int64_t count = least_count(model);
  const at::Tensor first = example(model, batch, count);
  std::string bytes = is_int8 ? exporting::to_int8_torchscript(forward, first, metadata)
                              : exporting::to_torchscript(forward, first, metadata);
  const at::Tensor other = example(model, 1, count + count / 2);
  const std::vector<at::Tensor> expected = forward(other);
  std::vector<at::Tensor> got;
  try {
    got = exporting::from_torchscript(bytes)(other);
  } catch (const std::exception& error) {
    log::debug("{}", error.what());
    return std::nullopt;
  }
  const auto found = difference_of(got, expected);
  if (found && is_int8) {
    expect_like_float32(got[0], expected[0]);
  } else if (!found || !(found->first <= 1e-4 * std::max(1.0, found->second))) {
    return std::nullopt;
  }
  return bytes;
}

/// The model as TorchScript, which every other format but safetensors is made of: for any images
/// where a trace holds for them, else for windows of one size, which `model` then says.
std::string torchscript_of(inference::LoadedModel& model, Metadata& metadata, bool is_int8) {
  const at::NoGradGuard no_grad;
  if (!model.network) {
    if (model.torchscript && !is_int8) return model.torchscript();
    throw ConfigError(model.path +
                      ": it can be run, but not exported; expected weights of a network that is "
                      "registered here, or TorchScript");
  }
  std::optional<std::string> bytes = traced(model, metadata, is_int8, 2);
  const bool is_kept = !bytes && model.fixed_window.empty();
  if (is_kept) {
    model.fixed_window = window_of(model);
    metadata["config"] = config::to_yaml(config_of_network(model));
    bytes = traced(model, metadata, is_int8, 2);
  }
  const bool is_single = !bytes;
  if (is_single) bytes = traced(model, metadata, is_int8, 1);
  if (!bytes) throw std::runtime_error("the exported model gives other values");
  if (is_kept && model.network->fixed_size().empty())
    log::warn(
        "{}: the network computes with the sides of its images, which a trace keeps: the file "
        "takes images of ({}) alone{}; Cytra cuts others into windows of that size",
        model.path,
        fmt::join(model.fixed_window, ", "),
        is_single ? ", one at a time" : "");
  return *bytes;
}

/// Makes `asked` the only sides that the model takes. Throws: ConfigError where it does not.
void take_shape(inference::LoadedModel& model, const std::vector<int64_t>& asked) {
  const std::vector<int64_t> only = std::exchange(model.fixed_window, asked);
  try {
    const at::NoGradGuard no_grad;
    if (!model.network) throw DataError("its sides are its own: it is no network of ours");
    if (!only.empty() && only != asked)
      throw DataError("it takes [{}] alone", fmt::join(only, ","));
    model.forward(example(model, 1, 1));
  } catch (const std::exception& error) {
    throw ConfigError("export.input_shape=[{}]: {}: {}; expected [{}]{}",
                      fmt::join(asked, ","),
                      model.path,
                      nn::brief(error),
                      fmt::join(only.empty() ? model.divisor : only, ","),
                      only.empty() ? " or multiples" : "");
  }
}

/// The path without its extension: OUTPUT of OUTPUT.xml and OUTPUT.bin.
std::string openvino_stem(const std::string& output) {
  return output.ends_with(".xml") ? output.substr(0, output.size() - 4) : output;
}

/// Checks the output's path. Throws: ConfigError for what names no file ("", "models/",
/// "models/.xml"), for a folder, and for a device where two files are written.
void expect_file_name(const ExportConfig& config) {
  const bool is_openvino = config.format == "openvino";
  const std::string path = is_openvino ? openvino_stem(config.output) : config.output;
  const std::string name = fs::path(path).filename().string();
  std::error_code ignored;
  const fs::file_status status = fs::status(config.output, ignored);
  std::string what;
  if (name.empty() || name == "." || name == "..") what = "names no file";
  if (fs::is_directory(status) && !is_openvino) what = "is a folder";
  if (fs::is_other(status) && is_openvino)
    what = "is a device or FIFO, and two files are written (OUTPUT.xml and OUTPUT.bin)";
  if (what.empty()) return;
  throw ConfigError("output: \"{}\" {}, expected the name of a file", config.output, what);
}

/// Checks that the file can hold the model: its network alone, with one output but in TorchScript.
/// Throws: ConfigError for a model that does more: a trace would leave that out.
void expect_network_alone(const inference::LoadedModel& model, const ExportConfig& config) {
  const std::string& format = config.format;
  if (has_heads(model) && (format != "torchscript" || config.quantization != "none")) {
    throw ConfigError(
        "{}: {} has the heads {}, and such a file holds one output; expected format=torchscript or "
        "safetensors, without quantization",
        format == "torchscript" ? "quantization=" + config.quantization : "format=" + format,
        model.path,
        join(model.network->output_names(), ", "));
  }
  if (!std::dynamic_pointer_cast<nn::DetectionModel>(model.network)) return;
  throw ConfigError(
      "format={}: {} is a detector: the file would hold its network alone, without boxes; predict, "
      "batch_segment and pipelines/detection/detector.h take the checkpoint itself, "
      "format=safetensors writes its weights",
      format,
      model.path);
}

void write_model(const ExportConfig& config, inference::LoadedModel& model, Metadata metadata) {
  if (config.format == "safetensors") {
    if (model.network) return write_weights(config.output, *model.network, metadata);
    throw ConfigError(
        "format: safetensors holds the weights of a network that is registered here, and {} is "
        "not; expected torchscript or onnx",
        model.path);
  }
  if (config.format == "nnunet") return write_nnunet(config.output, config.nnunet, model);
  expect_network_alone(model, config);
  if (!config.shape.input_shape.empty()) {
    take_shape(model, config.shape.input_shape);
    metadata["config"] = config::to_yaml(config_of_network(model));
  }
  if (model.network) nn::fold(*model.network);
  const std::string bytes = torchscript_of(model, metadata, config.quantization != "none");
  if (config.format == "torchscript") return write_file(config.output, bytes);
  if (config.format == "bioimageio")
    return write_bioimageio(config.output, config.bioimageio, model, bytes);
  if (config.format == "openvino") {
    std::vector<int64_t> shape = example(model, 1, 1).sizes().vec();
    for (std::size_t d = 0; d < shape.size(); ++d)
      if (d != 1 && model.fixed_window.empty()) shape[d] = -1;
    return inference::export_openvino(
        bytes, shape, metadata.at("config"), openvino_stem(config.output));
  }
  const exporting::OnnxShapes shapes{model.in_channels, model.spatial_dims, model.fixed_window};
  write_file(config.output, exporting::to_onnx(bytes, shapes, metadata));
}

int export_model(cli::Run run, const ExportConfig& config) {
  expect_file_name(config);
  device::apply(config.performance, at::kCPU);
  std::vector<inference::LoadedModel> models = inference::load_models(config.checkpoint);
  if (models.size() > 1)
    throw ConfigError(
        "checkpoint.ckpt_path: expected one model: a file can't hold the average of several");
  inference::LoadedModel& trained = models.at(0);
  const std::string& path = trained.path;
  if (are_same_file(config.output, path)) {
    throw ConfigError(
        "output: {} is the checkpoint itself, which holds more than an export; expected another "
        "file",
        config.output);
  }
  const Metadata metadata{
      {"format", "pt"},
      {"cytra_version", version()},
      {nn::kFormatKey, fmt::to_string(nn::kCheckpointFormat)},
      {"config",
       config::to_yaml(config.format == "safetensors" ? trained.config
                                                      : config_of_network(trained))}};
  write_model(config, trained, metadata);
  log::info("{}: {} as {}",
            path,
            trained.network ? fmt::format("{} parameters", nn::count_parameters(*trained.network))
                            : std::string("the whole"),
            config.format);
  cli::Results results(run.json);
  results.add("output",
              config.format == "openvino" ? openvino_stem(config.output) + ".xml" : config.output);
  results.print();
  return 0;
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_export_model(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::export_model);
}
