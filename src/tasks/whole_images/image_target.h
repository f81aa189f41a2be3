#pragma once
// What tasks on whole images learn of an image: the cells of its row in a table, as numbers.
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "config/node.h"
#include "metrics/metric.h"

namespace cytra::data {
struct Sample;
}

namespace cytra::tasks {

/// One of K classes that exclude each other, numbered from 0; K labels, each of which an image has
/// or has not; or K values.
struct ImageTarget {
  enum class Kind { classes, labels, values };
  Kind kind = Kind::classes;
  int64_t count = 2;                 // K
  std::vector<std::string> names;    // of the classes, labels or values; empty: their numbers
  std::vector<std::string> columns;  // of the table: one with the class, else one for each

  /// Throws: ConfigError for another number of names, or a name that is there twice.
  void check() const;
  /// "benign" of class 0; without names its number.
  std::string name_of(int64_t number) const;
  /// "benign"; of labels those that an image has; of values the numbers. `result`: (K) in form().
  std::string text_of(const at::Tensor& result) const;
  /// The target of a sample: the number of its class, else K numbers. Throws: DataError that names
  /// its file for a cell that is missing or means nothing.
  std::vector<double> of(const data::Sample& sample) const;
  /// The form in which a decoder gives what results tell: probabilities or values.
  const char* form() const { return kind == Kind::values ? "value" : "probability"; }
  /// What metrics may take: classes and labels as masks of one voxel, and probabilities as values.
  std::vector<metrics::Metric::Input> inputs() const;
  /// The metrics of a task, with what is open in them as the target says; null: the accuracy of
  /// classes and labels.
  config::Node metrics(config::Node given) const;
  /// Class numbers (N,1,...) as probabilities of each class (N,K,...); others as they are.
  at::Tensor one_hot(const at::Tensor& target) const;
  /// Results (N,K,[1,]1,1) in their form(), and targets, as metrics take them.
  metrics::Compared compared(const at::Tensor& result,
                             const at::Tensor& target,
                             metrics::Metric::Input input) const;
};

/// Whether the configuration of a task says that its model tells something of whole images.
bool is_of_whole_images(const config::Node& task);
/// The target of the configuration of a task on whole images.
ImageTarget image_target_of(const config::Node& task);

}  // namespace cytra::tasks
