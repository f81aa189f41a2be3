#pragma once
// What precedes and follows a network, as operations of bioimage.io's model description 0.5.
#include <string>
#include <utility>
#include <vector>

#include "config/node.h"
#include "inference/models/trained_model.h"

namespace cytra::app {

/// A map of values: map_of({{"gain", Node::make_real(2)}}).
config::Node map_of(std::vector<std::pair<std::string, config::Node>> entries);
inline config::Node text_node(const std::string& text) {
  return config::Node::make_string(text);
}

/// The transforms of a model's input.
struct PackagePreprocessing {
  /// Throws: ConfigError naming the format, and a transform that has no counterpart.
  PackagePreprocessing(const inference::LoadedModel& model, const std::string& format);
  config::Node operations = config::Node::make_list();
  std::vector<config::Node> transforms;  // ours, after the loading
};

/// What the package gives: probabilities of classes or masks, values, or the network's channels.
struct PackageOutput {
  explicit PackageOutput(const inference::LoadedModel& model);
  /// The operations with the input's name in the package.
  config::Node operations_in(const std::string& input) const;
  config::Node operations = config::Node::make_list();
  std::string id;
};

}  // namespace cytra::app
