#pragma once
// `predict` with a network that tells something of whole images: a table instead of images.
#include "app/predict/config.h"

namespace cytra::app {

/// Whether the model is one of whole images (nn::Classifier).
bool is_of_whole_images(const inference::Subject& subject);
/// Writes predictions.csv and, with predict.overlay, a picture of what each image's result is made
/// of; with data.with_target it reports the task's metrics. Throws: ConfigError for options that
/// these have no use for.
int predict_whole_images(cli::Run run,
                         const PredictConfig& config,
                         const inference::Subject& subject);

}  // namespace cytra::app
