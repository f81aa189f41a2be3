#pragma once
// Describes a model that another framework has written.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "inference/models/trained_model.h"

namespace cytra::inference {

/// A model in a file of another framework, with its own description.
struct ImportedModel {
  Forward forward;
  std::function<std::string()> torchscript;
  std::shared_ptr<const std::string> onnx;
  MoveModel place;
  int64_t in_channels = 0, spatial_dims = 0;       // 0: not known
  std::vector<int64_t> window;                     // the only sides it takes; empty: not known
  std::vector<int64_t> divisor;                    // as LoadedModel's; empty: not known
  config::Node config = config::Node::make_map();  // as LoadedModel's; what is known of it
  std::string fingerprint;
};

}  // namespace cytra::inference
