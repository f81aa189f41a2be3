// Averages of the weights over the training, used in evaluation and by programs that load a
// checkpoint.
// Source: torch.optim.swa_utils.AveragedModel; lightning.pytorch.callbacks.EMAWeightAveraging and
// StochasticWeightAveraging.
#include <utility>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "nn/model.h"
#include "training/callback.h"

namespace cytra::training {
namespace {
using config::Node;
using config::Unused;

/// Holds the averages while the model trains, and the training's weights while the averages are in
/// the model: a checkpoint's model.* are the averages.
class WeightAveraging : public Callback {
 public:
  explicit WeightAveraging(bool use_buffers) : use_buffers_(use_buffers) {}

  void attach(Task& task) override {
    const at::NoGradGuard no_grad;
    for (const auto& item : task.model().named_parameters()) add(item.key(), item.value(), true);
    for (const auto& item : task.model().named_buffers())
      add(item.key(), item.value(), use_buffers_ && item.value().is_floating_point());
  }
  void swap_in(Task&) override {
    if (averaged_ > 0) return swap();
    const at::NoGradGuard no_grad;  // no average yet: the weights are both
    for (std::size_t i = 0; i < names_.size(); ++i) others_[i].copy_(model_[i]);
  }
  void swap_out(Task&) noexcept override {
    if (averaged_ > 0) swap();
  }

  std::map<std::string, at::Tensor> tensors() const override {
    std::map<std::string, at::Tensor> tensors;
    for (std::size_t i = 0; i < names_.size(); ++i) tensors["training." + names_[i]] = others_[i];
    return tensors;
  }
  Node state() const override {
    Node state = Node::make_map();
    state.set("averaged", Node::make_integer(averaged_));
    return state;
  }
  void load(const Node& state) override { averaged_ = state.get<int64_t>("averaged"); }

 protected:
  /// average += (weights - average) * share; the first time a copy.
  void update(double share) {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> averages, weights;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (averaged_ > 0 && is_averaged_[i]) {
        averages.push_back(others_[i]);
        weights.push_back(model_[i].detach());
      } else {
        others_[i].copy_(model_[i]);
      }
    }
    if (!averages.empty()) at::_foreach_lerp_(averages, weights, share);
    averaged_ += 1;
  }
  int64_t averaged() const { return averaged_; }

 private:
  void add(const std::string& name, const at::Tensor& tensor, bool is_averaged) {
    names_.push_back(name);
    model_.push_back(tensor);
    others_.push_back(tensor.detach().clone());
    spare_.push_back(tensor.variable_data());
    is_averaged_.push_back(is_averaged);
  }
  /// Swaps without new tensors, since there may be no memory for any.
  void swap() noexcept {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      spare_[i].set_data(model_[i]);
      model_[i].set_data(others_[i]);
      model_[i].unsafeGetTensorImpl()->bump_version();
      std::swap(others_[i], spare_[i]);
    }
  }
  bool use_buffers_;
  int64_t averaged_ = 0;
  std::vector<std::string> names_;
  std::vector<at::Tensor> model_, others_, spare_;  // spare: what others_ was before a swap
  std::vector<bool> is_averaged_;
};

class EmaWeightAveraging final : public WeightAveraging {
 public:
  struct Options {
    double decay = 0.999;
    int64_t update_every_n_steps = 1;
    std::optional<int64_t> update_starting_at_step, update_starting_at_epoch;
    bool use_buffers = true;
    void visit(auto& v) {
      v("decay", decay, "share of the average that an update keeps", 0, 1);
      v("update_every_n_steps", update_every_n_steps, "steps between two updates", 1, 1e9);
      v("update_starting_at_step", update_starting_at_step, "first step that counts", 0, 1e12);
      v("update_starting_at_epoch", update_starting_at_epoch, "first epoch that counts", 0, 1e9);
      v("use_buffers", use_buffers, "average buffers too (running statistics), else copy them");
      v("device", Unused{{"null"}}, "averages lie beside the weights");
    }
  };
  explicit EmaWeightAveraging(const Options& options)
      : WeightAveraging(options.use_buffers), options_(options) {}

  void on_step_end(Context& context) override {
    const int64_t step = context.state.step - 1;  // counted from 0, as Lightning's
    if (step < options_.update_starting_at_step.value_or(0) ||
        context.state.epoch < options_.update_starting_at_epoch.value_or(0) ||
        step % options_.update_every_n_steps != 0)
      return;
    update(1 - options_.decay);
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Callback, EmaWeightAveraging, "EMAWeightAveraging");

class StochasticWeightAveraging final : public WeightAveraging {
 public:
  struct Options {
    double swa_epoch_start = 0.8;
    bool use_buffers = true;
    void visit(auto& v) {
      v("swa_epoch_start", swa_epoch_start, "epoch, or a share (below 1) of max_epochs", 0, 1e9);
      v("use_buffers", use_buffers, "average buffers too (running statistics), else copy them");
      v("swa_lrs", Unused{{"null"}}, "the scheduler decides on the learning rate");
      v("annealing_epochs", Unused{}, "the scheduler decides on the learning rate");
      v("annealing_strategy", Unused{}, "the scheduler decides on the learning rate");
    }
  };
  explicit StochasticWeightAveraging(const Options& options)
      : WeightAveraging(options.use_buffers), options_(options) {}

  /// Runs after an epoch's last step: the epoch's validation and checkpoint have the new average.
  void on_step_end(Context& context) override {
    if (context.state.batch < context.batches) return;
    double first = options_.swa_epoch_start;
    if (first < 1) first *= static_cast<double>(std::max<int64_t>(0, context.total_epochs));
    if (static_cast<double>(context.state.epoch + 1) > first)
      update(1 / static_cast<double>(averaged() + 1));
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Callback, StochasticWeightAveraging, "StochasticWeightAveraging");

}  // namespace
}  // namespace cytra::training
