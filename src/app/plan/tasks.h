#pragma once
// What `train --plan` plans: networks of masks, classes and objects, or a detector.
#include <string>

#include "app/plan/file.h"
#include "nn/plan_unet.h"

namespace cytra::app {

/// What the experiment learns.
enum class Learned { classes, objects, boxes };
/// By the task. Throws: ConfigError for another one, and for a model that is not planned.
Learned learned_by(const config::Node& task_config);
/// The configurations that the experiment begins with.
const char* defaults_of(Learned learned);

/// A detector has no levels to choose: its patch and its batch follow the images. Throws:
/// ConfigError for stacks.
ExperimentFile plan_detection(const nn::DataFacts& data,
                              int64_t channels,
                              double memory_gb,
                              const std::string& memory_why,
                              const std::string& name);

/// The plan's line of cross-validation, of what the data set takes of folds; "" where it has none.
std::string cross_validation(const config::Node& data,
                             std::size_t images,
                             const std::string& train);

}  // namespace cytra::app
