#include "app/segment/config.h"

#include "base/error.h"
#include "base/strings.h"
#include "device/fast_precision.h"

namespace cytra::app {

void SegmentDetectorOptions::check() const {
  if (!views.is_null() && !views.is_map())
    throw ConfigError("views: expected a detector for each view: {front: a.ckpt, left: b.ckpt}");
  for (const auto& [view, file] : views.map) file.as<std::string>();
  if (!path && views.map.empty())
    throw ConfigError("detector: expected detector.path (--detector PATH), or detector.views");
}

std::string SegmentDetectorOptions::of(const std::string& view) const {
  if (const config::Node* own = views.find_direct(view)) return own->as<std::string>();
  if (path) return *path;
  throw ConfigError(
      "images of view '{}' have no detector; there is one for {}: give detector.views.{}=PATH, or "
      "detector.path",
      view,
      join(views.keys(), ", "),
      view.empty() ? "NAME" : view);
}

inference::EngineOptions SegmentConfig::engine(c10::Device device) const {
  inference::EngineOptions engine = performance.engine;
  engine.compile_model = model.engine.compile_model;
  engine.compile_mode = model.engine.compile_mode;
  engine.precision = device::precision_to_run(trainer.precision, "32", device);
  inference::expect_engine(engine, device);
  engine.say_what_is_idle(device, false);
  return engine;
}

pipelines::SegmentModels SegmentConfig::models(const inference::EngineOptions& engine,
                                               int64_t image_batch_size,
                                               int64_t tile,
                                               c10::Device device) const {
  pipelines::DetectorOptions options = detector.found;
  options.batch_size = image_batch_size;
  options.roi_size = {tile};
  options.engine = engine;
  return {[own = detector](const std::string& view) { return own.of(view); },
          [options, device](const std::string& path) {
            return pipelines::load_detector(path, device, options);
          },
          [path = segmenter.path, engine, device] {
            return pipelines::load_segmenter(path, device, engine);
          }};
}

}  // namespace cytra::app
