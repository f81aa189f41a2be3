#pragma once
// Engines, which run a model on windows.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "base/tensor_fwd.h"
#include "config/node.h"

namespace cytra::device {
const std::vector<std::string>& precision_names();  // device/precision.h
}

namespace cytra::inference {

/// A model as engines get it.
struct EngineModel {
  /// The eager pass: (S,C,[D,]H,W) float32 on `device` -> its outputs, each (S,K,...). In
  /// evaluation mode, its weights float32 and without requires_grad; called by several threads at
  /// once.
  std::function<std::vector<Tensor>(const Tensor& windows)> forward;
  c10::Device device = c10::kCPU;
  /// The fingerprint of weights and configuration, under which a compiled model is kept on the
  /// disk; "": it is not kept.
  std::string fingerprint;
  /// Windows of the user's images, which quantization measures; empty: the example's.
  std::vector<Tensor> calibration = {};
  /// The bytes of its TorchScript archive, where it is one: unlike a trace of `forward`, it keeps
  /// control flow.
  std::function<std::string()> torchscript = {};
  /// The name of its engine in the log, for programs with several models.
  std::string name = "engine";
  /// The bytes of its ONNX file, where it is one; `forward` can't be traced then.
  std::shared_ptr<const std::string> onnx = {};
};

/// The names of the available engines: "eager", "torchscript", "openvino", ...
const std::vector<std::string>& engine_names();

struct EngineOptions {
  std::string backend = "auto", quantization = "none";  // performance.*
  config::Node fusion_strategy;
  std::string precision = "32-true";  // trainer.precision
  bool compile_model = false;         // model.*
  std::string compile_mode = "default";
  void visit_performance(auto& v) {
    v("backend",
      backend,
      "what runs the model: eager (PyTorch's operations), torchscript, cudagraph, openvino; auto "
      "takes the fastest that gives the same values: on a CPU OpenVINO, or eager in float32 where "
      "Winograd's convolutions spare 40 % of the multiplications",
      choices());
    v("quantization",
      quantization,
      "on a CPU; int8: convolutions and matrix products in 8 bits, by ranges measured on the first "
      "windows (OpenVINO); int8_dynamic: linear layers, by the range of each input (eager); less "
      "exact, and refused where too much changes",
      {"none", "int8", "int8_dynamic"});
    v("fusion_strategy",
      fusion_strategy,
      "of traced engines on a GPU, as torch.jit.set_fusion_strategy: for how many shapes fused "
      "kernels are made, [[STATIC, 2], [DYNAMIC, 10]]; null: torch's");
  }
  void visit_model(auto& v) {
    v("compile_model", compile_model, "on a GPU: prepare the model once, by compile_mode");
    v("compile_mode",
      compile_mode,
      "default, max-autotune-no-cudagraphs: traced; reduce-overhead: replayed as a CUDA graph; "
      "max-autotune: both",
      {"default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"});
  }
  void check() const;
  /// What results depend on, but for rounding: " bf16-mixed", " int8"; "" for float32.
  std::string text_of_values() const;
  /// Says, once for a process, which of the options that were given have no effect.
  void say_what_is_idle(c10::Device device, bool finds_boxes) const;
  /// Says, where any were given, that they have no effect on a file of TorchScript that is run as
  /// it is.
  void say_is_unread(const std::string& path) const;

 private:
  static std::vector<std::string> choices();
};

/// Runs a model. Thread: several may call run() at once.
class Engine {
 public:
  virtual ~Engine() = default;
  /// Runs windows (S,C,[D,]H,W) float32 on the model's device -> each output (S,K,...) float32
  /// there. S and the size may be any that the model takes; it is fast for those of the example.
  virtual std::vector<Tensor> run(const Tensor& windows) = 0;
  /// The engine for the log: "eager, float32", "OpenVINO 2026.4, bfloat16".
  virtual std::string text() const = 0;
};

/// Checks the options. Throws: ConfigError for options with which no model can be run on this
/// device.
void expect_engine(const EngineOptions& options, c10::Device device);

/// Makes the engine that the options ask for. `example`: typical windows, whose number and size
/// matter, and also their values: every engine except eager is compared with eager on the first of
/// them. With backend=auto, eager is used where another engine fails or differs, and one line says
/// why.
/// Throws: ConfigError where the engine that was asked for can't run the model or gives other
/// values; what `forward` throws.
std::unique_ptr<Engine> make_engine(const EngineModel& model,
                                    const EngineOptions& options,
                                    const Tensor& example);

}  // namespace cytra::inference
