#pragma once
// What all tasks that learn objects of label images ask of these.
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "data/check_targets.h"
#include "data/sample.h"

namespace cytra::tasks {

/// Numbers that float32 does not hold become small ones: 0, 1, ... in their order.
void renumber_large_labels(data::Sample& sample, const std::string& y_key);

/// Checks a sample's labels: whole numbers in one channel, of the image's size, none negative but
/// `ignore_index`; large ones are renumbered. Throws: DataError naming the file.
void prepare_objects(data::Sample& sample,
                     const std::string& y_key,
                     const std::string& x_key,
                     std::optional<int64_t> ignore_index = {});

/// What such a task takes its target for.
data::TargetMeaning meaning_of_objects(const std::string& x_key,
                                       const std::string& y_key,
                                       std::optional<int64_t> ignore_index = {});

/// Says of a validation without objects, once, that its scores say nothing.
class NoObjects {
 public:
  void warn(const std::string& y_key);

 private:
  bool is_told_ = false;
};

}  // namespace cytra::tasks
