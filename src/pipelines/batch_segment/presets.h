#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "pipelines/batch_segment/batch_segment.h"

namespace cytra::pipelines {

/// Batch sizes that suit a device. Source: issue "GPU optimization for batch segmentation", its
/// tables for T4, A10G and A100; where a row has a range, its lower end.
struct SegmentPreset {
  const char* name;
  BoxBatchSizes sam_batch_size;
  int64_t images_in_turn, images_in_parallel;  // image_batch_size by mode
  int64_t io_workers;
  int64_t image_batch_size(const std::string& mode) const {
    return mode == "parallel" ? images_in_parallel : images_in_turn;
  }
};
std::vector<std::string> segment_preset_names();
/// auto: by the device's name, else by its memory. Throws: std::logic_error for another name.
SegmentPreset segment_preset(const std::string& name, c10::Device device);
/// `description`: as device::describe() gives it; `memory`: its bytes.
SegmentPreset preset_of_device(const std::string& description, int64_t memory);

}  // namespace cytra::pipelines
