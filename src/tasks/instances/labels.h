#pragma once
// What all tasks that learn objects of label images ask of these.
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "data/sample.h"
#include "data/target_judge.h"

namespace cytra::tasks {

/// Numbers that float32 does not hold become small ones: 0, 1, ... in their order.
void renumber_large_labels(data::Sample& sample, const std::string& y_key);

/// What such a task takes its target for.
data::TargetMeaning meaning_of_objects(const std::string& x_key,
                                       const std::string& y_key,
                                       std::optional<int64_t> ignore_index = {});

/// What a task says of a validation without objects, whose scores say nothing.
std::string words_for_no_objects(const std::string& y_key);

}  // namespace cytra::tasks
