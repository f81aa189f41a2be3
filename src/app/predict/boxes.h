#pragma once
// `predict` with a detector: boxes instead of images.
#include "app/predict/config.h"

namespace cytra::app {

/// Writes detections.csv, detections.json (COCO) and, with predict.overlay, a PNG of each image.
/// Throws: ConfigError for options that boxes have no use for.
int predict_boxes(cli::Run run, const PredictConfig& config, const inference::Subject& subject);

}  // namespace cytra::app
