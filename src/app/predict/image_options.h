#pragma once
#include <string>

#include "app/predict/config.h"
#include "inference/predictor/predictor.h"

namespace cytra::app {

/// Throws: ConfigError that names an option for results that are images and is given, and ends with
/// `why` this model does not take it.
void expect_no_image_options(const PredictConfig& config, const std::string& why);
/// Throws: ConfigError where results do not have the form of the targets, for data.with_target.
void expect_scored_form(const inference::Predictor& predictor);

}  // namespace cytra::app
