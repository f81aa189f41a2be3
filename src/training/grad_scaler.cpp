#include "training/grad_scaler.h"

#include <ATen/ATen.h>

namespace cytra::training {

GradScaler::GradScaler(const GradScalerOptions& options, bool is_enabled, c10::Device device)
    : options_(options) {
  if (!is_enabled) return;
  scale_ = at::full({}, options.init_scale, at::TensorOptions(at::kFloat).device(device));
  growth_tracker_ = at::zeros({}, at::TensorOptions(at::kInt).device(device));
}

at::Tensor GradScaler::scale(const at::Tensor& loss) const {
  return scale_.defined() ? loss * scale_ : loss;
}

void GradScaler::update(const at::Tensor& found_inf) {
  if (!scale_.defined()) return;
  at::_amp_update_scale_(scale_,
                         growth_tracker_,
                         found_inf,
                         options_.growth_factor,
                         options_.backoff_factor,
                         options_.growth_interval);
}

std::map<std::string, at::Tensor> GradScaler::state() const {
  if (!scale_.defined()) return {};
  return {{"scale", scale_}, {"growth_tracker", growth_tracker_}};
}

}  // namespace cytra::training
