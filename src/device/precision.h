#pragma once
#include <string>
#include <vector>

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

namespace cytra::device {

/// Lightning's `precision`. Mixed: weights in float32, operations cast by torch's autocast lists.
/// True: weights, images and operations of one type.
struct Precision {
  bool is_mixed = false;
  c10::ScalarType compute = c10::ScalarType::Float;     // of products and convolutions
  c10::ScalarType parameters = c10::ScalarType::Float;  // of weights and images
  /// Float16 gradients underflow without a scaled loss.
  bool needs_scaling() const { return is_mixed && compute == c10::ScalarType::Half; }
};

/// "32-true", "16-mixed", "bf16-mixed", "16-true", "bf16-true", "64-true", and Lightning's short
/// forms "32", "64", "16" (16-mixed) and "bf16" (bf16-mixed).
const std::vector<std::string>& precision_names();
/// Throws: std::logic_error for another name.
Precision precision_of(const std::string& name);

/// Autocast while it lives, by torch's cast policy of the device; losses and metrics are computed
/// in float32 all the same (tasks cast logits up). Nothing unless the precision is mixed.
class Autocast {
 public:
  Autocast(const Precision& precision, c10::DeviceType device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  c10::DeviceType device_;
  bool is_on_, was_enabled_ = false;
  c10::ScalarType before_ = c10::ScalarType::Float;
};

}  // namespace cytra::device
