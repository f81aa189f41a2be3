#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "base/tensor_fwd.h"

namespace cytra::device {

/// A call whose work on a GPU is recorded once, as a CUDA graph, and then replayed: all its kernels
/// are started together, which spares the host the time of starting each. A replay does what the
/// call did for the sample: what the host decides on the way (a branch, a size, a counter) stays as
/// it was then, and what changes from call to call must be an input.
///
///     CUDAGraphWrapper graph([&](const auto& inputs) { return std::vector{model(inputs[0])}; },
///     {sample}); Tensor output = graph({image})[0];
///
/// Thread: several may call it; they take turns.
class CUDAGraphWrapper {
 public:
  using Call = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;
  /// Records call(sample), and compares the recording with the call itself, for the sample's values
  /// in reverse order. `call` is kept, and with it the weights that it owns; it is run under
  /// c10::InferenceMode, five times.
  /// Throws: ConfigError where the sample is not on a GPU, the host waits for the GPU in the call,
  /// a graph can't hold it, or the recording gives other values; what `call` throws.
  CUDAGraphWrapper(Call call, const std::vector<Tensor>& sample);
  ~CUDAGraphWrapper();
  CUDAGraphWrapper(CUDAGraphWrapper&&) noexcept;

  /// Returns the call's outputs for these inputs, which it copies, from any device and memory
  /// format. The outputs are the caller's. Throws: DataError that names the input whose shape or
  /// type is not the sample's.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs);

 private:
  struct Recorded;
  std::unique_ptr<Recorded> recorded_;
};

}  // namespace cytra::device
