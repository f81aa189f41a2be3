#include "device/recorder.h"

#include <map>
#include <string>

#include "device/backend.h"

namespace cytra::device {
namespace {

std::map<c10::DeviceType, MakeRecorder>& recorders() {
  static std::map<c10::DeviceType, MakeRecorder> all;
  return all;
}

}  // namespace

std::mutex& recording_mutex() {
  static std::mutex mutex;
  return mutex;
}

void set_recorder(c10::DeviceType type, MakeRecorder make) {
  recorders()[type] = make;
}

std::unique_ptr<Recorder> make_recorder(c10::Device device) {
  if (const auto known = recorders().find(device.type()); known != recorders().end())
    return std::unique_ptr<Recorder>(known->second(device));
  if (!has_graphs(device))
    throw NotRecordable("that is for a GPU; a CPU waits for nothing between two operations");
  std::string problem;
  const auto make = kernel<MakeRecorder>(device, kMakeRecorder, &problem);
  if (make == nullptr) throw NotRecordable("this build has no CUDA graphs: " + problem);
  return std::unique_ptr<Recorder>(make(device));
}

}  // namespace cytra::device
