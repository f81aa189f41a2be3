#include "training/optimizer.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/lists.h"
#include "base/log.h"
#include "config/checked.h"

namespace cytra::training {

void OptimizerOptions::check(bool has_fused) const {
  if (fused.value_or(false) && foreach.value_or(false))
    throw ConfigError("fused, foreach: expected at most one of them to be true");
  if (fused.value_or(false) && !has_fused)
    throw ConfigError("fused: there is no fused kernel for this optimizer, expected null or false");
  if (layer_decay && *layer_decay <= 0)
    throw ConfigError("layer_decay: expected a value above 0, up to 1");
}

Optimizer::Optimizer(const OptimizerOptions& options,
                     std::vector<Slot> slots,
                     Count count,
                     bool has_fused)
    : options_(config::checked(options, "optimizer")),
      slots_(std::move(slots)),
      count_(count),
      implementation_(options.foreach.value_or(false)             ? Implementation::foreach
                      : has_fused && options.fused.value_or(true) ? Implementation::fused
                      : options.foreach.value_or(true)            ? Implementation::foreach
                                                                  : Implementation::plain) {
  options_.check(has_fused);
}

namespace {

/// Whether torch 2.11's fused form equals the plain one. On CPUs SGD steps too far in 16 bits,
/// where there are 16 values or more, and Adam's small second moments differ in float16.
bool is_fused_right(std::string_view optimizer, const at::Tensor& parameter) {
  if (!parameter.is_cpu() || parameter.element_size() >= 4) return true;
  return optimizer != "SGD" && parameter.scalar_type() != at::kHalf;
}

}  // namespace

void Optimizer::attach(const NamedParameters& parameters) {
  const std::vector<ParameterSettings> settings =
      settings_of(options_, options_.weight_decay, parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, parameter] = parameters[i];
    if (settings[i].freeze) at::Tensor(parameter).set_requires_grad(false);
    if (!parameter.requires_grad()) continue;
    if (is_fused() && !is_fused_right(this->name(), parameter)) {
      if (options_.fused.value_or(false)) {
        throw ConfigError(
            "optimizer.fused: torch's fused {} is wrong for {} on a CPU; expected null or false",
            this->name(),
            c10::toString(parameter.scalar_type()));
      }
      implementation_ =
          options_.foreach.value_or(true) ? Implementation::foreach : Implementation::plain;
    }
    auto group = std::ranges::find_if(groups_, [&](const Group& other) {
      return other.settings.lr_scale == settings[i].lr_scale &&
             other.settings.weight_decay == settings[i].weight_decay &&
             other.all.parameters.front().scalar_type() == parameter.scalar_type();
    });
    if (group == groups_.end()) {
      group = groups_.emplace(groups_.end());
      group->settings = settings[i];
      group->all.slots.resize(slots_.size());
    }
    group->names.push_back(name);
    group->all.parameters.push_back(parameter);
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      const Slot& slot = slots_[s];
      if (slot.is_on_host) continue;
      if (!slot.is_scalar) group->all.slots[s].push_back(at::full_like(parameter, slot.initial));
    }
  }
  for (Group& group : groups_) {
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      if (!slots_[s].is_scalar || slots_[s].is_on_host) continue;
      const auto count = std::ssize(group.names);
      const auto options = group.all.parameters.front().options();
      group.all.slots[s] = at::full({count}, slots_[s].initial, options).unbind();
    }
  }
  if (groups_.empty()) throw ConfigError("optimizer: no parameter of the model is to be trained");
  int64_t count = 0;
  for (const Group& group : groups_) count += std::ssize(group.names);
  if (groups_.size() > 1 || count < std::ssize(parameters)) {
    for (const Group& group : groups_) {
      log::debug("optimizer: {} parameters ({}...) with lr_scale {:.4g}, weight_decay {:.4g}",
                 group.names.size(),
                 group.names.front(),
                 group.settings.lr_scale,
                 group.settings.weight_decay);
    }
  }
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    if (slots_[s].is_on_host) host_state_.push_back(numbers(s, slots_[s].initial, at::kCPU));
  }
  if (count_ == Count::none) return;
  steps_ = numbers(slots_.size(),
                   0,
                   counts_on_device() ? groups_.front().all.parameters.front().device() : at::kCPU);
  if (!counts_on_device()) host_state_.push_back(steps_);
}

at::Tensor Optimizer::numbers(std::size_t slot, double initial, c10::Device device) {
  int64_t count = 0;
  for (const Group& group : groups_) count += std::ssize(group.names);
  const at::Tensor all = at::full({count}, initial, at::TensorOptions(at::kFloat).device(device));
  for (Group& group : groups_) {
    auto& list = slot < slots_.size() ? group.all.slots[slot] : group.all.steps;
    for (std::size_t i = 0; i < group.names.size(); ++i) list.push_back(all[all.size(0) - count--]);
  }
  return all;
}

