#include "device/cuda/graph.h"

#include <mutex>
#include <string>

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

namespace cytra::device {
namespace {

/// Makes torch throw, while it lives, where the host would wait for a device.
class NoWaiting {
 public:
  NoWaiting() : before_(c10::cuda::warning_state().get_sync_debug_mode()) {
    c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_ERROR);
  }
  ~NoWaiting() { c10::cuda::warning_state().set_sync_debug_mode(before_); }
  NoWaiting(const NoWaiting&) = delete;
  NoWaiting& operator=(const NoWaiting&) = delete;

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

}  // namespace

GraphRecorder::GraphRecorder(c10::Device device)
    : device_(device.has_index() ? device : c10::Device(c10::kCUDA, c10::cuda::current_device())),
      stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device_.index())),
      pool_(at::cuda::graph_pool_handle()) {}

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

void GraphRecorder::rehearse(const std::function<void()>& work, bool may_wait) const {
  if (may_wait) return on_stream(work);
  try {
    on_stream([&] {
      const NoWaiting no_waiting;
      work();
    });
  } catch (const c10::Error& error) {
    if (!is_of_waiting(error)) throw;
    throw NotCapturable("something in it waits for the GPU (" + first_line(error) + ")");
  }
}

std::unique_ptr<CudaGraph> GraphRecorder::record(const std::function<void()>& work) const {
  // The memory blocks of earlier steps can't be used for the graph's own memory.
  c10::cuda::CUDACachingAllocator::emptyCache();
  auto graph = std::make_unique<CudaGraph>();
  on_stream([&] {
    // The mode is thread_local: loading threads may still do what a capture forbids.
    try {
      graph->graph_.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
      work();
      graph->graph_.capture_end();
    } catch (const c10::Error& error) {
      clean_up_capture();
      throw NotCapturable(first_line(error));
    } catch (...) {
      clean_up_capture();
      throw;
    }
  });
  return graph;
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

}  // namespace cytra::device
