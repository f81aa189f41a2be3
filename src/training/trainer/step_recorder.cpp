#include "training/trainer/step_recorder.h"

#include <map>

#include "device/backend.h"
#include "training/cuda/step_graph.h"

namespace cytra::training {
namespace {

std::map<c10::DeviceType, MakeStepRecorder>& step_recorders() {
  static std::map<c10::DeviceType, MakeStepRecorder> recorders;
  return recorders;
}

}  // namespace

void set_step_recorder(c10::DeviceType type, MakeStepRecorder make) {
  step_recorders()[type] = make;
}

std::unique_ptr<StepRecorder> make_step_recorder(c10::Device device) {
  if (const auto known = step_recorders().find(device.type()); known != step_recorders().end())
    return std::unique_ptr<StepRecorder>(known->second(device));
  if (!device::has_graphs(device))
    throw NotRecordable("that is for a GPU; a CPU waits for nothing between two operations");
  std::string problem;
  const auto make = device::kernel<MakeStepRecorder>(device, kMakeStepGraph, &problem);
  if (make == nullptr) throw NotRecordable("this build has no CUDA graphs: " + problem);
  return std::unique_ptr<StepRecorder>(make(device));
}

}  // namespace cytra::training
