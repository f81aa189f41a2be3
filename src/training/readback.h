#pragma once
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace cytra::training {

/// Numbers that are being copied from the device: the copy is queued behind the work that computes
/// them, and is read when no waiting is needed any more.
class Readback {
 public:
  /// `values`: 0-d tensors of one device.
  explicit Readback(const std::vector<at::Tensor>& values);
  ~Readback();
  Readback(Readback&&) noexcept;
  Readback& operator=(Readback&&) noexcept;
  /// Waits for the device up to the point where the numbers are computed.
  std::vector<double> wait() const;

 private:
  struct Event;
  at::Tensor host_;  // (N,) on the host, page-locked for a GPU
  std::unique_ptr<Event> event_;
};

}  // namespace cytra::training
