#pragma once
// Windows, in order, through the model: the one io that images in memory and slabs go.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "base/tensor_fwd.h"
#include "inference/windows/windows.h"
#include "ops/windows/sums.h"

namespace cytra::inference {

/// Runs a model on batches that fit the device. Where memory runs out, it continues with half as
/// many windows, from the failed ones on, and later tries more again. Thread: several at once.
class AdaptiveBatch {
 public:
  using Run = std::function<std::vector<Tensor>(const Tensor& windows)>;
  /// Calls run(windows), in parts if needed. Throws: what `run` throws, also where memory does not
  /// suffice for one window; Interrupted within a BreakableWork.
  std::vector<Tensor> operator()(const Run& run, const Tensor& windows);

 private:
  int64_t now(int64_t wanted);
  void fits(int64_t count);
  void fails(int64_t count);
  std::mutex mutex_;
  int64_t limit_ = INT64_MAX;  // windows that fit
  int64_t passes_ = 0;         // since it was lowered
};

/// Views a tensor whose last `dims` dimensions are spatial with three of them: Z, Y, X as in ops/.
at::Tensor as_zyx(at::Tensor tensor, std::size_t dims);
/// The spatial sizes of a grid's image, with as many dimensions as the layout.
std::vector<int64_t> sizes_of(const ops::WindowGrid& grid, std::size_t dims);
/// The given device, else the fallback.
c10::Device device_or(const std::optional<std::string>& given, c10::Device fallback);
/// Allocates a tensor for sums or windows, which are written completely.
at::Tensor make_room(const std::vector<int64_t>& shape,
                     c10::Device device,
                     at::MemoryFormat format = at::MemoryFormat::Contiguous);
/// Allocates it on a CPU in a file without a name in `folder`, where that is not "".
at::Tensor make_room(const std::vector<int64_t>& shape,
                     c10::Device device,
                     const std::string& folder);

/// The sums of the windows of an output.
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
  /// Called when windows before row `i` are under way: the rows of `i`, which follows, may be
  /// fetched.
  virtual void expect_row(int64_t /*i*/) {}
  /// Called once, before any sums.
  virtual void open(const std::vector<SummedOutput>& outputs) = 0;
  /// The sums of image n (K,L,Y,X), row z at z modulo L.
  virtual at::Tensor sums(int64_t n, std::size_t output) = 0;
  /// Called when all windows of row `i` of image n are summed.
  virtual void close_row(const std::vector<SummedOutput>& outputs, int64_t n, int64_t i) = 0;
};

/// Runs the windows of N images, in order.
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
  /// The end of the windows from `begin` on that are along the same rows.
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
  at::ScalarType type_;  // of the model's input
  c10::Device image_device_, model_device_, sums_device_;
  std::vector<int64_t> shape_;
  at::Tensor buffer_;  // (S,C,roi), used by every batch
  AdaptiveBatch adaptive_;
  std::vector<SummedOutput> outputs_;
};

}  // namespace cytra::inference
