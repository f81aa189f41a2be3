#pragma once
// Guesses from some images and targets what they are, for a configuration that leaves it open.
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

/// Reads the headers of up to 32 images, spread over all.
ImageHeaders look_at_images(const std::vector<Sample>& items, const std::string& key);

struct TargetGuess {
  /// The experiments that learn such targets ("experiment=im2im/instance", ...); several where the
  /// values do not decide it.
  std::vector<std::string> experiments;
  /// The classes of a segmentation: {"num_classes=3"}; empty for a mask, or where they are
  /// unknown.
  std::vector<std::string> classes;
  std::vector<std::string> box_classes;  // the classes of a detection, by annotations
  std::vector<std::string> objects;      // how objects are numbered: {"task.background=-1"}
  std::string why;
  std::size_t looked_at = 0;
};

/// Guesses from up to `most` targets, spread over all, or from the annotations.
TargetGuess guess_targets(const DataModule& module,
                          const std::vector<Sample>& items,
                          const std::string& key,
                          int64_t most);

}  // namespace cytra::data
