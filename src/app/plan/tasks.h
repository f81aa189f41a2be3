#pragma once
// The tasks that `train --plan` plans: networks for masks, classes and objects, or a detector.
#include <string>

#include "app/plan/file.h"
#include "nn/plan_unet.h"

namespace cytra::app {

/// What the experiment learns.
enum class Learned { classes, objects, boxes };
/// What the experiment learns, by its task. Throws: ConfigError for another task, and for a model
/// that is not planned.
Learned learned_by(const config::Node& task_config);
/// The `defaults` list that the experiment begins with.
const char* defaults_of(Learned learned);

/// Plans a detector, which has no levels to choose: its patch and its batch follow the images.
/// Throws: ConfigError for stacks.
ExperimentFile plan_detection(const nn::DataFacts& data,
                              int64_t channels,
                              double memory_gb,
                              const std::string& memory_why,
                              const std::string& name);

/// The plan's line about cross-validation, by the folds that the data set takes; "" where it takes
/// none.
std::string cross_validation(const config::Node& data,
                             std::size_t images,
                             const std::string& train);

}  // namespace cytra::app
