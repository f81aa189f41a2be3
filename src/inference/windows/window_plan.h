#pragma once
// Chooses the windows for predicting an image within the available memory.
#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "inference/windows/sliding_window.h"

namespace cytra::ops {
struct Finish;  // ops/windows/sums.h
}

namespace cytra::inference {

/// The memory that a pass of a model takes.
struct ModelCost {
  double bytes_per_voxel = 0;  // of the windows in it, at its peak
  int64_t out_channels = 1;
};
/// Measures one pass over `window` (1,C,[D,]H,W), by the counts of torch's allocators. Throws:
/// MemoryError where a CPU has no free_memory_on() for it.
ModelCost measure_cost(const Network& model, const Tensor& window);

/// The memory that predicting an image takes.
struct WindowMemory {
  int64_t windows = 0;
  int64_t rows = 0;      // of the outer axis, that predict_slabs() holds
  double in_memory = 0;  // bytes at the peak, by sliding_window() and finish(), with the image
  double by_slabs = 0;   // by predict_slabs(), with its sums, where these are in memory
};
/// The memory for an image of `size` ([D,]H,W) with `channels` float32 values per voxel. Throws:
/// ConfigError.
WindowMemory memory_of(const std::vector<int64_t>& size,
                       int64_t channels,
                       const SlidingWindowOptions& options,
                       const ModelCost& cost,
                       const ops::Finish& finish);

/// The memory that tensors can still take.
struct FreeMemory {
  int64_t bytes;      // INT64_MAX: unknown
  std::string limit;  // what limits it, for messages
  /// Whether a process that exceeds it is ended (a container's limit, `ulimit`): then copies that
  /// libraries make for themselves must fit as well.
  bool is_hard = false;
};
/// The free memory of a device, without memory that libraries allocate for themselves.
FreeMemory free_memory_on(c10::Device device);

struct WindowPlanner {
  SlidingWindowOptions options;
  /// Whether windows may differ from `options`: twice as large in each dimension where memory
  /// allows, and as small as a smaller image, rounded up to a multiple of `divisor`.
  bool grows = false;
  /// Whether as many windows are predicted at once as there is memory for, whatever `options` say.
  bool fills = false;
  ModelCost cost;
  std::vector<int64_t> divisor;  // of the model's windows, per dimension
  /// Set where the image, of `channels` channels, is predicted by slabs to this result; null: it
  /// is in memory.
  const ops::Finish* by_slabs = nullptr;
  int64_t channels = 1;

  /// Chooses the options for an image of `size` ([D,]H,W) named `id`, while `held_bytes` more are
  /// in memory. Where sums do not fit, and `folder` is not "", they lie there. Throws: MemoryError
  /// when the smallest windows need more than `free`.
  SlidingWindowOptions plan(const std::string& id,
                            const std::vector<int64_t>& size,
                            int64_t held_bytes,
                            const FreeMemory& free,
                            const std::string& folder = "") const;
  /// The peak memory in bytes of predicting an image of `size` by windows of `chosen`, which take
  /// `margin` times as much as measured.
  double bytes_of(const std::vector<int64_t>& size,
                  const SlidingWindowOptions& chosen,
                  double margin) const;
};

}  // namespace cytra::inference
