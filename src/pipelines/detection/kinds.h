#pragma once
// The detectors that load_detector() chooses from.
#include <memory>
#include <string>

#include "pipelines/detection/detector.h"

namespace cytra::pipelines {

/// Throws: ConfigError for values out of their ranges.
void expect_detector_options(const DetectorOptions& options);
std::unique_ptr<Detector> load_scripted_detector(const std::string& path,
                                                 c10::Device device,
                                                 const DetectorOptions& options);

/// All that results depend on.
std::string text_of(const DetectorOptions& options);

/// Throws: DataError unless it is (C,[D,]H,W) with that many channels; 0: any number.
void expect_detector_image(const at::Tensor& image, int64_t channels, int64_t spatial_dims = 2);

}  // namespace cytra::pipelines
