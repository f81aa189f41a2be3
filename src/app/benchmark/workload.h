#pragma once
// What is measured, a model on inputs of one shape, and how it is prepared for each variant.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "app/benchmark/variant.h"
#include "perf/measure.h"

namespace cytra::nn {
struct Model;
}

namespace cytra::app {

struct Workload {
  config::Node config;     // of a training: a run's, or an experiment's
  std::string checkpoint;  // "": weights are random
  c10::Device device = c10::kCPU;
  std::vector<int64_t> shape;    // N C [D] H W of an input
  std::string forbid_transfers;  // performance's, of training steps; "": not
  /// The shape with another batch size.
  std::vector<int64_t> shape_of(int64_t batch) const;
};

/// What one measurement gives.
struct Measured {
  perf::Times times;
  int64_t peak_bytes = 0;
  std::vector<at::Tensor> results;  // float32: what options must not change
};
/// A variant that is prepared: each call measures it.
using Ready = std::function<Measured(const perf::Repeats&)>;
/// Prepares a variant. Throws, as what it returns does: what torch throws; ConfigError for a
/// variant that there is not on this device.
using Prepare = std::function<Ready(const Variant&, int64_t batch)>;

/// Sets the variant's options in the model's configuration and for the process. Returns the
/// configuration.
/// Throws: ConfigError where the device lacks it.
config::Node prepared(const Workload& workload, const Variant& variant);
/// Makes the model on the device, in the variant's precision.
std::shared_ptr<nn::Model> make_model(const Workload& workload,
                                      const config::Node& model,
                                      const Variant& variant);

}  // namespace cytra::app
