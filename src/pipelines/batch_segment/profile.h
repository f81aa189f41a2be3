#pragma once
// The times of two-stage segmentation, by batch size, and of reading and writing.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "ops/boxes/boxes.h"
#include "pipelines/job/stage_report.h"
#include "pipelines/segmenter/segmenter.h"

namespace cytra::pipelines {

/// A batch size of the mask decoder.
struct BoxBatch {
  int64_t size = 0;
  bool is_out_of_memory = false;  // then nothing else is known
  double seconds = 0;             // of a pass
  double boxes_per_s = 0;
  double cores_busy = 0;                 // processors of the host
  std::optional<double> device_percent;  // of a GPU's time, where the driver tells
  int64_t memory = 0;                    // peak bytes: of torch's allocator on a GPU, else resident
  int64_t device_memory = 0;             // bytes of the device, or of the host
};

/// Measures passes of each batch size for `seconds`, at least one, after one that is not counted.
/// `found`: boxes of the image (C,H,W), repeated as often as needed. Ends after the first size
/// that does not fit, and where a pass takes more than ten times `seconds`.
std::vector<BoxBatch> profile_boxes(PromptedSegmenter& segmenter,
                                    const at::Tensor& image,
                                    const ops::Boxes& found,
                                    const std::vector<int64_t>& sizes,
                                    c10::Device device,
                                    double seconds);
/// The smallest batch within 3 % of the highest rate; larger ones only take more memory. -1: none
/// fits.
int64_t best_batch(const std::vector<BoxBatch>& batches);
/// A row for each, the best one marked.
std::string format_batches(const std::vector<BoxBatch>& batches, c10::Device device);

/// The shares of a run's time, from its stage report.
struct IoShare {
  double io = 0, compute = 0;  // 0 to 1, of both
  std::string verdict, advice;
};
IoShare io_share(const StageReport& report);

}  // namespace cytra::pipelines
