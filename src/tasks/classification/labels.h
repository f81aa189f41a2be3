#pragma once
// The classes of whole images: the words of a table, or names of folders, as class numbers.
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

/// Classes 0 to K - 1 that exclude each other, one for an image.
struct ImageLabels {
  int64_t num_classes = 2;
  std::vector<std::string> class_names;  // of 0, 1, ...; empty: images have the numbers

  /// Throws: ConfigError for another number of names, or a name that is there twice.
  void check() const;
  /// "benign" of class 0; without names its number.
  std::string name_of(int64_t number) const;
  /// The class of a sample, which is the text of its column `y_key`. Throws: DataError naming its
  /// file for another word.
  int64_t number_of(const data::Sample& sample, const std::string& y_key) const;
  /// Class numbers (N,1,[1,]1,1) as metrics take them.
  metrics::Compared compared(const at::Tensor& prediction, const at::Tensor& truth) const;
};

/// The labels of a task's configuration.
ImageLabels image_labels_of(const config::Node& task);

}  // namespace cytra::tasks
