#pragma once
// The configuration of programs with a detector and a prompted segmenter: batch_segment,
// gpu_profile_batch.
#include <optional>
#include <string>
#include <vector>

#include "app/run/entry.h"
#include "pipelines/batch_segment/batch_segment.h"
#include "pipelines/batch_segment/presets.h"

namespace cytra::app {

struct SegmentDetectorOptions {
  std::optional<std::string> path;
  config::Node views;
  pipelines::DetectorOptions found;
  template <class V>
  void visit(V& v) {
    v("path", path, "a detector, for all views that `views` does not name");
    v("views", views, "a detector for each view: {front: a.ckpt, left: b.ckpt}");
    v("conf_threshold", found.conf_threshold, "detections with a lower score are left out", 0, 1);
    v("iou_threshold",
      found.iou_threshold,
      "overlap (IoU) of two boxes of one class above which only the better one is kept",
      0,
      1);
    v("max_detections", found.max_detections, "per image", 1, 65535);
  }
  void check() const;
  /// The detector of a view. Throws: ConfigError for a view that has none.
  std::string of(const std::string& view) const;
};

struct SegmentSegmenterOptions {
  std::string path;
  template <class V>
  void visit(V& v) {
    v("path", path, "a prompted segmenter", config::required);
  }
};

/// The models that the options name.
pipelines::SegmentModels segment_models(const SegmentDetectorOptions& detector,
                                        const SegmentSegmenterOptions& segmenter,
                                        int64_t image_batch_size,
                                        c10::Device device);

}  // namespace cytra::app
