#include "inference/slabs.h"

#include <algorithm>
#include <stdexcept>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "config/checked.h"
#include "inference/window_run.h"

namespace cytra::inference {
namespace {

using Sizes = std::vector<int64_t>;

/// Rows in, rows out.
class Slabs final : public Road {
 public:
  Slabs(const RowSource& source,
        const WindowLayout& layout,
        const ops::Finish& finish,
        const RowSink& sink,
        RowRange range,
        int64_t first_row)
      : source_(source),
        layout_(layout),
        finish_(finish),
        sink_(sink),
        range_(range),
        read_(std::max<int64_t>(
            layout.starts[0][static_cast<std::size_t>(first_row)] - layout.before[0], 0)) {}

  at::Tensor image(int64_t /*n*/, int64_t i) override {
    const int64_t size = layout_.size[0], roi = layout_.roi[0];
    const int64_t start = layout_.starts[0][static_cast<std::size_t>(i)] - layout_.before[0];
    const int64_t end = std::min(size, start + roi);
    if (read_ < end) {
      const at::Tensor rows = source_.read(read_, end - read_);
      Sizes expected = source_.shape;
      expected[1] = end - read_;
      if (rows.sizes() != at::IntArrayRef(expected)) {
        throw std::logic_error(fmt::format("predict_slabs: rows of ({}), expected ({})",
                                           fmt::join(rows.sizes(), ","),
                                           fmt::join(expected, ",")));
      }
      expected[1] = std::min(size, roi);
      if (!ring_.defined()) ring_ = at::empty(expected, rows.options().dtype(at::kFloat));
      for (int64_t row = read_; row < end;) {
        const int64_t place = row % ring_.size(1);
        const int64_t count = std::min(end - row, ring_.size(1) - place);
        ring_.narrow(1, place, count).copy_(rows.narrow(1, row - read_, count));
        row += count;
      }
      read_ = end;
    }
    return as_zyx(ring_, layout_.size.size());
  }

  void open(const std::vector<SummedOutput>& outputs) override {
    for (const SummedOutput& output : outputs) {
      const ops::WindowAxis& rows = output.grid.axes[0];
      sums_.push_back(make_room({output.classes,
                                 std::min(rows.size, rows.roi),
                                 output.grid.axes[1].size,
                                 output.grid.axes[2].size},
                                output.device));
    }
    values_.resize(outputs.size());
  }
  at::Tensor sums(int64_t /*n*/, std::size_t output) override { return sums_[output]; }

  void close_row(const std::vector<SummedOutput>& outputs, int64_t /*n*/, int64_t i) override {
    const std::size_t dims = layout_.size.size();
    const auto [first, last] = outputs[0].grid.final_rows(i);
    bool any = false;
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const ops::WindowGrid& grid = outputs[o].grid;
      const auto [begin, end] = grid.final_rows(i);
      Sizes shape = sizes_of(grid, dims);
      shape[0] = end - begin;
      shape.insert(shape.begin(), finish_.channels(outputs[o].classes));
      at::Tensor& values = values_[o];
      if (!values.defined() || values.use_count() > 1 || values.storage().use_count() > 1 ||
          values.sizes() != at::IntArrayRef(shape))
        values = at::empty(shape, sums_[o].options().dtype(finish_.type));
      any = any || end > begin;
      if (!ops::finish_rows(sums_[o], grid, begin, end, finish_, as_zyx(values, dims)))
        bad += count_bad(sums_[o], std::max(begin, range_.begin), std::min(end, range_.end));
    }
    if (any && bad == 0) pass_on(first, last);
  }
  int64_t bad = 0;

 private:
  void pass_on(int64_t first, int64_t last) {
    const int64_t begin = std::max(first, range_.begin), end = std::min(last, range_.end);
    if (begin >= end) return;
    if (begin == first && end == last) return sink_(first, values_);
    std::vector<at::Tensor> wanted = values_;
    wanted[0] = wanted[0].narrow(1, begin - first, end - begin);
    sink_(begin, wanted);
  }
  static int64_t count_bad(const at::Tensor& sums, int64_t begin, int64_t end) {
    int64_t count = 0;
    for (int64_t row = begin; row < end; ++row) {
      const at::Tensor values = sums.select(1, row % sums.size(1));
      count += values.isfinite().logical_not().sum().item<int64_t>();
    }
    return count;
  }

  const RowSource& source_;
  const WindowLayout& layout_;
  const ops::Finish& finish_;
  const RowSink& sink_;
  const RowRange range_;
  at::Tensor ring_;  // (C,L,[H,]W)
  int64_t read_;
  std::vector<at::Tensor> sums_, values_;
};

}  // namespace

int64_t predict_slabs(const RowSource& source,
                      const Forward& model,
                      const SlidingWindowOptions& given,
                      const ops::Finish& finish,
                      const RowSink& sink,
                      const WindowProgress& progress,
                      RowRange range) {
  const SlidingWindowOptions options = config::checked(given, "inference_args");
  const at::NoGradGuard no_grad;
  if (source.shape.size() < 3 || source.shape.size() > 4) {
    throw DataError(fmt::format("predict_slabs: an image of ({}), expected (C,[D,]H,W)",
                                fmt::join(source.shape, ",")));
  }
  const Sizes size(source.shape.begin() + 1, source.shape.end());
  const WindowLayout layout = layout_windows(size, options);
  // The rows of windows that reach the rows that are wanted.
  const Sizes& starts = layout.starts[0];
  const auto reaches = [&](int64_t start) {
    const int64_t row = start - layout.before[0];
    return row < range.end && row + layout.roi[0] > range.begin;
  };
  const auto begin = std::find_if(starts.begin(), starts.end(), reaches);
  if (begin == starts.end() || range.begin >= range.end) return 0;
  const auto end = std::find_if_not(begin, starts.end(), reaches);
  WindowRun run(layout, options, 1, source.shape[0], c10::kCPU);
  Slabs road(source, layout, finish, sink, range, run.first_row(begin - starts.begin()));
  run.run_rows(model, road, progress, begin - starts.begin(), end - starts.begin());
  return road.bad;
}

}  // namespace cytra::inference
