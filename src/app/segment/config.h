#pragma once
// What the programs of detector and prompted segmenter take: batch_segment, gpu_profile_batch.
#include <optional>
#include <string>
#include <vector>

#include "app/run/entry.h"
#include "pipelines/batch_segment/batch_segment.h"

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
      "of two boxes of a class that overlap more, the better one stays",
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

/// The models that these name.
pipelines::SegmentModels segment_models(const SegmentDetectorOptions& detector,
                                        const SegmentSegmenterOptions& segmenter,
                                        int64_t image_batch_size,
                                        c10::Device device);

/// Batch sizes that suit a device. Source: issue "GPU optimization for batch segmentation", its
/// tables for T4, A10G and A100.
struct SegmentPreset {
  const char* name;
  int64_t sam_batch_size, image_batch_size, io_workers;
};
std::vector<std::string> segment_preset_names();
/// auto: by the device's name, else by its memory. Throws: std::logic_error for another name.
SegmentPreset segment_preset(const std::string& name, c10::Device device);
/// `description`: as perf::describe() gives it; `memory`: its bytes.
SegmentPreset preset_of_device(const std::string& description, int64_t memory);

/// The images that data.path names, with names of their own and views. `view`: this one alone.
/// Throws: ConfigError, DataError.
std::vector<pipelines::SegmentInput> list_segment_inputs(const std::string& path,
                                                         const std::optional<std::string>& view);

}  // namespace cytra::app
