#pragma once
// A recorder of steps for a CPU: each of torch's operations goes onto a tape with its arguments,
// and is played with the same tensors and numbers. As with a CUDA graph, what the host does in
// between is not on it.
#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "device/recorder.h"

namespace cytra::test {

class Tape final : public device::Recorder {
 public:
  struct Call {
    c10::OperatorHandle op;
    torch::jit::Stack arguments, results;
  };
  struct Played final : Recording {
    void replay() override {
      const at::NoGradGuard no_grad;
      const at::AutoDispatchBelowADInplaceOrView below;
      ++plays;
      for (const Call& call : calls) {
        torch::jit::Stack stack = call.arguments;
        call.op.callBoxed(stack);
        for (std::size_t i = 0; i < stack.size(); ++i) {
          const auto now = tensors_of(stack[i]), then = tensors_of(call.results[i]);
          for (std::size_t t = 0; t < now.size(); ++t) {
            if (now[t].defined() && now[t].const_data_ptr() != then[t].const_data_ptr())
              then[t].copy_(now[t]);
          }
        }
      }
    }
    std::vector<Call> calls;
  };

  /// As of a device that is behind its host by so much.
  void wait() override { std::this_thread::sleep_for(std::chrono::duration<double>(behind_s)); }
  std::vector<at::Tensor> rehearse(const Work& work, bool may_wait) override {
    ++rehearsals;
    return with(may_wait ? Mode::off : Mode::no_reads, work);
  }
  std::unique_ptr<Recording> record(const Work& work) override {
    auto played = std::make_unique<Played>();
    now_ = played.get();
    ++recordings;
    played->outputs = with(Mode::records, work);
    // A tape is written while the work is done; a recording is to leave everything as it was.
    for (const auto& [storage, tensors] : written_) at::Tensor(tensors.first).copy_(tensors.second);
    written_.clear();
    now_ = nullptr;
    return played;
  }

  static inline int64_t rehearsals = 0, recordings = 0, plays = 0;
  static inline double behind_s = 0;

  static void intercept(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const c10::impl::ExcludeDispatchKeyGuard outside(kKey);
    const std::string& name = op.schema().name();
    const bool is_read = name == "aten::_local_scalar_dense" || name == "aten::nonzero" ||
                         name == "aten::item";  // whole under InferenceMode
    if (mode_ != Mode::off && is_read) throw device::NotRecordable(name + " is read on the host");
    const auto count = op.schema().arguments().size();
    Call call{op, {stack->end() - static_cast<std::ptrdiff_t>(count), stack->end()}, {}};
    const std::size_t below = stack->size() - count;
    if (mode_ == Mode::records) keep_written(call);
    op.callBoxed(*stack);
    if (mode_ != Mode::records) return;
    call.results.assign(stack->begin() + static_cast<std::ptrdiff_t>(below), stack->end());
    now_->calls.push_back(std::move(call));
  }

 private:
  enum class Mode { off, no_reads, records };
  static constexpr auto kKey = c10::DispatchKey::Fake;  // below autograd, and nobody's in LibTorch
  static std::vector<at::Tensor> with(Mode mode, const Work& work) {
    struct Restored {
      ~Restored() { mode_ = Mode::off; }
    } restored;
    mode_ = mode;
    const c10::impl::IncludeDispatchKeyGuard inside(kKey);
    return work();
  }
  /// What the operation is about to write into.
  static void keep_written(const Call& call) {
    for (std::size_t i = 0; i < call.arguments.size(); ++i) {
      const auto* alias = call.op.schema().arguments()[i].alias_info();
      if (alias == nullptr || !alias->isWrite()) continue;
      for (const at::Tensor& tensor : tensors_of(call.arguments[i])) {
        if (tensor.defined())
          written_.try_emplace(tensor.const_data_ptr(), tensor.detach(), tensor.detach().clone());
      }
    }
  }
  static std::vector<at::Tensor> tensors_of(const c10::IValue& value) {
    if (value.isTensor()) return {value.toTensor()};
    if (value.isTensorList()) return value.toTensorVector();
    return {};
  }
  static inline Mode mode_ = Mode::off;
  static inline Played* now_ = nullptr;
  static inline std::map<const void*, std::pair<at::Tensor, at::Tensor>> written_;
};

}  // namespace cytra::test
