#pragma once
// `predict` with a classifier: a table of classes instead of images.
#include "app/predict/config.h"

namespace cytra::app {

/// Whether the model tells the class of whole images (nn::Classifier).
bool tells_classes(const inference::Subject& subject);
/// Writes classes.csv, and with data.with_target reports the task's metrics. Throws: ConfigError
/// for options that classes have no use for.
int predict_classes(cli::Run run, const PredictConfig& config, const inference::Subject& subject);

}  // namespace cytra::app
