#pragma once
// What a model's channels stand for: decided once, for targets, losses, metrics and predictions.
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "config/node.h"
#include "inference/decoder.h"
#include "metrics/dice.h"

namespace cytra::data {
struct Sample;
}

namespace cytra::tasks {

/// One mask (num_classes 1), classes that exclude each other, numbered from 0 (background), or,
/// with `multilabel`, masks that may overlap, a channel each. Labels, here: (N,K,...) of 0 and 1
/// for masks, (N,1,...) class numbers for classes.
struct ClassLabels {
  int64_t num_classes = 1;
  bool multilabel = false;

  bool are_exclusive() const { return num_classes > 1 && !multilabel; }
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
  /// What makes labels ("mask") and probabilities of logits, here and in predictions.
  std::shared_ptr<inference::Decoder> decoder() const;
  /// Labels as the metrics take them: (N,K,...), each 0 or 1.
  at::Tensor one_hot(const at::Tensor& labels) const;
  /// The metric that counts them: every mask, or every class but the background.
  metrics::Dice dice() const;
  /// What it says by name: "dice", and of several classes "dice_class_1" and so on, by the number
  /// of the channel. Throws: as Dice::compute().
  std::map<std::string, double> scores(const metrics::Dice& dice) const;
  /// A line on images without foreground and classes without images, which the scores leave out;
  /// "": none.
  std::string what_is_missing(const metrics::Dice& dice) const;
  /// Labels to look at, (N,1,...): class numbers; of masks that overlap the last one's number, from
  /// 1.
  at::Tensor flattened(const at::Tensor& labels) const;
};

/// Of a task's configuration; without num_classes (null, or before it was there) as many as the
/// model has channels. Throws: ConfigError for a model with another number of channels.
ClassLabels class_labels_of(const config::Node& task);

}  // namespace cytra::tasks