namespace {

/// Copies each of `from` to `to` unless `skip` (0-d) is 1, without the host knowing it of a GPU. It
/// uses the first step of the fused SGD, which sets the momenta to the gradients: one kernel for
/// many tensors.
void copy_unless(const at::Tensor& skip,
                 const std::vector<at::Tensor>& from,
                 const std::vector<at::Tensor>& to) {
  if (skip.is_cpu()) {
    if (skip.item<double>() != 1) at::_foreach_copy_(to, from);
    return;
  }
  at::_fused_sgd_(from,
                  from,
                  to,
                  /*weight_decay=*/0,
                  /*momentum=*/1,
                  /*lr=*/0,
                  /*dampening=*/0,
                  /*nesterov=*/false,
                  /*maximize=*/false,
                  /*is_first_step=*/true,
                  /*grad_scale=*/std::nullopt,
                  skip);
}

/// Entry i of every list but the gradients.
template <class Lists>
void append(const Lists& from, std::size_t i, Lists& to) {
  to.parameters.push_back(from.parameters[i]);
  if (!from.steps.empty()) to.steps.push_back(from.steps[i]);
  to.slots.resize(from.slots.size());
  for (std::size_t s = 0; s < from.slots.size(); ++s) to.slots[s].push_back(from.slots[s][i]);
}

/// The lists of all parameters, where each has a gradient; else the lists of those that have one.
template <class Lists>
Lists& with_gradients(Lists& all, Lists& some) {
  all.gradients.clear();
  for (const at::Tensor& parameter : all.parameters) {
    if (const at::Tensor& gradient = parameter.grad(); gradient.defined())
      all.gradients.push_back(gradient);
  }
  if (all.gradients.size() == all.parameters.size()) return all;
  some = {};
  some.gradients.swap(all.gradients);
  for (std::size_t i = 0; i < all.parameters.size(); ++i) {
    if (all.parameters[i].grad().defined()) append(all, i, some);
  }
  return some;
}

}  // namespace

void Optimizer::step(const Step& step) {
  const at::NoGradGuard no_grad;
  settle_host();
  if (!host_state_.empty() && step.found_inf.defined()) {
    host_before_.clear();
    for (const at::Tensor& numbers : host_state_) host_before_.push_back(numbers.clone());
    coming_.emplace(std::vector<at::Tensor>{step.found_inf});
  }
  bool is_complete = true;
  for (Group& group : groups_) {
    group.now = &with_gradients(group.all, group.some);
    is_complete = is_complete && group.now == &group.all;
  }
  if (count_ != Count::none) {
    at::Tensor one;
    if (counts_on_device() && step.found_inf.defined()) one = at::rsub(step.found_inf, 1);
    const auto advance = [&](at::Tensor count) { one.defined() ? count.add_(one) : count.add_(1); };
    if (is_complete) {
      advance(steps_);
    } else {
      for (const Group& group : groups_) {
        for (const at::Tensor& count : group.now->steps) advance(count);
      }
    }
  }
  for (Group& group : groups_) {
    Lists& lists = *group.now;
    if (lists.parameters.empty()) continue;
    Update update_of{step.lr * group.settings.lr_scale,
                     group.settings.weight_decay,
                     step.momentum,
                     std::nullopt,
                     std::nullopt,
                     std::nullopt};
    if (is_fused()) {
      if (step.grad_scale.defined()) update_of.grad_scale = step.grad_scale;
      if (step.found_inf.defined()) update_of.found_inf = step.found_inf;
      if (step.lr_on_device.defined())
        update_of.lr_on_device = step.lr_on_device * group.settings.lr_scale;
    } else if (step.grad_scale.defined()) {
      at::_foreach_div_(lists.gradients, step.grad_scale);
    }
    if (implementation_ == Implementation::plain) {
      for (std::size_t i = 0; i < lists.parameters.size(); ++i) {
        Lists one;
        append(lists, i, one);
        one.gradients.push_back(lists.gradients[i]);
        apply(one, update_of, step.found_inf);
      }
    } else {
      apply(lists, update_of, step.found_inf);
    }
    if (is_fused())  // torch's kernels for all tensors of a list do not count as changes
      for (const at::Tensor& tensor : lists.parameters)
        tensor.unsafeGetTensorImpl()->bump_version();
    lists.gradients.clear();  // or they would outlive zero_grad()
  }
}

at::Tensor Optimizer::joined(const std::vector<at::Tensor>& numbers) {
  int64_t place = numbers.at(0).storage_offset();
  for (const at::Tensor& number : numbers) {
    if (!number.is_alias_of(numbers[0]) || number.storage_offset() != place++) return {};
  }
  return numbers[0].as_strided({std::ssize(numbers)}, {1});
}

