#pragma once
// The meaning of a model's channels: decided once, for targets, losses, metrics and predictions.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "config/node.h"
#include "metrics/metric.h"

namespace cytra::data {
struct Sample;
}

namespace cytra::tasks {

/// One mask (num_classes 1); classes that exclude each other, numbered from 0 (background); or,
/// with `multilabel`, masks that may overlap, one per channel. Labels, here: (N,K,...) of 0 and 1
/// for masks, (N,1,...) class numbers for classes; kIgnored where nothing is known.
struct ClassLabels {
  static constexpr int64_t kIgnored = -1;

  int64_t num_classes = 1;
  bool multilabel = false;
  std::optional<int64_t> ignore_index;  // the value in files that stands for kIgnored
  std::vector<int64_t> target_values;   // in files, of the classes 0, 1, ...; empty: their numbers

  std::optional<double> target_threshold;  // of masks: what is above is 1
  std::vector<std::string> colours;        // "#ff0000", of the classes 0, 1, ...; empty: no colours

  bool are_exclusive() const { return num_classes > 1 && !multilabel; }
  /// Throws: ConfigError for another number of target_values or colours than there are classes, and
  /// for several of target_values, target_threshold and colours.
  void check() const;
  /// "2 classes that exclude each other", for messages.
  std::string text() const;
  /// A target as it was read, (C,[D,]H,W), as labels: of a mask, what is not 0 becomes 1. Throws:
  /// DataError with what was found for values that are no whole numbers, negative or beyond the
  /// classes, and another number of channels.
  at::Tensor target(const at::Tensor& values) const;
  /// The target of a sample as labels. Throws: DataError naming the file, also for another size
  /// than the image's.
  at::Tensor target_of(data::Sample& sample,
                       const std::string& y_key,
                       const std::string& x_key) const;
  /// The `metrics` of a task, completed: Dice where there are none, and the options that follow
  /// from the classes.
  config::Node metrics(config::Node given) const;
  /// The decoder that makes labels ("mask") and probabilities of logits, here and in predictions.
  config::Node decoder() const;
  /// Labels as metrics take them: (N,K,...), each 0 or 1, also where they are ignored.
  at::Tensor one_hot(const at::Tensor& labels) const;
  /// (N,1,...) bool: where labels are known; undefined: everywhere, as nothing is ignored.
  at::Tensor known(const at::Tensor& labels) const;
  /// Predicted and true labels as metrics of masks take them, or metrics of objects: these are
  /// connected regions of one class, on the CPU; of probabilities: `prediction` is these.
  metrics::Compared compared(const at::Tensor& prediction,
                             const at::Tensor& truth,
                             metrics::Metric::Input input) const;
  /// Counts images by their true labels, (K + 2) double: all, those with any foreground, those with
  /// each class.
  at::Tensor count(const at::Tensor& truth) const;
  /// A line on images without foreground and classes without images, which the means of scores
  /// leave out; "": none.
  std::string what_is_missing(const at::Tensor& counts) const;
  /// Labels for pictures, (N,1,...): class numbers; of masks that overlap, the last one's number,
  /// from 1.
  at::Tensor flattened(const at::Tensor& labels) const;

 private:
  at::Tensor painted(const at::Tensor& values) const;
  at::Tensor numbered(const at::Tensor& values, const at::Tensor& ignored) const;
};

/// The class labels of a task's configuration. Without num_classes (null, or in an older
/// configuration) there are as many as the model has channels. Throws: ConfigError for a model
/// with another number of channels.
ClassLabels class_labels_of(const config::Node& task);

}  // namespace cytra::tasks
