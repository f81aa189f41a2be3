#pragma once
// The configuration of programs with a detector and a prompted segmenter: batch_segment,
// gpu_profile_batch.
#include <optional>
#include <string>

#include "app/run/entry.h"
#include "inference/predictor/subject.h"
#include "pipelines/batch_segment/batch_segment.h"
#include "pipelines/batch_segment/presets.h"

namespace cytra::app {

struct SegmentDetectorOptions {
  std::optional<std::string> path;
  config::Node views;
  pipelines::DetectorOptions found;
  void visit(auto& v) {
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
  void visit(auto& v) { v("path", path, "a prompted segmenter", config::required); }
};

struct SegmentTrainerOptions : device::DeviceOptions {
  std::string precision = "32";
  void visit(auto& v) {
    DeviceOptions::visit(v);
    v("precision",
      precision,
      "precision of products in both models; weights and masks stay float32, so true and mixed are "
      "the same here",
      device::precision_names());
  }
};

/// What the programs share: the models, and how they are run.
struct SegmentConfig : CommonConfig {
  struct Preparation {
    inference::EngineOptions engine;
    void visit(auto& v) { engine.visit_model(v); }
  };
  SegmentDetectorOptions detector;
  SegmentSegmenterOptions segmenter;
  SegmentTrainerOptions trainer;
  inference::ModelPerformanceOptions performance;
  Preparation model;
  void visit(auto& v) {
    v("detector", detector, "what finds boxes");
    v("segmenter", segmenter, "what makes a mask of each");
    v("trainer", trainer, "where to compute, and in which precision");
    v("performance", performance, "switches that hold for the whole process");
    v("model", model, "how both models are prepared");
    CommonConfig::visit_names(v);
  }
  /// What runs the models. Throws: ConfigError where the device can't.
  inference::EngineOptions engine(c10::Device device) const;
  /// The models; larger images are searched by tiles of this side (0: as a whole).
  pipelines::SegmentModels models(const inference::EngineOptions& engine,
                                  int64_t image_batch_size,
                                  int64_t tile,
                                  c10::Device device) const;
};

}  // namespace cytra::app
