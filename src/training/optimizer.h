#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "training/parameter_groups.h"
#include "training/readback.h"

namespace cytra::training {

/// Keys that every optimizer takes: its Options are derived from them.
struct OptimizerOptions : GroupOptions {
  double lr = 1e-3, weight_decay = 0;
  std::optional<bool> fused, foreach;
  void visit(auto& v) {
    v("lr", lr, "learning rate, per optimizer step", 0, 1e9);
    v("weight_decay", weight_decay, "pull towards zero", 0, 1e9);
    GroupOptions::visit(v);
    v("fused", fused, "one kernel for the whole update; null: if there is one");
    v("foreach",
      foreach,
      "one kernel per operation for all parameters; false, without fused: parameter by parameter, "
      "which takes the least memory; null: if there is no fused kernel");
  }
  void check(bool has_fused = true) const;
};

/// Updates parameters from their gradients, in place. Registered under torch.optim's class name,
/// equal to it in every implementation (fused, foreach, neither). All parameters are on one device.
class Optimizer {
 public:
  static constexpr const char* kKind = "optimizer";
  virtual ~Optimizer() = default;
  /// Takes the parameters that require a gradient, but for those that a group freezes: these no
  /// longer require one, and have no state. Call once.
  /// Throws: ConfigError when a group matches no parameter, or nothing is left to train.
  void attach(const NamedParameters& parameters);
  bool is_attached() const { return !groups_.empty(); }

  struct Step {
    double lr = 0;                        // before the groups' lr_scale
    std::optional<double> momentum = {};  // betas[0] of Adam and the like; null: the option
    at::Tensor grad_scale = {};           // gradients are divided by it; 0-d float; undefined: 1
    at::Tensor found_inf = {};            // 1: nothing changes at all; 0-d float; undefined: 0
    at::Tensor lr_on_device = {};         // in place of lr, where can_be_recorded(); 0-d float
  };
  /// One update; parameters without a gradient are left alone. Both tensors are on the parameters'
  /// device, and neither is waited for on the host. With grad_scale the gradients hold the quotient
  /// afterwards.
  /// Throws: ConfigError for a momentum where the optimizer has none.
  void step(const Step& step);
  /// Whether the host's only part in a step is to start it: all its numbers, the learning rate
  /// too, are on the device.
  bool can_be_recorded() const { return is_fused() && count_ != Count::on_host; }
  void zero_grad();
  /// The state by name, e.g. "exp_avg.<parameter>"; the tensors are the optimizer's own: copy into
  /// them to restore.
  std::map<std::string, at::Tensor> state() const;
  double base_lr() const { return options_.lr; }
  virtual const char* name() const = 0;  // of torch.optim's class
  /// What Step::momentum stands in for: momentum, or betas[0].
  virtual double momentum() const = 0;
  /// The groups of parameters with equal settings, in the order of their first parameters.
  std::vector<ParameterSettings> groups() const;

  /// The joint p-norm of all gradients in one pass over them, 0-d on the device; 0 without any.
  at::Tensor gradient_norm(double p = 2) const;
  /// Limits every value of the gradients to [-limit, limit], times `scale` (0-d; undefined: 1) for
  /// gradients that are yet to be divided by it. Source: torch.nn.utils.clip_grad_value_.
  void clip_grad_value(double limit, const at::Tensor& scale = {});

 protected:
  /// What is kept for each parameter: a tensor like it, or one number.
  struct Slot {
    const char* name;
    bool is_scalar = false;  // those of a group's parameters lie side by side
    double initial = 0;
    bool is_on_host = false;  // a number that update() reads and changes there
  };
  /// Parameters with their gradients and state: entry i belongs to parameter i.
  struct Lists {
    std::vector<at::Tensor> parameters, gradients, steps;
    std::vector<std::vector<at::Tensor>> slots;  // by slot, then by parameter
  };
  /// A step of parameters with the same settings.
  struct Update {
    double lr, weight_decay;
    std::optional<double> momentum;
    // for the fused kernels alone; lr_on_device takes the place of lr
    std::optional<at::Tensor> grad_scale, found_inf, lr_on_device;
  };
  enum class Implementation { fused, foreach, plain };
  /// Whether Lists::steps, 0-d floats, count each parameter's updates: on the host, or for a fused
  /// update on the device.
  enum class Count { none, on_host, on_device_if_fused };

  Optimizer(const OptimizerOptions& options,
            std::vector<Slot> slots,
            Count count,
            bool has_fused = true);
  /// Updates `lists`, none of them empty, with the step under way counted already. In place: the
  /// parameters and slots; the gradients may be overwritten.
  virtual void update(Lists& lists, const Update& update) = 0;
  bool is_fused() const { return implementation_ == Implementation::fused; }
  /// Prepares the gradients: negates them to `maximize`, and adds a weight decay that is part of
  /// the loss.
  static void turn_gradients(Lists& lists, bool maximize, double weight_decay);
  /// The tensor (N) whose memory these contiguous numbers share; undefined: they are not
  /// contiguous, as in a step that lacks some gradients.
  static at::Tensor joined(const std::vector<at::Tensor>& numbers);
  /// ConfigError for an Update with a momentum.
  [[noreturn]] void throw_no_momentum() const;

 private:
  /// Parameters with the same settings.
  struct Group {
    ParameterSettings settings;
    std::vector<std::string> names;
    Lists all, some;       // with every gradient, and for a step that lacks some
    Lists* now = nullptr;  // the one of the step under way
  };
  std::vector<at::Tensor> gradients() const;
  bool counts_on_device() const { return is_fused() && count_ == Count::on_device_if_fused; }
  /// (N), of which the tensors of that slot are views; behind the last slot come the counts.
  at::Tensor numbers(std::size_t slot, double initial, c10::Device device);
  void apply(Lists& lists, const Update& update, const at::Tensor& found_inf);
  void settle_host() const;

  OptimizerOptions options_;
  std::vector<Slot> slots_;
  Count count_;
  Implementation implementation_;
  std::vector<Group> groups_;
  at::Tensor steps_;  // (N), of which Lists::steps are views
  // The host counts every step; a step that was skipped is subtracted when the device has reported
  // it.
  std::vector<at::Tensor> host_state_, host_before_;
  mutable std::optional<Readback> coming_;  // found_inf of the newest step
};

}  // namespace cytra::training
