#pragma once
// Trained models of any origin, and the section `checkpoint` that names them.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/Device.h>

#include "base/tensor_fwd.h"
#include "config/options.h"

namespace cytra::nn {
struct Model;
}

namespace cytra::inference {

/// What a model of others does not say of itself: keys of the section `model`.
struct ForeignOptions {
  std::string layout, output, activation = "auto";
  void visit(auto& v) {
    v("layout",
      layout,
      "the axes of an ONNX or OpenVINO file's input; \"\": as its shape tells",
      {"", "NCHW", "NHWC", "NCDHW", "NDHWC"});
    v("output",
      output,
      "the output of an ONNX or OpenVINO file that is predicted, by name or number; \"\": the "
      "only one of an image");
    v("activation",
      activation,
      "what a network of others ends with; auto: as the network shows",
      {"auto", "none", "sigmoid", "softmax"});
  }
};

struct CheckpointOptions {
  std::vector<std::string> ckpt_path;
  std::optional<std::string> config;
  ForeignOptions foreign = {};  // the section `model`
  void visit(auto& v) {
    v("ckpt_path",
      ckpt_path,
      "a checkpoint that `train` wrote, TorchScript (.pt), AOTInductor's .pt2, ONNX, OpenVINO's "
      ".xml, or a folder or archive of bioimage.io, MONAI's bundles or nnU-Net; with `config` also "
      "weights of PyTorch or safetensors; for a list, or a pattern such as folds/*/best.ckpt, the "
      "outputs are averaged, or of nnU-Net's models with other classes joined",
      config::required);
    v("config",
      config,
      "a run's folder or a YAML file with its configuration, for models that hold none; null: the "
      "checkpoint's");
    v("weights_only", config::Unused{{"true"}}, "nothing else is taken");
    v("strict", config::Unused{{"true"}}, "every weight must fit");
  }
};

/// A model: windows (S,C,[D,]H,W) float32 -> its outputs, each (S,K,...). Thread: several at once.
using Forward = std::function<std::vector<Tensor>(const Tensor& windows)>;

/// Prepares a model for inference (nn/fold.h), and moves it, laid out for convolutions that run on
/// tensor cores or not: as nn::place().
using MoveModel = std::function<void(c10::Device device, bool on_tensor_cores)>;

/// A model in evaluation mode, on the CPU until it is placed elsewhere.
struct LoadedModel {
  std::string path;  // as it was named
  Forward forward;   // on the device of place()
  /// Makes what its last layer gets, where that is a convolution of 1x1 to more channels;
  /// empty: there is none.
  Forward features;
  /// Returns that layer's weight (K,F) and bias (K), on the device of place().
  std::function<std::pair<Tensor, Tensor>()> last_layer;
  /// The bytes of its TorchScript archive, where it is one; empty: it can be traced.
  std::function<std::string()> torchscript;
  std::shared_ptr<const std::string> onnx;  // the bytes of its ONNX file, where it is one
  MoveModel place;                          // call it under no InferenceMode
  std::shared_ptr<nn::Model> network;       // null: not one of `config::task.model`'s
  int64_t in_channels = 1, out_channels = 1, spatial_dims = 2;
  std::vector<int64_t> divisor;       // sides of windows are multiples of it, per spatial
                                      // dimension
  std::vector<int64_t> fixed_window;  // the only sides it takes; empty: all such multiples
  /// The configuration, as of a training: data.transforms, task (model, x_key, y_key, num_classes,
  /// multilabel, inference_args), patch_shape where it is known.
  config::Node config;
  /// The metric `temperature` of the newest validation before the checkpoint; null: it had none.
  std::optional<double> temperature;
  std::string fingerprint;  // of weights and model; it differs whenever results differ
  std::size_t part = 0;     // its number, where several models make one task's classes
};

/// What a model's logits are to be divided by: `asked`, or where that is 0 its own temperature.
/// Throws: ConfigError where it has none.
double temperature_of(const LoadedModel& model, double asked);

/// Whether results are written in the voxels of the file: `asked`, else as the model's own
/// framework writes them (nnU-Net: yes).
bool keeps_file_grid(const LoadedModel& model, const std::optional<bool>& asked);

/// Loads all models that `ckpt_path` names, in its order; everything except weights is taken from
/// the first one. Models of nnU-Net whose classes have other names are further parts of one task:
/// the first one's configuration then has the classes of all. Throws: ConfigError, DataError when
/// a configuration describes no model, weights do not fit it or are not finite, or the models don't
/// agree in channels, dimensions and transforms.
std::vector<LoadedModel> load_models(const CheckpointOptions& options);

}  // namespace cytra::inference
