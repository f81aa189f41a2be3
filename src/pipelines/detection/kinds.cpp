#include "pipelines/detection/kinds.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace cytra::pipelines {

std::string text_of(const DetectorOptions& options) {
  return fmt::format("{} {} {} {} {}{}",
                     options.conf_threshold,
                     options.iou_threshold,
                     options.max_detections,
                     fmt::join(options.roi_size, "x"),
                     fmt::join(options.overlap, "x"),
                     options.engine.text_of_values());
}

void expect_detector_image(const at::Tensor& image, int64_t channels, int64_t spatial_dims) {
  if (image.dim() == spatial_dims + 1 && image.numel() > 0 &&
      (channels == 0 || image.size(0) == channels))
    return;
  throw DataError("an image of ({}), the detector takes ({},{}H,W)",
                  fmt::join(image.sizes(), ","),
                  channels == 0 ? "C" : fmt::to_string(channels),
                  spatial_dims == 3 ? "D," : "");
}

void expect_detector_options(const DetectorOptions& options) {
  const auto expect = [](const char* name, double value, bool is_right, const char* expected) {
    if (!is_right) throw ConfigError("{}={}: expected {}", name, value, expected);
  };
  const double conf = options.conf_threshold, iou = options.iou_threshold;
  expect("conf_threshold", conf, conf >= 0 && conf <= 1, "0 to 1");
  expect("iou_threshold", iou, iou >= 0 && iou <= 1, "0 to 1");
  const int64_t most = options.max_detections, batch = options.batch_size;
  expect("max_detections", static_cast<double>(most), most >= 1, "1 or more");
  expect("batch_size", static_cast<double>(batch), batch >= 1, "1 or more");
}

}  // namespace cytra::pipelines
