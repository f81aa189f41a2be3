#pragma once
#include <cstdint>
#include <map>
#include <string>

#include <ATen/core/Tensor.h>

#include "config/visit.h"

namespace cytra::training {

/// Names and defaults of torch.amp.GradScaler.
struct GradScalerOptions {
  double init_scale = 65536, growth_factor = 2, backoff_factor = 0.5;
  int64_t growth_interval = 2000;
  template <class V>
  void visit(V& v) {
    v("init_scale", init_scale, "what the loss is multiplied with at first", 1e-6, 1e30);
    v("growth_factor", growth_factor, "of the scale after growth_interval good steps", 1, 1e6);
    v("backoff_factor", backoff_factor, "of the scale after gradients that are not finite", 0, 1);
    v("growth_interval", growth_interval, "good steps in a row before the scale grows", 1, 1e12);
  }
};

/// Scales the loss, so that small gradients survive in float16. Its state stays on the device:
/// nothing here waits for a GPU. Source: torch.amp.GradScaler; unlike it, finiteness is judged by
/// the joint norm of all gradients, so a norm beyond 1.8e19 counts as not finite.
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
