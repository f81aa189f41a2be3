#pragma once
#include <map>
#include <string>

#include "base/tensor_fwd.h"

namespace cytra::data {
struct Batch;
}
namespace cytra::nn {
struct Model;
}

namespace cytra::training {

using Metrics = std::map<std::string, double>;

/// What to learn, never how it is run: a model, a loss and metrics. Registered by class name.
struct Task {
  static constexpr const char* kKind = "task";
  virtual ~Task() = default;
  virtual nn::Model& model() = 0;
  /// The loss of a batch, a scalar with its graph. The batch is on the model's device.
  virtual Tensor training_step(const data::Batch& batch) = 0;
  /// Adds a batch of whole images to the metrics. Called without gradients, the model in eval mode.
  virtual void validation_step(const data::Batch& batch) = 0;
  /// The metrics ("val/loss", "val/dice") since the last call.
  virtual Metrics validation_end() = 0;
};

}  // namespace cytra::training
