#pragma once
// How ops/norm/cpu.cpp cuts a tensor into blocks, and the order in which threads visit them.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include "ops/norm/cpu.h"
#include "ops/norm/kernels.h"

namespace cytra::ops::cpu {

// A size that is large against the cost of a call and small against a second-level cache.
constexpr int64_t kBlockSize = 16384;  // values
constexpr int64_t kGrain = 32768;      // values: less is done before a second thread has started
constexpr int64_t kMinBlockRows = 64;  // so that the partial sums stay small against the block

inline bool is_channels_last(const at::Tensor& x) {
  return !x.is_contiguous() && x.is_contiguous(x.suggest_memory_format());
}

/// A tensor as `runs` of memory (rows, channels). Channels-first: a run is a plane, with one
/// channel; channels-last: a run is a sample. A cell is a channel of a sample: number n C + c.
/// A chunk is the runs whose cells share statistics among themselves alone.
struct Layout {
  int64_t all_channels, channels, runs, rows;
  int64_t block_rows, blocks;  // of a run: fixed by the shape, so no sum depends on the threads
  int64_t chunks, chunk_runs, chunk_stride, run_stride;
  int64_t shares, share_cells;
  bool across_batch;

  Layout(const at::Tensor& x, const NormForm& form)
      : all_channels(x.size(1)),
        channels(is_channels_last(x) ? all_channels : 1),
        runs(x.size(0) * all_channels / channels),
        rows(x.numel() / (runs * channels)),
        block_rows(std::max(kMinBlockRows, kBlockSize / channels)),
        blocks((rows + block_rows - 1) / block_rows),
        across_batch(form.across_batch) {
    const int64_t samples = x.size(0);
    shares = across_batch ? all_channels : samples * form.groups;
    share_cells = samples * all_channels / shares;
    chunks = std::min(shares, across_batch ? all_channels / channels : runs);
    chunk_runs = runs / chunks;
    chunk_stride = across_batch ? 1 : chunk_runs;
    run_stride = across_batch ? chunks : 1;
  }
  int64_t run(int64_t chunk, int64_t index) const {
    return chunk * chunk_stride + index * run_stride;
  }
  BlockSize block(int64_t index) const {
    return {std::min(block_rows, rows - index * block_rows), channels};
  }
  int64_t offset(int64_t run, int64_t index) const {
    return (run * rows + index * block_rows) * channels;
  }
  int64_t share(int64_t cell) const {
    return across_batch ? cell % all_channels : cell / share_cells;
  }
};

/// f(run, block) for every block.
void each_block(const Layout& layout, bool backwards, const auto& f) {
  const int64_t units = layout.runs * layout.blocks;
  at::parallel_for(0,
                   units,
                   std::max<int64_t>(1, kGrain * layout.blocks / (layout.rows * layout.channels)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t unit = backwards ? begin + end - 1 - i : i;
                       f(unit / layout.blocks, unit % layout.blocks);
                     }
                   });
}

/// reduce(run, block, partial) fills the block's partial sums, finish(chunk, partials) gathers
/// those of all its blocks, apply(run, block) then writes the block.
template <class Reduce, class Finish, class Apply>
void two_passes(const Layout& layout,
                int64_t partial_size,
                const Reduce& reduce,
                const Finish& finish,
                const Apply& apply) {
  const int64_t blocks = layout.blocks, chunk_blocks = layout.chunk_runs * blocks;
  const int64_t stride = chunk_blocks * partial_size;
  if (layout.chunks >= 2 * at::get_num_threads() || chunk_blocks == 1) {
    // Each chunk is finished before the next: its second pass finds it in the cache.
    const int64_t chunk_size = layout.chunk_runs * layout.rows * layout.channels;
    at::parallel_for(
        0,
        layout.chunks,
        std::max<int64_t>(1, kGrain / chunk_size),
        [&](int64_t begin, int64_t end) {
          std::vector<double> partials(static_cast<std::size_t>(stride));
          for (int64_t chunk = begin; chunk < end; ++chunk) {
            for (int64_t i = 0; i < chunk_blocks; ++i)
              reduce(layout.run(chunk, i / blocks), i % blocks, partials.data() + i * partial_size);
            finish(chunk, partials.data());
            for (int64_t i = chunk_blocks - 1; i >= 0; --i)
              apply(layout.run(chunk, i / blocks), i % blocks);
          }
        });
    return;
  }
  std::vector<double> partials(static_cast<std::size_t>(layout.chunks * stride));
  each_block(layout, false, [&](int64_t run, int64_t block) {
    const int64_t chunk = layout.across_batch ? run % layout.chunks : run / layout.chunk_runs;
    const int64_t index = layout.across_batch ? run / layout.chunks : run % layout.chunk_runs;
    reduce(run,
           block,
           partials.data() + ((chunk * layout.chunk_runs + index) * blocks + block) * partial_size);
  });
  for (int64_t chunk = 0; chunk < layout.chunks; ++chunk)
    finish(chunk, partials.data() + chunk * stride);
  // A second pass begins with what is still in the cache.
  each_block(layout, true, apply);
}

/// f(run, channel, cell, first partial of the run) for every cell of a chunk.
void each_cell(
    const Layout& layout, int64_t chunk, int64_t partial_size, double* partials, const auto& f) {
  for (int64_t i = 0; i < layout.chunk_runs; ++i) {
    const int64_t run = layout.run(chunk, i);
    double* const of_run = partials + i * layout.blocks * partial_size;
    for (int64_t c = 0; c < layout.channels; ++c) f(run, c, run * layout.channels + c, of_run);
  }
}

}  // namespace cytra::ops::cpu
