#pragma once
// What the annotations of a data set become, by the configuration of the task.
#include <map>
#include <string>
#include <vector>

#include "config/node.h"
#include "data/sample/annotations.h"
#include "tasks/class_labels.h"

namespace cytra::tasks {

/// What annotations become, by key, with the task's class_names: instances, classes, masks or
/// boxes. A key of images that the task compares with has none.
std::map<std::string, data::AnnotationTarget> annotation_targets(const config::Node& task);

/// Where a data set has annotations: says in its LoadImaged what they become (`annotations`,
/// `class_names`), and in the task the names of their classes, where it tells classes apart and
/// leaves class_names open. Returns whether there are any. Throws: ConfigError for another number
/// of classes than num_classes; DataError.
bool fit_to_annotations(config::Node& data, config::Node& task);

/// "dice_nucleus" in place of "dice_class_1": the classes of a task by their names, where it has
/// any. What can't be in a metric's name becomes _.
std::map<std::string, double> with_class_names(const std::map<std::string, double>& values,
                                               const std::vector<std::string>& names,
                                               int64_t first);
/// The name that the task has for the class of this number (of masks: its channel; of one mask 1),
/// else "class_1".
std::string class_name_of(const config::Node& task, int64_t number);
/// Whether a task names its classes.
bool has_class_names(const config::Node& task);
/// The number of the first class that has a name: 0 is the background of classes that exclude each
/// other.
int64_t first_class(const ClassLabels& labels);

}  // namespace cytra::tasks
