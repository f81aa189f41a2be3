#include "inference/engines/entry.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

namespace cytra::inference {

std::map<std::string, EngineEntry>& engine_entries() {
  static std::map<std::string, EngineEntry> entries;
  return entries;
}

bool add_engine(const std::string& name, const EngineEntry& entry) {
  if (!engine_entries().emplace(name, entry).second)
    throw std::logic_error("two engines are named " + name);
  return true;
}

device::Precision precision_of(const EngineOptions& options) {
  device::Precision precision = device::precision_of(options.precision);
  precision.is_mixed = precision.compute != at::kFloat;
  precision.parameters = at::kFloat;
  return precision;
}

int64_t windows_at_once(const Tensor& windows) {
  constexpr int64_t kVoxels = 1 << 15;  // measured with DynUNet, 32^2 to 256^2 and 32^3 to 96^3
  return std::clamp<int64_t>(kVoxels / windows[0][0].numel(), 1, windows.size(0));
}

std::vector<Tensor> forward_with(const EngineModel& model,
                                 const device::Precision& precision,
                                 const Tensor& windows) {
  const c10::InferenceMode inference_mode;
  const device::Autocast autocast(precision, model.device.type());
  std::vector<Tensor> outputs = model.forward(windows);
  for (Tensor& output : outputs) output = output.to(at::kFloat);
  return outputs;
}

}  // namespace cytra::inference
