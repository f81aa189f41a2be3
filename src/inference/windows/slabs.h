#pragma once
// Predicts by slabs along the outer axis: the memory does not depend on the number of rows.
#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "inference/windows/sliding_window.h"

namespace cytra::ops {
struct Finish;  // ops/windows/sums.h
}

namespace cytra::inference {

/// An image that is read by rows of its outer axis (Z of a stack, Y of a 2D image).
struct RowSource {
  std::vector<int64_t> shape;  // (C,[D,]H,W)
  /// Reads rows first, first+1, ...: (C,count,...). Each is read once, in order.
  std::function<Tensor(int64_t first, int64_t count)> read;
};
/// Takes final rows in order, of each output (C',count,...), on the host. `first`: of output 0;
/// outputs of another resolution have other numbers of rows. The tensors are reused unless they are
/// kept.
using RowSink = std::function<void(int64_t first, const std::vector<Tensor>& values)>;

/// Rows of the outer axis: all, or some that are predicted separately, with the same values.
struct RowRange {
  int64_t begin = 0, end = INT64_MAX;
};

/// Predicts an image by overlapping windows, as sliding_window() does, row by row: it holds
/// roi_size[0] rows of the input and of the sums, and the rows given to `sink`. An image is copied
/// to a GPU once, and `sink` gets rows while later windows are computed. `range`: the wanted rows
/// of output 0; only the windows that overlap them are predicted, and outputs of another
/// resolution have all rows of these windows. Returns how many sums were NaN or infinite; `sink`
/// gets no rows from the first of these on. Throws: what sliding_window() throws.
int64_t predict_slabs(const RowSource& source,
                      const Forward& forward,
                      const SlidingWindowOptions& options,
                      const ops::Finish& finish,
                      const RowSink& sink,
                      const WindowProgress& progress = {},
                      RowRange range = {});

}  // namespace cytra::inference
