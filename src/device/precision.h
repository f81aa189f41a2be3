#pragma once
#include <string>
#include <vector>

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

namespace cytra::device {

/// The meaning of Lightning's `precision`. "mixed": weights in float32, operations cast by torch's
/// autocast lists. "true": weights, images and operations of one type.
struct Precision {
  bool is_mixed = false;
  c10::ScalarType compute = c10::ScalarType::Float;     // of products and convolutions
  c10::ScalarType parameters = c10::ScalarType::Float;  // of weights and images
  /// Whether the loss must be scaled: float16 gradients underflow otherwise.
  bool needs_scaling() const { return is_mixed && compute == c10::ScalarType::Half; }
};

/// The names: "32-true", "16-mixed", "bf16-mixed", "16-true", "bf16-true", "64-true", and
/// Lightning's short forms "32", "64", "16" (16-mixed) and "bf16" (bf16-mixed).
const std::vector<std::string>& precision_names();
/// The precision of a name. Throws: std::logic_error for another name.
Precision precision_of(const std::string& name);

/// Turns autocast on while it lives, by torch's cast policy of the device; losses and metrics are
/// still computed in float32 (tasks cast logits up). Does nothing unless the precision is mixed.
class [[nodiscard]] Autocast {
 public:
  Autocast(const Precision& precision, c10::DeviceType device);
  ~Autocast();
  Autocast& operator=(Autocast&&) = delete;

 private:
  c10::DeviceType device_;
  bool is_on_, was_enabled_ = false;
  c10::ScalarType before_ = c10::ScalarType::Float;
};

}  // namespace cytra::device
