#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::training {

/// Updates parameters from their gradients, in place. Registered under torch.optim's class name.
class Optimizer {
 public:
  static constexpr const char* kKind = "optimizer";
  virtual ~Optimizer() = default;
  /// Takes the parameters that require a gradient. Call once.
  void attach(const std::map<std::string, at::Tensor>& parameters);
  /// One update with this learning rate; parameters without a gradient are left alone.
  struct Step {
    double lr;
    std::optional<double> momentum;
    at::Tensor grad_scale, found_inf;
  };
  virtual void step(const Step& how) = 0;
  void zero_grad();
  /// The state by name, e.g. "exp_avg.<parameter>"; the tensors are the optimizer's own: copy into
  /// them to restore.
  virtual std::map<std::string, at::Tensor> state() const = 0;
  virtual double base_lr() const = 0;
  /// Scales the gradients so that their joint 2-norm is at most `max_norm`; returns the norm
  /// before, on the device. Source: torch.nn.utils.clip_grad_norm_.
  at::Tensor clip_grad_norm(double max_norm);
  at::Tensor gradient_norm() const;
  void clip_grad_value(double limit);
  void clip_grad_value(const at::Tensor& limit);

 protected:
  virtual void allocate() = 0;  // the state, once names_ and parameters_ are known
  /// Indices of the parameters that have a gradient.
  std::vector<std::size_t> with_gradient() const;
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_;
};

}  // namespace cytra::training
