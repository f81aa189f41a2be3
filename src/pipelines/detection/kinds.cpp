#include "pipelines/detection/kinds.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "nn/detection_model.h"

namespace cytra::pipelines {

std::vector<Detection> detections_of(const ops::Boxes& boxes) {
  const at::Tensor corners = boxes.corners.to(at::kCPU, at::kFloat).contiguous();
  const at::Tensor scores = boxes.scores.to(at::kCPU, at::kFloat).contiguous();
  const at::Tensor classes = boxes.classes.to(at::kCPU, at::kLong).contiguous();
  const float* side = corners.const_data_ptr<float>();
  std::vector<Detection> found;
  for (int64_t i = 0; i < scores.numel(); ++i, side += 4) {
    found.push_back({side[0],
                     side[1],
                     side[2],
                     side[3],
                     scores.const_data_ptr<float>()[i],
                     classes.const_data_ptr<int64_t>()[i]});
  }
  return found;
}

std::string text_of(const DetectorOptions& options) {
  return fmt::format("{} {} {} {} {}",
                     options.conf_threshold,
                     options.iou_threshold,
                     options.max_detections,
                     fmt::join(options.roi_size, "x"),
                     fmt::join(options.overlap, "x"));
}

void expect_detector_image(const at::Tensor& image, int64_t channels) {
  if (image.dim() == 3 && image.numel() > 0 && (channels == 0 || image.size(0) == channels)) return;
  throw DataError(fmt::format("an image of ({}), the detector takes ({},H,W)",
                              fmt::join(image.sizes(), ","),
                              channels == 0 ? "C" : fmt::to_string(channels)));
}

void expect_detector_options(const DetectorOptions& options) {
  const auto expect = [](const char* name, double value, bool is_right, const char* expected) {
    if (!is_right) throw ConfigError(fmt::format("{}={}: expected {}", name, value, expected));
  };
  const double conf = options.conf_threshold, iou = options.iou_threshold;
  expect("conf_threshold", conf, conf >= 0 && conf <= 1, "0 to 1");
  expect("iou_threshold", iou, iou >= 0 && iou <= 1, "0 to 1");
  const int64_t most = options.max_detections, batch = options.batch_size;
  expect("max_detections", static_cast<double>(most), most >= 1, "1 or more");
  expect("batch_size", static_cast<double>(batch), batch >= 1, "1 or more");
}

}  // namespace cytra::pipelines
