#pragma once
// What runs a model on windows.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "base/tensor_fwd.h"

namespace cytra::device {
const std::vector<std::string>& precision_names();  // device/precision.h
}

namespace cytra::inference {

/// A model, as an engine takes it.
struct EngineModel {
  /// Eager: (S,C,[D,]H,W) float32 on `device` -> its outputs, each (S,K,...). In evaluation mode,
  /// its weights float32 and without requires_grad; called by several threads at once.
  std::function<std::vector<Tensor>(const Tensor& windows)> forward;
  c10::Device device = c10::kCPU;
  /// Of weights and configuration: what a compiled model is kept on the disk by; "": it is not.
  std::string fingerprint;
  /// Windows of the user's images, which quantization measures; none: the example's.
  std::vector<Tensor> calibration = {};
  /// The bytes of its TorchScript archive, where it is one: control flow is kept, which a trace of
  /// `forward` would not.
  std::function<std::string()> torchscript = {};
};

/// "eager", "torchscript", "openvino", ...: the engines that there are.
const std::vector<std::string>& engine_names();

struct EngineOptions {
  std::string backend = "auto", quantization = "none";  // performance.*
  std::string precision = "32-true";                    // trainer.precision
  bool compile_model = false;                           // model.*
  std::string compile_mode = "default";
  template <class V>
  void visit_performance(V& v) {
    v("backend",
      backend,
      "what runs the model: eager (PyTorch's operations), torchscript, cudagraph, openvino; auto "
      "takes the fastest that gives the same values: OpenVINO on a CPU",
      choices());
    v("quantization",
      quantization,
      "int8: convolutions and matrix products in 8 bits, by ranges measured on the first windows "
      "(OpenVINO); less exact, and refused where too much changes",
      {"none", "int8"});
  }
  template <class V>
  void visit_model(V& v) {
    v("compile_model", compile_model, "on a GPU: prepare the model once, by compile_mode");
    v("compile_mode",
      compile_mode,
      "default, max-autotune-no-cudagraphs: traced; reduce-overhead: replayed as a CUDA graph; "
      "max-autotune: both",
      {"default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"});
  }
  void check() const;

 private:
  static std::vector<std::string> choices();
};

/// Runs a model. Thread: several may call run() at once.
class Engine {
 public:
  virtual ~Engine() = default;
  /// windows (S,C,[D,]H,W) float32 on the model's device -> each output (S,K,...) float32 there.
  /// Any S and size that the model takes; those of the example are what it is fast for.
  virtual std::vector<Tensor> run(const Tensor& windows) = 0;
  /// "eager, float32", "OpenVINO 2026.4, bfloat16": for the log.
  virtual std::string text() const = 0;
};

/// Throws: ConfigError for options that no model is run by on this device.
void expect_engine(const EngineOptions& options, c10::Device device);

/// The engine that the options ask for. `example`: windows as they will come, their number and size
/// matter, and so do their values: every engine but eager is compared with eager on the first of
/// them. backend=auto takes eager, and one line says why, where another one fails or differs.
/// Throws: ConfigError where the engine that was asked for can't run the model or gives other
/// values; what `forward` throws.
std::unique_ptr<Engine> make_engine(const EngineModel& model,
                                    const EngineOptions& options,
                                    const Tensor& example);

}  // namespace cytra::inference
