#include "app/segment/config.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"

namespace cytra::app {

void SegmentDetectorOptions::check() const {
  if (!views.is_null() && !views.is_map()) {
    throw ConfigError("views: expected a detector for each view: {front: a.ckpt, left: b.ckpt}");
  }
  for (const auto& [view, file] : views.map) file.as<std::string>();
  if (!path && views.map.empty())
    throw ConfigError("detector: expected detector.path (--detector PATH), or detector.views");
}

std::string SegmentDetectorOptions::of(const std::string& view) const {
  if (const config::Node* own = views.find_direct(view)) return own->as<std::string>();
  if (path) return *path;
  throw ConfigError(
      fmt::format("images of view '{}' have no detector; there is one for {}: give "
                  "detector.views.{}=PATH, or detector.path",
                  view,
                  join(views.keys(), ", "),
                  view.empty() ? "NAME" : view));
}

pipelines::SegmentModels segment_models(const SegmentDetectorOptions& detector,
                                        const SegmentSegmenterOptions& segmenter,
                                        int64_t image_batch_size,
                                        c10::Device device) {
  pipelines::DetectorOptions options = detector.found;
  options.batch_size = image_batch_size;
  return {[detector](const std::string& view) { return detector.of(view); },
          [options, device](const std::string& path) {
            return pipelines::load_detector(path, device, options);
          },
          [path = segmenter.path, device] { return pipelines::load_segmenter(path, device); }};
}

}  // namespace cytra::app
