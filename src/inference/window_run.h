#pragma once
// Windows, in order, through the model: the one io that images in memory and slabs go.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "inference/adaptive_batch.h"
#include "inference/windows.h"
#include "ops/windows/sums.h"

namespace cytra::inference {

/// A tensor whose last `dims` dimensions are spatial, with three: Z, Y, X as ops/ takes them.
at::Tensor as_zyx(at::Tensor tensor, std::size_t dims);
/// Spatial sizes of a grid's image, of as many dimensions as the layout's.
std::vector<int64_t> sizes_of(const ops::WindowGrid& grid, std::size_t dims);
/// The device that was given, else the other one.
c10::Device device_or(const std::optional<std::string>& given, c10::Device fallback);
/// For sums and windows, which are written from end to end.
at::Tensor make_room(const std::vector<int64_t>& shape,
                     c10::Device device,
                     at::MemoryFormat format = at::MemoryFormat::Contiguous);

/// What the windows of an output are summed in.
struct SummedOutput {
  ops::WindowGrid grid;
  int64_t classes;
  c10::Device device;
};

/// Where images come from and results go.
class WindowIo {
 public:
  virtual ~WindowIo() = default;
  /// Image n with the rows of the windows in row `i` (C,L,Y,X), row z at z modulo L.
  virtual at::Tensor image(int64_t n, int64_t i) = 0;
  /// Windows up to row `i`, which follows, are under way: its rows may be fetched.
  virtual void expect_row(int64_t /*i*/) {}
  /// Called once, before any sums.
  virtual void open(const std::vector<SummedOutput>& outputs) = 0;
  /// Of image n (K,L,Y,X), row z at z modulo L.
  virtual at::Tensor sums(int64_t n, std::size_t output) = 0;
  /// All windows of row `i` of image n are summed.
  virtual void close_row(const std::vector<SummedOutput>& outputs, int64_t n, int64_t i) = 0;
};

/// Windows of N images, in order.
class WindowRun {
 public:
  WindowRun(const WindowLayout& layout,
            const SlidingWindowOptions& options,
            int64_t images,
            int64_t channels,
            c10::Device image_device,
            at::ScalarType type = at::kFloat);

  void run(const Forward& model, WindowIo& io, const WindowProgress& progress);
  /// Windows of rows [begin, end) of windows, and those that share their batches: so each is in the
  /// batch that it is in when all are predicted, and gives the same values to the last bit.
  void run_rows(const Forward& model,
                WindowIo& io,
                const WindowProgress& progress,
                int64_t begin,
                int64_t end);
  /// The row of windows that run_rows() begins with.
  int64_t first_row(int64_t begin) const { return first_of(begin) / per_row_; }

 private:
  int64_t first_of(int64_t row) const { return row * per_row_ / shape_[0] * shape_[0]; }
  /// Of the windows from `begin` on, those along the same rows.
  int64_t end_of_row(int64_t begin, int64_t end) const {
    return std::min(end, (begin / per_row_ + 1) * per_row_);
  }
  void run(const Forward& model,
           WindowIo& io,
           const WindowProgress& progress,
           int64_t begin,
           int64_t end);
  void gather(WindowIo& io, int64_t first, int64_t count);
  std::vector<at::Tensor> predict(const Forward& model, int64_t count);
  void sum(WindowIo& io, int64_t first, std::vector<at::Tensor> made);

  const WindowLayout& layout_;
  const SlidingWindowOptions& options_;
  ops::WindowGrid grid_;
  int64_t per_image_, per_row_, total_;
  at::ScalarType type_;  // that the model takes
  c10::Device image_device_, model_device_, sums_device_;
  std::vector<int64_t> shape_;
  at::Tensor buffer_;  // (S,C,roi), used by every batch
  AdaptiveBatch adaptive_;
  std::vector<SummedOutput> outputs_;
};

}  // namespace cytra::inference
