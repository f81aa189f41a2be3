#pragma once
// The ways to run a model that are compared.
#include <optional>
#include <string>
#include <vector>

#include "config/node.h"

namespace cytra::app {

/// One way to run a model. What is not set is as its configuration says.
struct Variant {
  std::string precision = "32-true";  // as trainer.precision
  bool tf32 = false;
  std::optional<bool> channels_last;
  std::string engine = "eager";          // as performance.backend; of training: eager, cudagraph
  std::string compile_mode = "default";  // as model.compile_mode
  // Of training.
  std::optional<bool> fused, gradient_checkpointing;

  /// "fp32", "bf16+channels_last".
  std::string name() const;
  /// "fp32", "tf32", "bf16", "fp16", "fp64": what products are computed in.
  std::string arithmetic() const;
  int64_t bytes_per_value() const;
  bool is_usual() const { return name() == "fp32"; }
};

/// The usual one, then each option by itself, then those that are usual together.
std::vector<Variant> inference_variants();
std::vector<Variant> training_variants();

/// Of each kind of option the one that made the model fastest, beyond the noise, all in one; none
/// where that was measured already. `rows`: by name, as rows.h makes them.
std::optional<Variant> best_together(const std::vector<Variant>& variants,
                                     const config::Node& rows);

}  // namespace cytra::app
