#include "inference/engines/entry.h"

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
