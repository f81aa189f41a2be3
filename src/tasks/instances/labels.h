#pragma once
// What all tasks that learn objects of label images ask of these.
#include <string>

#include <ATen/core/Tensor.h>

#include "data/sample.h"

namespace cytra::tasks {

/// Numbers that float32 does not hold become small ones: 0, 1, ... in their order.
void renumber_large_labels(data::Sample& sample, const std::string& y_key);

/// How many separate pieces the only object of (1,[D,]H,W) has, where they are so many that these
/// are no labels but a mask of all objects; else 0.
int64_t pieces_of_mask(const at::Tensor& labels);
/// Warns, once in a process, of such labels. `path`: of the file. Thread: several at once.
void doubt_masks(const at::Tensor& labels, const std::string& path);

/// What a task says of a validation without objects, whose scores are nan.
std::string words_for_no_objects(const std::string& y_key);

}  // namespace cytra::tasks
