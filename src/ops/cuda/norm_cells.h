#pragma once
// What instance and group norm of ops/norm/norm.h sum up, for a GPU's threads; on a CPU for tests.
// A cell is a channel of a sample: number n C + c. Sums are float32 over at most kTerms values and
// float64 from there on.

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define CYTRA_CELL __host__ __device__ __forceinline__
#else
#define CYTRA_CELL inline
#endif

namespace cytra::ops::gpu {

constexpr int kTerms = 64;
constexpr int kLanes = 32, kThreads = 256;  // of a block
constexpr int kSumWidth = 4;                // channels that a thread sums at once

/// Which values are a cell's, and which cells share a mean and a variance.
struct Cells {
  int64_t samples, channels, voxels, groups;
  bool is_channels_last;
  double eps;
  float slope;  // of the leaky ReLU after it; 1: none

  CYTRA_CELL int64_t count() const { return samples * channels; }
  CYTRA_CELL int64_t shares() const { return samples * groups; }
  CYTRA_CELL int64_t share_cells() const { return channels / groups; }
  /// The i-th cell of a share.
  CYTRA_CELL int64_t cell(int64_t share, int64_t i) const { return share * share_cells() + i; }
  CYTRA_CELL int64_t channel(int64_t cell) const {
    return static_cast<uint32_t>(cell) % static_cast<uint32_t>(channels);  // a grid has fewer
  }
  /// Values are read and written in vectors of so many: of a cell's voxels, or, channels-last, of
  /// a voxel's channels.
  CYTRA_CELL int64_t vectors(int width) const {
    return (is_channels_last ? channels : voxels) / width;
  }
  /// Channels-last: threads of a block side by side at a voxel; the others are at other voxels.
  CYTRA_CELL int lanes(int width) const {
    int lanes = 1;
    while (is_channels_last && lanes < kLanes && lanes < vectors(width)) lanes *= 2;
    return lanes;
  }
  CYTRA_CELL int64_t tiles(int width) const {
    return (vectors(width) + lanes(width) - 1) / lanes(width);
  }
  /// Blocks that have different cells: a cell each, or a tile of channels of a sample.
  CYTRA_CELL int64_t blocks(int width) const {
    return is_channels_last ? samples * tiles(width) : count();
  }
  /// Vectors that the threads of a block handle one after another.
  CYTRA_CELL int64_t lines(int width) const { return is_channels_last ? voxels : vectors(width); }
};

/// The vectors of a thread.
struct ThreadShare {
  int64_t cell;   // of the first value; -1: the thread has none
  int64_t first;  // the first value
  int64_t step;   // from a vector's values to the next one's
  int64_t count;  // of vectors
};
/// The vectors of one thread, where a cell's vectors are divided among `parts` parts; `line` of
/// `lines` and `lane` of `lanes` (Cells::lanes()) are the thread's position in its block.
CYTRA_CELL ThreadShare share_of(const Cells& cells,
                                int width,
                                uint32_t block,
                                uint32_t part,
                                uint32_t parts,
                                int line,
                                int lines,
                                int lane,
                                int lanes) {
  const int64_t all = cells.lines(width), most = (all + parts - 1) / parts;
  const int64_t begin = most * part + line, end = most * (part + 1) < all ? most * (part + 1) : all;
  ThreadShare share{block, 0, static_cast<int64_t>(lines) * width, 0};
  share.count = begin < end ? (end - begin + lines - 1) / lines : 0;
  if (!cells.is_channels_last) {
    share.first = share.cell * cells.voxels + begin * width;
    return share;
  }
  const auto vectors = static_cast<uint32_t>(cells.vectors(width));
  const uint32_t tiles = (vectors + lanes - 1) / lanes, vector = block % tiles * lanes + lane;
  if (vector >= vectors) return {-1, 0, 0, 0};
  const int64_t sample = block / tiles;
  share.cell = sample * cells.channels + vector * width;
  share.first = (sample * cells.voxels + begin) * cells.channels + vector * width;
  share.step = lines * cells.channels;
  return share;
}

/// The numbers by which a cell's values and gradients are computed.
struct alignas(8) Coefficients {
  float center, scale, shift;       // z = (x - center) scale + shift
  float grad_scale, slant, offset;  // dx = dz grad_scale + (x - center) slant + offset
};

struct Sums {
  double first, second;
};

/// The sums of x and of its square. In float32 they are those of x - origin, one of the values:
/// a variance that is small against the mean keeps its digits.
struct MomentTerm {
  static constexpr bool kTakesGrad = false;
  struct Run {
    float origin, first, second;
  };
  CYTRA_CELL Run run(int64_t) const { return {}; }
  CYTRA_CELL void begin(Run& run, float x) const { run = {x, 0, 0}; }
  CYTRA_CELL void add(Run& run, float x, float) const {
    const float value = x - run.origin;
    run.first += value;
    run.second += value * value;
  }
  CYTRA_CELL void end(const Run& run, double count, Sums& sums) const {
    const double origin = run.origin, first = run.first;
    sums.first += count * origin + first;
    sums.second += run.second + origin * (2 * first + count * origin);
  }
};

/// dz and dz (x - center), with dz = grad act'(z).
struct GradTerm {
  static constexpr bool kTakesGrad = true;
  const Coefficients* coefficients;
  float slope;
  struct Run {
    float center, scale, shift, first, second;
  };
  CYTRA_CELL Run run(int64_t cell) const {
    const Coefficients of = coefficients[cell];
    return {of.center, of.scale, of.shift, 0, 0};
  }
  CYTRA_CELL void begin(Run& run, float) const { run.first = run.second = 0; }
  CYTRA_CELL void add(Run& run, float x, float grad) const {
    const float centered = x - run.center;
    const float dz = centered * run.scale + run.shift > 0 ? grad : grad * slope;
    run.first += dz;
    run.second += dz * centered;
  }
  CYTRA_CELL void end(const Run& run, double, Sums& sums) const {
    sums.first += run.first;
    sums.second += run.second;
  }
};

}  // namespace cytra::ops::gpu
