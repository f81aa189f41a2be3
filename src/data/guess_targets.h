#pragma once
// What images and targets are, from some of them, for a configuration that leaves it open.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/datamodule.h"

namespace cytra::data {

struct ImageHeaders {
  std::optional<int64_t> channels;  // of all that were looked at
  std::set<int64_t> all_channels;
  int64_t least_planes = 0, most_planes = 0;
  std::string example;  // a file; "": none could be opened
  int64_t example_planes = 0;
};

/// From the headers of up to 32 images, spread over all.
ImageHeaders look_at_images(const std::vector<Sample>& items, const std::string& key);

struct TargetGuess {
  /// "experiment=im2im/instance", ...: those that learn such targets; more than one where the
  /// values do not tell.
  std::vector<std::string> experiments;
  /// Of a segmentation: {"num_classes=3"}; empty: a mask, or nobody can tell.
  std::vector<std::string> classes;
  std::vector<std::string> box_classes;  // the same of a detection, by annotations
  std::string why;
  std::size_t looked_at = 0;
};

/// From up to `most` targets, spread over all, or from the annotations.
TargetGuess guess_targets(const DataModule& module,
                          const std::vector<Sample>& items,
                          const std::string& key,
                          int64_t most);

}  // namespace cytra::data
