#pragma once
// The checks of label images that all tasks on objects share.
#include <optional>
#include <string>

#include "data/sample/sample.h"
#include "data/survey/check_targets.h"

namespace cytra::tasks {

/// How the target of such a task shows objects; read by number_objects() (tasks/loaded_keys.h).
struct ObjectOptions {
  std::vector<double> object_values;
  std::optional<int64_t> background;
  void visit_objects(auto& v, std::string& y_key) {
    v("y_key", y_key, "the target's key: labels, 0 for none and a number for each object");
    v("object_values",
      object_values,
      "for a mask in place of labels: values whose connected voxels are one object each, such as "
      "[255]");
    v("background",
      background,
      "the target's number for no object, or that of a colour, R * 65536 + G * 256 + B, where "
      "objects have colours; null: 0 in one channel");
  }
};

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
