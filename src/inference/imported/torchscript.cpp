// Part of inference/imported/imported_model.h: TorchScript, which torch.jit.save and
// `export_model format=torchscript` write.
#include <atomic>
#include <sstream>

#include <ATen/ATen.h>

#include "base/lists.h"
#include "base/warn_once.h"
#include "device/error.h"
#include "inference/imported/complete.h"
#include "inference/imported/imported_model.h"
#include "inference/models/model_kinds.h"
#include "io/fingerprint.h"
#include "io/input_file.h"
#include "io/weights/archive.h"
#include "nn/script/load.h"
#include "nn/script/modes.h"

namespace cytra::inference {
namespace jit = torch::jit;

bool is_torchscript(const std::string& path) {
  return io::kind_of(path) == io::ModelKind::torchscript;
}

std::string fingerprint_of_file(const std::string& path) {
  io::InputFile file(path);
  file.map();
  return file.read_mapped([&](const unsigned char* first) {
    return io::fingerprint(first, static_cast<std::size_t>(file.bytes()));
  });
}

namespace {

using Outputs = std::vector<at::Tensor>;

Outputs outputs_of(const std::string& path, jit::Module& module, const at::Tensor& windows) {
  return mapped(nn::script_results(path, module.forward({windows})),
                [](nn::ScriptResult& result) { return std::move(result.tensor); });
}

/// Runs the module: one that fails for several windows gets one after the other, since a file may
/// hold the batch that it was written with (a trace of attention).
Outputs run_module(const std::string& path,
                   jit::Module& module,
                   const at::Tensor& windows,
                   std::atomic<bool>& is_single) {
  try {
    if (!is_single) return outputs_of(path, module, windows);
  } catch (const std::exception& error) {
    if (windows.size(0) < 2 || device::is_out_of_memory(error)) throw;
    is_single = true;
  }
  std::vector<Outputs> parts;
  for (const at::Tensor& window : windows.split(1)) {
    Outputs own = outputs_of(path, module, window);
    parts.resize(own.size());
    for (std::size_t i = 0; i < own.size(); ++i) parts[i].push_back(std::move(own[i]));
  }
  return mapped(parts, [](const Outputs& some) { return at::cat(some); });
}

}  // namespace

ImportedModel open_torchscript(const std::string& path) {
  nn::ExtraFiles files{{"config", ""}};
  jit::Module module = nn::load_torchscript(path, files);
  for (const std::string& remark : nn::end_training_modes(module)) warn_once(path + ": " + remark);

  ImportedModel imported;
  if (const at::Tensor kernel = nn::first_kernel(module); kernel.defined()) {
    imported.in_channels = kernel.size(1);
    imported.spatial_dims = kernel.dim() - 2;
  }
  if (!files.at("config").empty())  // export_model's
    imported.config = config::parse_yaml(files.at("config"), path + " (config)");
  imported.fingerprint = fingerprint_of_file(path);
  struct Placed {
    jit::Module module;
    c10::Device device;
  };
  const auto placed = std::make_shared<Placed>(Placed{module, c10::kCPU});
  const auto is_single = std::make_shared<std::atomic<bool>>(false);
  imported.forward = [path, placed, is_single](const at::Tensor& windows) {
    const nn::ScriptCall call;
    return run_module(path, placed->module, windows, *is_single);
  };
  imported.torchscript = [placed] {
    std::ostringstream bytes;
    placed->module.save(bytes);
    return bytes.str();
  };
  imported.place = [path, placed](c10::Device device, bool /*on_tensor_cores*/) {
    if (device == placed->device) return;
    nn::ExtraFiles none;
    *placed = {nn::load_torchscript(path, none, device), device};
    nn::end_training_modes(placed->module);
  };
  return imported;
}

static LoadedModel load_torchscript(const std::string& path, const CheckpointOptions& options) {
  return complete(path, open_torchscript(path), options);
}
static const bool is_torchscript_added =
    add_model_kind(io::ModelKind::torchscript, {load_torchscript});

}  // namespace cytra::inference
