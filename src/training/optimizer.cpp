#include "training/optimizer.h"

#include <ATen/ATen.h>

namespace cytra::training {

void Optimizer::attach(const std::map<std::string, at::Tensor>& parameters) {
  for (const auto& [name, parameter] : parameters) {
    if (!parameter.requires_grad()) continue;
    names_.push_back(name);
    parameters_.push_back(parameter);
  }
  allocate();
}

void Optimizer::zero_grad() {
  for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
}

std::vector<std::size_t> Optimizer::with_gradient() const {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].grad().defined()) indices.push_back(i);
  }
  return indices;
}

at::Tensor Optimizer::clip_grad_norm(double max_norm) {
  std::vector<at::Tensor> gradients;
  for (const std::size_t i : with_gradient()) gradients.push_back(parameters_[i].grad());
  if (gradients.empty()) return at::zeros({});
  const at::Tensor norm = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients)));
  at::_foreach_mul_(gradients, (max_norm / (norm + 1e-6)).clamp_max(1.0));
  return norm;
}

at::Tensor Optimizer::gradient_norm() const {
  std::vector<at::Tensor> gradients;
  for (const std::size_t i : with_gradient()) gradients.push_back(parameters_[i].grad());
  if (gradients.empty()) return at::zeros({});
  return at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients)));
}
void Optimizer::clip_grad_value(double) {}
void Optimizer::clip_grad_value(const at::Tensor&) {}

}  // namespace cytra::training
