#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/Device.h>

namespace cytra::pipelines {

/// Batch sizes that suit a device. Source: issue "GPU optimization for batch segmentation", its
/// tables for T4, A10G and A100.
struct SegmentPreset {
  const char* name;
  int64_t sam_batch_size, image_batch_size, io_workers;
};
std::vector<std::string> segment_preset_names();
/// auto: by the device's name, else by its memory. Throws: std::logic_error for another name.
SegmentPreset segment_preset(const std::string& name, c10::Device device);
/// `description`: as device::describe() gives it; `memory`: its bytes.
SegmentPreset preset_of_device(const std::string& description, int64_t memory);

}  // namespace cytra::pipelines