/// The host must not wait for the device to know whether a step is bad. Where no kernel skips bad
/// steps, the update is made on copies, which the device takes over unless the step is bad.
void Optimizer::apply(Lists& lists, const Update& update_of, const at::Tensor& found_inf) {
  if (is_fused() || !found_inf.defined()) return update(lists, update_of);
  Lists copies = lists;
  std::vector<at::Tensor> from, to;
  const auto copy = [&](const at::Tensor& tensor) {
    from.push_back(tensor);
    return to.emplace_back(at::empty_like(tensor));
  };
  const auto copy_all = [&](std::vector<at::Tensor>& tensors) {
    for (at::Tensor& tensor : tensors) tensor = copy(tensor);
  };
  copy_all(copies.parameters);
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    if (slots_[s].is_on_host) continue;
    std::vector<at::Tensor>& slot = copies.slots[s];
    const at::Tensor together = slots_[s].is_scalar ? joined(slot) : at::Tensor();
    if (together.defined())
      slot = copy(together).unbind();
    else
      copy_all(slot);
  }
  at::_foreach_copy_(to, from);
  update(copies, update_of);
  copy_unless(found_inf, to, from);
}

/// Corrects the number of a step on the host, which does not count one that was skipped.
void Optimizer::settle_host() const {
  if (coming_ && coming_->wait()[0] == 1) {
    for (std::size_t i = 0; i < host_state_.size(); ++i) host_state_[i].copy_(host_before_[i]);
  }
  coming_.reset();
}

void Optimizer::zero_grad() {
  for (const Group& group : groups_) {
    for (const at::Tensor& parameter : group.all.parameters) parameter.mutable_grad().reset();
  }
}

std::map<std::string, at::Tensor> Optimizer::state() const {
  settle_host();
  std::map<std::string, at::Tensor> state;
  for (const Group& group : groups_) {
    for (std::size_t i = 0; i < group.names.size(); ++i) {
      for (std::size_t s = 0; s < slots_.size(); ++s)
        state[std::string(slots_[s].name) + "." + group.names[i]] = group.all.slots[s][i];
      if (count_ != Count::none) state["step." + group.names[i]] = group.all.steps[i];
    }
  }
  return state;
}

std::vector<ParameterSettings> Optimizer::groups() const {
  return mapped(groups_, &Group::settings);
}

std::vector<at::Tensor> Optimizer::gradients() const {
  std::vector<at::Tensor> gradients;
  for (const Group& group : groups_) {
    for (const at::Tensor& parameter : group.all.parameters) {
      if (parameter.grad().defined()) gradients.push_back(parameter.grad());
    }
  }
  return gradients;
}

void Optimizer::turn_gradients(Lists& lists, bool maximize, double weight_decay) {
  if (maximize) lists.gradients = at::_foreach_neg(lists.gradients);
  if (weight_decay != 0)
    lists.gradients = at::_foreach_add(lists.gradients, lists.parameters, weight_decay);
}

void Optimizer::throw_no_momentum() const {
  throw ConfigError(
      "the scheduler cycles the momentum, but {} has no momentum: set optimizer.momentum where "
      "there is that option, or scheduler.cycle_momentum=false",
      name());
}

at::Tensor Optimizer::gradient_norm(double p) const {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = this->gradients();
  if (gradients.empty())
    return at::zeros({}, groups_.front().all.parameters.front().options().dtype(at::kFloat));
  // The sum is in float32 at least: a sum of squares soon leaves the range of float16.
  const at::ScalarType type =
      gradients.front().scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const std::vector<at::Tensor> norms = at::_foreach_norm(gradients, p, type);
  if (p != 2 || !norms.front().is_cpu()) return at::linalg_vector_norm(at::stack(norms), p);
  double squares = 0;  // two operations less: most of what the trainer adds to a small step
  for (const at::Tensor& norm : norms) {
    const double value = type == at::kDouble ? *norm.const_data_ptr<double>()
                                             : static_cast<double>(*norm.const_data_ptr<float>());
    squares += value * value;
  }
  return at::scalar_tensor(std::sqrt(squares), at::TensorOptions(type));
}

void Optimizer::clip_grad_value(double limit, const at::Tensor& scale) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = this->gradients();
  if (gradients.empty()) return;
  if (!scale.defined()) {
    at::_foreach_clamp_min_(gradients, -limit);
    at::_foreach_clamp_max_(gradients, limit);
    return;
  }
  const at::Tensor bound = scale * limit;
  for (at::Tensor gradient : gradients) gradient.clamp_(-bound, bound);
}

}  // namespace cytra::training
