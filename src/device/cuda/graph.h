#pragma once
// CUDA graphs of torch's work. Part of libcytra_cuda.so.
#include <functional>
#include <memory>
#include <stdexcept>

#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/Device.h>
#include <c10/cuda/CUDAStream.h>

namespace cytra::device {

/// Thrown where the work waits for the device, or does something that a graph can't hold.
struct NotCapturable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A graph of kernels that are started together, on the current stream, in the memory that they
/// were recorded with. Random numbers follow the device's generator.
class CudaGraph {
 public:
  void replay() { graph_.replay(); }

 private:
  friend class GraphRecorder;
  at::cuda::CUDAGraph graph_;
};

/// Records on a stream of its own, in memory that its graphs share: a graph's results are kept as
/// long as their tensors, but its temporaries are used by the next one. So two graphs must never
/// run at the same time. Source: torch.cuda.graphs.
class GraphRecorder {
 public:
  explicit GraphRecorder(c10::Device device);
  /// Does the work on that stream, where libraries choose their algorithms. Unless it `may_wait`,
  /// work that waits for the device throws NotCapturable after a part of it was done.
  void rehearse(const std::function<void()>& work, bool may_wait) const;
  /// Records the work. Throws: NotCapturable; the device is then in its earlier state.
  std::unique_ptr<CudaGraph> record(const std::function<void()>& work) const;

 private:
  void on_stream(const std::function<void()>& work) const;
  void clean_up_capture() const noexcept;
  c10::Device device_;
  c10::cuda::CUDAStream stream_;
  at::cuda::MempoolId_t pool_;
};

}  // namespace cytra::device
