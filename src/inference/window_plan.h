#pragma once
// Which windows an image is predicted by, within the memory at hand.
#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "inference/sliding_window.h"

namespace cytra::ops {
struct Finish;  // ops/windows/sums.h
}

namespace cytra::inference {

/// What a pass of a model takes.
struct ModelCost {
  double bytes_per_voxel = 0;  // of the windows in it, at its peak
  int64_t out_channels = 1;
};
/// Of one pass over `window` (1,C,[D,]H,W), as torch's allocators count it. Throws: MemoryError
/// where a CPU has no room_on() for it.
ModelCost measure_cost(const Network& model, const Tensor& window);

/// What predicting an image takes.
struct WindowMemory {
  int64_t windows = 0;
  int64_t rows = 0;      // of the outer axis, that predict_slabs() holds
  double in_memory = 0;  // bytes at the peak, by sliding_window() and finish(), with the image
  double by_slabs = 0;   // by predict_slabs()
};
/// For an image of `size` ([D,]H,W) with `channels` float32 values a voxel. Throws: ConfigError.
WindowMemory memory_of(const std::vector<int64_t>& size,
                       int64_t channels,
                       const SlidingWindowOptions& options,
                       const ModelCost& cost,
                       const ops::Finish& finish);

/// Memory that tensors can still take.
struct Room {
  int64_t bytes;      // INT64_MAX: nothing tells
  std::string limit;  // what ends it, for messages
  /// Whoever goes beyond it is ended (a container's limit, `ulimit`), so that what libraries copy
  /// for themselves has to fit as well.
  bool is_hard = false;
};
/// Without what libraries take for themselves.
Room room_on(c10::Device device);

struct WindowPlanner {
  SlidingWindowOptions options;
  /// Windows are twice those of `options` in each dimension where memory allows, and follow an
  /// image that is smaller, up to the next multiple of `divisor`; else they are as in `options`.
  bool grows = false;
  ModelCost cost;
  std::vector<int64_t> divisor;  // of the model's windows, per dimension
  /// Set: the image, of so many channels, goes by slabs to this result; else it is in memory.
  const ops::Finish* by_slabs = nullptr;
  int64_t channels = 1;

  /// The options for an image of `size` ([D,]H,W) that is named `id`, while `held_bytes` more are
  /// in memory. Throws: MemoryError when the smallest windows need more than `room`.
  SlidingWindowOptions plan(const std::string& id,
                            const std::vector<int64_t>& size,
                            int64_t held_bytes,
                            const Room& room) const;
  /// At the peak, of predicting an image of `size` by windows of `chosen`, which take `margin`
  /// times as much as measured.
  double bytes_of(const std::vector<int64_t>& size,
                  const SlidingWindowOptions& chosen,
                  double margin) const;
};

}  // namespace cytra::inference
