// Part of device/recorder.h: CUDA graphs of torch's work, in libcytra_cuda.so. Source:
// torch.cuda.graphs.
#include "device/recorder.h"

#include <mutex>
#include <optional>
#include <string>

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace cytra::device {
namespace {

/// Makes torch throw, while it lives, where the host would wait for a device.
class NoWaiting {
 public:
  NoWaiting() : before_(c10::cuda::warning_state().get_sync_debug_mode()) {
    c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_ERROR);
  }
  ~NoWaiting() { c10::cuda::warning_state().set_sync_debug_mode(before_); }
  NoWaiting& operator=(NoWaiting&&) = delete;

 private:
  c10::cuda::SyncDebugMode before_;
};

/// The first line of torch's message, without its advice.
std::string first_line(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return text.substr(0, text.find('\n'));
}

bool is_of_waiting(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return text.find("synchronizing CUDA operation") != std::string::npos;
}

/// Records on a stream of its own, in memory that its graphs share: a graph's results are kept as
/// long as their tensors, but its temporaries are used by the next one.
class GraphRecorder final : public Recorder {
 public:
  explicit GraphRecorder(c10::Device device)
      : device_(device.has_index() ? device : c10::Device(c10::kCUDA, c10::cuda::current_device())),
        stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device_.index())),
        pool_(at::cuda::graph_pool_handle()) {}

  void wait() override { c10::cuda::getCurrentCUDAStream(device_.index()).synchronize(); }
  std::vector<at::Tensor> rehearse(const Work& work, bool may_wait) override;
  std::unique_ptr<Recording> record(const Work& work) override;

 private:
  struct Graph final : Recording {
    void replay() override {
      const c10::cuda::CUDAGuard guard(device);
      graph.replay();
    }
    c10::Device device = c10::kCUDA;
    at::cuda::CUDAGraph graph;
  };
  void on_stream(const std::function<void()>& work) const;
  void clean_up_capture() const noexcept;
  c10::Device device_;
  c10::cuda::CUDAStream stream_;
  at::cuda::MempoolId_t pool_;
};

/// Does the work on the recorder's stream, after the current stream's work so far; the current
/// stream continues after it.
void GraphRecorder::on_stream(const std::function<void()>& work) const {
  const c10::cuda::CUDAGuard guard(device_);
  const c10::cuda::CUDAStream outer = c10::cuda::getCurrentCUDAStream();
  const auto follow = [](const c10::cuda::CUDAStream& last, const c10::cuda::CUDAStream& first) {
    at::cuda::CUDAEvent done;
    done.record(first);
    done.block(last);
  };
  follow(stream_, outer);
  try {
    const c10::cuda::CUDAStreamGuard stream(stream_);
    work();
  } catch (...) {
    follow(outer, stream_);
    throw;
  }
  follow(outer, stream_);
}

std::vector<at::Tensor> GraphRecorder::rehearse(const Work& work, bool may_wait) {
  std::vector<at::Tensor> outputs;
  try {
    on_stream([&] {
      std::optional<NoWaiting> no_waiting;
      if (!may_wait) no_waiting.emplace();
      outputs = work();
    });
  } catch (const c10::Error& error) {
    if (may_wait || !is_of_waiting(error)) throw;
    throw NotRecordable("something in it waits for the GPU (" + first_line(error) + ")");
  }
  return outputs;
}

std::unique_ptr<Recorder::Recording> GraphRecorder::record(const Work& work) {
  // The memory blocks of earlier work can't be used for the graph's own memory.
  c10::cuda::CUDACachingAllocator::emptyCache();
  auto recording = std::make_unique<Graph>();
  recording->device = device_;
  on_stream([&] {
    // The mode is thread_local: loading threads may still do what a capture forbids.
    try {
      recording->graph.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
      recording->outputs = work();
      recording->graph.capture_end();
    } catch (const c10::Error& error) {
      clean_up_capture();
      throw NotRecordable(first_line(error));
    } catch (...) {
      clean_up_capture();
      throw;
    }
  });
  return recording;
}

/// Cleans up after CUDAGraph when a capture fails: else the stream, the allocator and the
/// generator would continue as if it were under way.
void GraphRecorder::clean_up_capture() const noexcept {
  const auto attempt = [](const auto& call) {
    try {
      call();
    } catch (const std::exception&) {  // it was not begun, or has ended
    }
  };
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream_, &status) != cudaSuccess ||
      status != cudaStreamCaptureStatusNone) {
    cudaGraph_t broken = nullptr;
    cudaStreamEndCapture(stream_, &broken);
    if (broken != nullptr) cudaGraphDestroy(broken);
  }
  static_cast<void>(cudaGetLastError());  // the failed capture's
  namespace allocator = c10::cuda::CUDACachingAllocator;
  attempt([&] {
    allocator::endAllocateToPool(device_.index(), pool_);
    allocator::releasePool(device_.index(), pool_);
  });
  attempt([&] {
    at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator(device_.index());
    const uint64_t seed = generator.current_seed();
    const at::Generator fresh = at::cuda::detail::createCUDAGenerator(device_.index());
    const std::lock_guard lock(generator.mutex());
    generator.graphsafe_set_state(fresh.graphsafe_get_state());
    generator.set_current_seed(seed);
  });
}

}  // namespace
}  // namespace cytra::device

extern "C" cytra::device::Recorder* cytra_make_recorder(c10::Device device) {
  return new cytra::device::GraphRecorder(device);
}
