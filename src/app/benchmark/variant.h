#pragma once
// The ways to run a model that are compared.
#include <optional>
#include <string>
#include <vector>

#include "config/node.h"
#include "device/convolution.h"

namespace cytra::app {

/// A way to run a model. What is not set follows the model's configuration.
struct Variant {
  std::string precision = "32-true";  // a value of trainer.precision
  bool tf32 = false;
  std::optional<bool> channels_last;
  device::ConvAlgorithm convolution = device::ConvAlgorithm::automatic;
  std::string engine = "eager";          // a value of performance.backend; of training: eager,
                                         // cudagraph
  std::string compile_mode = "default";  // a value of model.compile_mode
  // Options of training only.
  std::optional<bool> fused, gradient_checkpointing;

  /// The variant's name: "fp32", "bf16+channels_last".
  std::string name() const;
  /// The arithmetic of products: "fp32", "tf32", "bf16", "fp16", "fp64".
  std::string arithmetic() const;
  int64_t bytes_per_value() const;
  bool is_usual() const { return name() == "fp32"; }
};

/// The usual variant, then each option by itself, then the usual combinations.
std::vector<Variant> inference_variants();
std::vector<Variant> training_variants();

/// A variant of the options that made the model fastest beyond the noise, one of each kind; none
/// where that combination was measured already. `rows`: by name, as measure_rows() makes them.
std::optional<Variant> best_together(const std::vector<Variant>& variants,
                                     const config::Node& rows);

}  // namespace cytra::app
