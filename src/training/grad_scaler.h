#pragma once
#include <map>
#include <string>

#include <ATen/core/Tensor.h>

#include "training/grad_scaler_options.h"

namespace cytra::training {

/// Scales the loss, so that small gradients survive in float16. Its state stays on the device:
/// nothing here waits for a GPU. Source: torch.amp.GradScaler; unlike there, finiteness is decided
/// by the joint norm of all gradients, so a norm beyond 1.8e19 counts as not finite.
class GradScaler {
 public:
  /// Not enabled: scale() gives the loss back, factor() is undefined.
  GradScaler(const GradScalerOptions& options, bool is_enabled, c10::Device device);
  at::Tensor scale(const at::Tensor& loss) const;
  /// The scale, 0-d float on the device: gradients are this many times too large.
  const at::Tensor& factor() const { return scale_; }
  /// After each step. `found_inf`: 0-d float, 1 when its gradients were not finite.
  void update(const at::Tensor& found_inf);
  /// "scale" (float) and "growth_tracker" (int32), 0-d; empty when not enabled. They are the
  /// scaler's own: copy into them to restore.
  std::map<std::string, at::Tensor> state() const;

 private:
  GradScalerOptions options_;
  at::Tensor scale_, growth_tracker_;
};

}  // namespace cytra::training
