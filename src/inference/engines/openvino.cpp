// The model run by OpenVINO, which libcytra_openvino.so holds.
#include "inference/engines/openvino.h"

#include <algorithm>
#include <mutex>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/TracerMode.h>
#include <c10/core/InferenceMode.h>

#include "base/cache_folder.h"
#include "base/error.h"
#include "base/files.h"
#include "base/shared_library.h"
#include "inference/engines/openvino_module.h"
#include "inference/engines/traced.h"

namespace cytra::inference {
namespace {

/// Finds a function of the module, which is loaded once. Throws: EngineUnfit.
template <class Function>
Function of_module(const char* name) {
  const std::string file = path_beside(&engine_names, "libcytra_openvino.so");
  if (!path_exists(file)) {
    throw EngineUnfit(
        "this build has no OpenVINO; in the folder of Cytra's source run: CYTRA_OPENVINO=ON "
        "scripts/build.sh",
        true);
  }
  static SharedLibrary library(file, SharedLibrary::Symbols::local);
  const auto function = library.find<Function>(name);
  if (function == nullptr)
    throw EngineUnfit("OpenVINO can't be loaded: " + library.problem(), false);
  return function;
}

int rank_openvino(const EngineModel& model, const EngineOptions&) {
  return model.device.is_cpu() ? 20 : 0;
}

std::unique_ptr<FixedEngine> make_openvino(const EngineModel& model,
                                           const EngineOptions& options,
                                           const Tensor& example) {
  if (!model.device.is_cpu()) throw EngineUnfit("OpenVINO runs models on a CPU alone here", false);
  const auto make = of_module<OpenVinoEngine>(kOpenVinoEngine);
  const int64_t count = windows_at_once(example);
  OpenVinoTask task;
  task.torchscript = [&] {
    if (model.torchscript) return model.torchscript();
    const at::NoGradGuard no_grad;
    const c10::InferenceMode no_inference_mode(false);  // the tracer needs version counters
    return exporting::to_torchscript(
        exporting::Forward(model.forward), windows_to_trace(example.narrow(0, 0, count)), {});
  };
  task.onnx = model.onnx;
  task.shape = example.sizes().vec();
  task.shape[0] = count;
  task.at_once = std::min<int64_t>(at::get_num_threads(), (example.size(0) + count - 1) / count);
  task.type = precision_of(options).compute;
  task.cache_folder = cache_folder();
  task.fingerprint = model.fingerprint;
  if (options.quantization == "int8") {
    for (const Tensor& given : model.calibration) {
      if (given.sizes().slice(1) == example.sizes().slice(1)) task.calibration.push_back(given);
    }
    if (task.calibration.empty()) task.calibration.push_back(example);
  }
  return std::unique_ptr<FixedEngine>(make(task));
}

/// An ONNX file's network, of any size: a compiled model for the size of the last windows.
class OnnxNetwork {
 public:
  explicit OnnxNetwork(std::shared_ptr<const std::string> onnx)
      : make_(of_module<OpenVinoEngine>(kOpenVinoEngine)) {
    task_.onnx = std::move(onnx);
  }
  std::vector<Tensor> operator()(const Tensor& windows) {
    if (at::tracer::impl::is_dispatch_enabled())  // the trace would hold no more than memory
      throw EngineUnfit("ONNX can't be traced", true);
    std::vector<int64_t> shape = windows.sizes().vec();
    shape[0] = 1;
    std::shared_ptr<FixedEngine> engine;
    {
      const std::lock_guard lock(mutex_);
      if (engine_ == nullptr || task_.shape != shape) {
        engine_.reset();  // its memory
        task_.shape = shape;
        task_.at_once = std::min<int64_t>(at::get_num_threads(), windows.size(0));
        engine_.reset(make_(task_));
      }
      engine = engine_;
    }
    return engine->run(windows);
  }

 private:
  OpenVinoEngine make_;
  OpenVinoTask task_;
  std::mutex mutex_;
  std::shared_ptr<FixedEngine> engine_;
};

const bool added_openvino = add_engine("openvino", {rank_openvino, make_openvino});

}  // namespace

OnnxFacts describe_onnx(const std::string& onnx,
                        const std::string& path,
                        const std::optional<OnnxEnds>& ends) {
  return of_module<OnnxDescription>(kOnnxDescription)(onnx, path, ends);
}

std::function<std::vector<Tensor>(const Tensor&)> onnx_forward(
    std::shared_ptr<const std::string> onnx) {
  const auto network = std::make_shared<OnnxNetwork>(std::move(onnx));
  return [network](const Tensor& windows) { return (*network)(windows); };
}

void export_openvino(const std::string& torchscript,
                     const std::vector<int64_t>& shape,
                     const std::string& config,
                     const std::string& path) {
  try {
    of_module<OpenVinoExport>(kOpenVinoExport)(torchscript, shape, config, path);
  } catch (const EngineUnfit& unfit) {
    throw ConfigError(path + ".xml: " + unfit.what());
  }
}

}  // namespace cytra::inference
