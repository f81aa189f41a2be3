#include "pipelines/batch_segment/presets.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/control_groups.h"
#include "device/device.h"
#include "device/memory.h"

namespace cytra::pipelines {
namespace {

constexpr SegmentPreset kSegmentPresets[] = {
    {"cpu", {32, 32, 32}, 4, 4, 0},  // a thread for each processor
    {"t4", {32, 32, 16}, 4, 8, 4},
    {"a10g", {64, 64, 48}, 8, 16, 8},
    {"a100", {128, 96, 64}, 16, 32, 8},
    {"h200", {256, 192, 128}, 32, 64, 16},
};

}  // namespace

std::vector<std::string> segment_preset_names() {
  std::vector<std::string> names{"auto"};
  for (const SegmentPreset& preset : kSegmentPresets) names.emplace_back(preset.name);
  return names;
}

SegmentPreset preset_of_device(const std::string& description, int64_t memory) {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"H200", "h200"}, {"H100", "a100"}, {"A100", "a100"}, {"A10", "a10g"}, {"T4", "t4"}};
  std::string name = memory < 20e9    ? "t4"
                     : memory < 32e9  ? "a10g"
                     : memory < 120e9 ? "a100"
                                      : "h200";
  for (const auto& [sign, preset] : kNames) {
    if (description.find(sign) == std::string::npos) continue;
    name = preset;
    break;
  }
  if (description.starts_with("cpu")) name = "cpu";
  return segment_preset(name, c10::kCPU);
}

SegmentPreset segment_preset(const std::string& name, c10::Device device) {
  if (name == "auto")
    return preset_of_device(device::describe(device), device::free_memory(device));
  for (SegmentPreset preset : kSegmentPresets) {
    if (preset.name != name) continue;
    if (preset.io_workers == 0) preset.io_workers = std::min(available_processors(), 8);
    return preset;
  }
  throw std::logic_error("no preset " + name);
}

}  // namespace cytra::pipelines
