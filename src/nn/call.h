#pragma once
// Include only from .cpp files, as nn/model.h.
#include <utility>

#include <torch/nn/module.h>

namespace cytra::nn {

/// An observer of the modules that call() runs in the thread that set `watcher`.
struct Watcher {
  virtual ~Watcher() = default;
  virtual void begin(const torch::nn::Module& module, const at::Tensor& input) = 0;
  virtual void end(const at::Tensor& output) = 0;
};

/// The watcher of this thread; null: there is none.
inline thread_local Watcher* watcher = nullptr;

/// module.forward(input, more...), seen by the watcher: models run their parts by it, so that
/// summarize() can measure their shapes, FLOPs and memory.
template <class Module, class Input, class... More>
at::Tensor call(Module& module, Input&& input, More&&... more) {
  Watcher* const watching = watcher;
  if (watching != nullptr) watching->begin(module, input);
  at::Tensor output = module.forward(std::forward<Input>(input), std::forward<More>(more)...);
  if (watching != nullptr) watching->end(output);
  return output;
}

}  // namespace cytra::nn
