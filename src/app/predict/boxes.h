#pragma once
// `predict` with a detector: boxes instead of images.
#include "app/predict/config.h"
#include "inference/trained_model.h"

namespace cytra::app {

/// Whether the model finds boxes.
bool finds_boxes(const inference::LoadedModel& model);

/// Writes detections.csv, detections.json (COCO) and, with predict.overlay, a PNG of each image.
/// Throws: ConfigError for options that boxes have no use for.
int predict_boxes(cli::Run run,
                  const PredictConfig& config,
                  const inference::LoadedModel& model,
                  c10::Device device);

}  // namespace cytra::app
