#include "nn/recompute.h"

#include <typeinfo>

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include "nn/forward_state.h"

namespace cytra::nn {
namespace {

using torch::autograd::SavedVariableHooks;

/// One run of a block: the tensors that its operations saved, by number.
class Frame : public std::enable_shared_from_this<Frame> {
 public:
  Frame(torch::nn::Module& block, std::function<at::Tensor()> again)
      : block_(block), again_(std::move(again)), state_(block) {}

  at::Tensor record(const std::function<at::Tensor()>& first);
  std::unique_ptr<SavedVariableHooks> hooks();
  /// Each tensor is asked for once in a backward pass; if it is kept for another pass, it is
  /// computed again.
  at::Tensor take(std::size_t number) {
    if (number >= tensors_.size() || !tensors_[number].defined()) recompute();
    return std::exchange(tensors_[number], at::Tensor());
  }

 private:
  struct Placeholder;
  struct Keeper;
  void recompute();

  torch::nn::Module& block_;  // again_ holds it
  std::function<at::Tensor()> again_;
  ForwardState state_;
  std::size_t count_ = 0;
  bool is_again_ = false;
  std::vector<at::Tensor> tensors_;
};

thread_local Frame* recording = nullptr;  // whose block runs in this thread

class Recording {
 public:
  explicit Recording(Frame* frame) { recording = frame; }
  ~Recording() { recording = nullptr; }
  Recording& operator=(Recording&&) = delete;
};

/// Weights that autocast converts inside of this scope must not be reused after the next optimizer
/// step.
struct AutocastCache {
  AutocastCache() { at::autocast::increment_nesting(); }
  ~AutocastCache() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  }
  AutocastCache& operator=(AutocastCache&&) = delete;
};

/// Used in the first run: drops the tensor, keeps its number.
struct Frame::Placeholder final : SavedVariableHooks {
  explicit Placeholder(std::shared_ptr<Frame> of) : frame(std::move(of)) {}
  void call_pack_hook(const at::Tensor& /*tensor*/) override { number = frame->count_++; }
  at::Tensor call_unpack_hook() override { return frame->take(number); }
  std::shared_ptr<Frame> frame;
  std::size_t number = 0;
};

/// Used in the second run: gives the tensor to the frame. No backward pass goes through that
/// graph.
struct Frame::Keeper final : SavedVariableHooks {
  explicit Keeper(std::vector<at::Tensor>& to) : tensors(to) {}
  void call_pack_hook(const at::Tensor& tensor) override { tensors.push_back(tensor.detach()); }
  at::Tensor call_unpack_hook() override {
    throw std::logic_error("a block's recomputation has no backward pass");
  }
  std::vector<at::Tensor>& tensors;
};

at::Tensor Frame::record(const std::function<at::Tensor()>& first) {
  const Recording scope(this);
  return first();
}

std::unique_ptr<SavedVariableHooks> Frame::hooks() {
  if (is_again_) return std::make_unique<Keeper>(tensors_);
  return std::make_unique<Placeholder>(shared_from_this());
}

void Frame::recompute() {
  tensors_.clear();
  is_again_ = true;
  {
    const KeepForwardState now(block_);
    state_.restore();
    const at::AutoGradMode grad(true);
    const Recording scope(this);
    const AutocastCache cache;
    again_();
  }
  if (tensors_.size() != count_) {
    throw std::logic_error(
        fmt::format("gradient_checkpointing: {} saved {} tensors, {} when it was computed again",
                    block_.name(),
                    count_,
                    tensors_.size()));
  }
}

/// torch's engine is where autograd asks for hooks on the tensors it saves; those that can be set
/// without replacing it (at::SavedTensorDefaultHooks) are Python objects.
struct Engine final : torch::autograd::Engine {
  ~Engine() override { stop(); }
  std::unique_ptr<SavedVariableHooks> get_default_saved_variable_hooks() override {
    return recording == nullptr ? nullptr : recording->hooks();
  }
};

torch::autograd::Engine& engine() {
  static Engine instance;
  return instance;
}

void install_engine() {
  if (&torch::autograd::Engine::get_default_engine() != &engine())
    torch::autograd::set_default_engine_stub(&engine);
}

/// Must come before the first backward pass: an engine that is set after another one has run has
/// no threads for GPUs. The engine of a host program (Python's) stays until something is
/// checkpointed.
[[maybe_unused]] const bool is_early = [] {
  const torch::autograd::Engine& present = torch::autograd::Engine::get_default_engine();
  const bool is_torchs = typeid(present) == typeid(torch::autograd::Engine);
  if (is_torchs) install_engine();
  return is_torchs;
}();

}  // namespace

at::Tensor checkpoint(torch::nn::Module& block,
                      const std::function<at::Tensor()>& first,
                      std::function<at::Tensor()> again) {
  if (!at::GradMode::is_enabled() || recording != nullptr) return first();
  install_engine();
  return std::make_shared<Frame>(block, std::move(again))->record(first);
}

}  // namespace cytra::nn
