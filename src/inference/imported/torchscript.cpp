// Part of inference/imported/imported_model.h: TorchScript, which torch.jit.save and
// `export_model format=torchscript` write.
#include <sstream>

#include <ATen/ATen.h>

#include "base/warn_once.h"
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
  imported.forward = [path, placed](const at::Tensor& windows) {
    const nn::ScriptCall call;
    std::vector<at::Tensor> outputs;
    for (nn::ScriptResult& result : nn::script_results(path, placed->module.forward({windows})))
      outputs.push_back(std::move(result.tensor));
    return outputs;
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

static LoadedModel load_torchscript(const std::string& path,
                                    const std::optional<std::string>& config) {
  return complete(path, open_torchscript(path), config);
}
static const bool is_torchscript_added =
    add_model_kind(io::ModelKind::torchscript, {load_torchscript});

}  // namespace cytra::inference
