#pragma once
// The names of results.
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "data/sample/sample.h"

namespace cytra::pipelines {

/// A name for each output: the image's without folder and extension, the scene and time point that
/// were chosen, and a number when two would share it.
class OutputNames {
 public:
  std::string next(const data::Source& source);
  /// The name of a frame, or a scene, of an input whose name is `stem`, once next() was called for
  /// all.
  std::string frame(const std::string& stem, const data::Source& source);
  std::string scene(const std::string& stem, int64_t scene);

 private:
  std::string unique(const std::string& stem);
  std::set<std::string> taken_;
  std::map<std::string, int64_t> numbers_;  // the last one given, by name
};

}  // namespace cytra::pipelines
