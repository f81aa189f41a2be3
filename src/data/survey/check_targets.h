#pragma once
// Finds targets that can't have the intended meaning: no background, noise of JPEG, the image
// itself, colours, classes in place of objects ... It is shared by all tasks.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/survey/target_facts.h"

namespace cytra::data {

/// The meaning that a task gives a target.
struct TargetMeaning {
  enum class Kind { mask, masks, classes, objects, values };
  Kind kind = Kind::mask;
  std::string key, image_key;
  int64_t num_classes = 1;  // of values: channels
  std::vector<int64_t> target_values;
  std::optional<int64_t> ignore_index;
  std::optional<double> threshold;
  bool has_colours = false;  // the option `colours` is set
  std::string head;          // "": the task's only one; options of others have its name
};

/// What can't be meant, with the option that mends it.
struct TargetProblem {
  std::string text;
  bool ends_training = false;  // what would be learned is not what any user means
};

/// The problems of a split ("train", "valid"). `are_all`: the facts are of all of its images.
std::vector<TargetProblem> check_targets(const TargetMeaning& meaning,
                                         const std::string& split,
                                         const std::vector<TargetFacts>& facts,
                                         bool are_all);

/// The transform that makes a value the background of objects.
std::string background_by_map(const std::string& key, double background);

}  // namespace cytra::data
