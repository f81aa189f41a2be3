#pragma once
#include <string>

#include "app/predict/config.h"

namespace cytra::app {

/// Throws: ConfigError that names an option for results that are images and is given, and ends with
/// `why` this model does not take it.
void expect_no_image_options(const PredictConfig& config, const std::string& why);

}  // namespace cytra::app
