#pragma once
// The checks of label images that all tasks on objects share.
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "data/sample/sample.h"
#include "data/survey/check_targets.h"

namespace cytra::tasks {

/// Replaces numbers that float32 does not hold by 1, 2, ... in their order, where there are any; 0,
/// what is negative and `ignore_index` stay. A label image in equal channels becomes one channel.
void renumber_large_labels(data::Sample& sample,
                           const std::string& y_key,
                           std::optional<int64_t> ignore_index);

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

/// Warns once, for a validation without objects, that its scores say nothing.
class NoObjects {
 public:
  void warn(const std::string& y_key);

 private:
  bool is_told_ = false;
};

}  // namespace cytra::tasks
