#pragma once
// CUDA graphs of torch's work. Part of libcytra_cuda.so.
#include <functional>
#include <memory>
#include <stdexcept>

#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/Device.h>
#include <c10/cuda/CUDAStream.h>

namespace cytra::device {

/// The work waits for the device, or asks for what a graph can't hold.
struct NotCapturable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Kernels that are started all at once, on the current stream, in the memory that they were
/// recorded with. Random numbers follow the device's generator.
class CudaGraph {
 public:
  void replay() { graph_.replay(); }

 private:
  friend class GraphRecorder;
  at::cuda::CUDAGraph graph_;
};

/// Records on a stream of its own, in memory that its graphs share: what one of them gives is kept
/// as long as its tensors are, its temporaries are the next one's. So two graphs are never to run
/// at the same time. Source: torch.cuda.graphs.
class GraphRecorder {
 public:
  explicit GraphRecorder(c10::Device device);
  /// Does the work on that stream: libraries choose their algorithms there. Unless it `may_wait`,
  /// what waits for the device throws NotCapturable, after a part of the work.
  void rehearse(const std::function<void()>& work, bool may_wait) const;
  /// Throws: NotCapturable; the device is as before then.
  std::unique_ptr<CudaGraph> record(const std::function<void()>& work) const;

 private:
  void on_stream(const std::function<void()>& work) const;
  void clean_up_capture() const noexcept;
  c10::Device device_;
  c10::cuda::CUDAStream stream_;
  at::cuda::MempoolId_t pool_;
};

}  // namespace cytra::device
