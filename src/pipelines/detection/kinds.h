#pragma once
// The detectors that load_detector() chooses from.
#include <memory>
#include <string>
#include <vector>

#include "pipelines/detection/detector.h"

namespace cytra::nn {
struct Boxes;
}

namespace cytra::pipelines {

/// Throws: ConfigError for values out of their ranges.
void expect_detector_options(const DetectorOptions& options);
std::unique_ptr<Detector> load_scripted_detector(const std::string& path,
                                                 c10::Device device,
                                                 const DetectorOptions& options);

/// The detections of boxes (K,4), scores (K) and classes (K), on the CPU, in their order.
std::vector<Detection> detections_of(const nn::Boxes& boxes);

/// All that results depend on.
std::string text_of(const DetectorOptions& options);

/// Throws: DataError unless it is (C,H,W) with that many channels; 0: any number.
void expect_detector_image(const at::Tensor& image, int64_t channels);

}  // namespace cytra::pipelines
