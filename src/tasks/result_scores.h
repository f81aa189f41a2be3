#pragma once
// Scores of a trained model's results by their targets, for `predict` with data.with_target.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/node.h"
#include "tasks/class_labels.h"
#include "tasks/metric_set.h"

namespace cytra::tasks {

/// Scores finished results by the metrics of a task (or of one of its heads): labels of classes,
/// labels of objects, or values, as its decoder gives them.
class ResultScores {
 public:
  /// `channels`: of the model's output.
  ResultScores(const config::Node& task, int64_t channels);
  /// The true values of a sample, (1,C,[D,]H,W), and where they are known; undefined: everywhere.
  struct Target {
    at::Tensor values, mask;
  };
  /// Throws: DataError naming its file.
  Target target_of(data::Sample& sample, const std::string& y_key, const std::string& x_key) const;
  /// `result`: labels, or values, (C,[D,]H,W).
  void update(const at::Tensor& result, const Target& target, const io::Geometry& geometry);
  /// The scores by name. Those of classes have the classes' names, where the task has any.
  std::map<std::string, double> compute() const;
  std::vector<at::Tensor> sums() const;
  /// A line on images and classes that the scores leave out; "": none.
  std::string what_is_missing() const;

 private:
  std::optional<ClassLabels> labels_;  // none: of objects, or values
  std::optional<std::string> mask_key_;
  bool are_objects_;
  std::optional<int64_t> ignored_object_;
  std::vector<std::string> class_names_;
  MetricSet metrics_;
  at::Tensor counts_;  // of images, by ClassLabels::count()
};

}  // namespace cytra::tasks
