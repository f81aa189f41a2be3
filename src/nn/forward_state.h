#pragma once
// Include only from .cpp files, as nn/model.h.
#include <exception>
#include <vector>

#include <torch/nn/module.h>

namespace cytra::nn {

/// All that a forward pass reads or changes except its inputs and parameters: torch's default
/// random generators (the CPU's and that of the module's device), autocast, and every module's
/// training mode and buffers.
class ForwardState {
 public:
  explicit ForwardState(torch::nn::Module& module);
  /// Puts all of it back.
  void restore() const;

 private:
  struct OfDevice {
    c10::Device device;
    at::Tensor generator;
    bool is_autocast;
    at::ScalarType autocast_dtype;
  };
  std::vector<OfDevice> devices_;
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> modes_;
  std::vector<std::pair<at::Tensor, at::Tensor>> buffers_;  // a buffer, its values
};

/// Puts the state of its construction back at the end of its scope. Throws what this throws,
/// unless another error is being thrown, which is more important.
class KeepForwardState {
 public:
  explicit KeepForwardState(torch::nn::Module& module) : state_(module) {}
  ~KeepForwardState() noexcept(false);
  KeepForwardState& operator=(KeepForwardState&&) = delete;

 private:
  ForwardState state_;
  int errors_ = std::uncaught_exceptions();
};

}  // namespace cytra::nn
