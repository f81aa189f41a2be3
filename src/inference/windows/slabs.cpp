#include "inference/windows/slabs.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "config/checked.h"
#include "inference/windows/device_rows.h"
#include "inference/windows/window_run.h"

namespace cytra::inference {
namespace {

using Sizes = std::vector<int64_t>;

/// Rows in, rows out.
class Slabs final : public WindowIo {
 public:
  Slabs(const RowSource& source,
        const WindowLayout& layout,
        const ops::Finish& finish,
        const RowSink& sink,
        RowRange range,
        int64_t first_row,
        const std::string& folder,
        c10::Device device)
      : layout_(layout),
        finish_(finish),
        sink_(sink),
        range_(range),
        folder_(folder),
        ring_(source,
              std::min(layout.size[0], layout.roi[0]),
              std::max<int64_t>(
                  layout.starts[0][static_cast<std::size_t>(first_row)] - layout.before[0], 0),
              device,
              folder),
        download_([this](int64_t first, const std::vector<at::Tensor>& values, int64_t more) {
          bad_ += more;
          if (bad_ == 0 && !values.empty()) sink_(first, values);
        }) {}

  at::Tensor image(int64_t /*n*/, int64_t i) override {
    return as_zyx(ring_.up_to(end_of(i)), layout_.size.size());
  }
  void expect_row(int64_t i) override { ring_.fetch(end_of(i)); }

  void open(const std::vector<SummedOutput>& outputs) override {
    for (const SummedOutput& output : outputs) {
      const ops::WindowAxis& rows = output.grid.axes[0];
      const Sizes shape{output.classes,
                        std::min(rows.size, rows.roi),
                        output.grid.axes[1].size,
                        output.grid.axes[2].size};
      sums_.push_back(make_room(shape, output.device, folder_));
    }
    values_.resize(outputs.size());
  }
  at::Tensor sums(int64_t /*n*/, std::size_t output) override { return sums_[output]; }

  void close_row(const std::vector<SummedOutput>& outputs, int64_t /*n*/, int64_t i) override {
    const auto [begin, end] = outputs[0].grid.final_rows(i);
    if (outputs.size() > 1) return close_rows(outputs, i, begin, end);
    const int64_t bytes = sums_[0][0][0].numel() * finish_.channels(outputs[0].classes) *
                          static_cast<int64_t>(c10::elementSize(finish_.type));
    const int64_t some = std::max<int64_t>(1, static_cast<int64_t>(kBytesAtOnce) / bytes);
    for (int64_t row = begin; row < end; row += some)
      close_rows(outputs, i, row, std::min(row + some, end));
  }
  /// Waits for all copies. Returns how many sums were NaN or infinite.
  int64_t finish() {
    download_.finish();
    return bad_;
  }

 private:
  /// Finishes rows `first` to `last` of output 0, and all that are final of others.
  void close_rows(const std::vector<SummedOutput>& outputs,
                  int64_t i,
                  int64_t first,
                  int64_t last) {
    const std::size_t dims = layout_.size.size();
    const bool is_here = outputs[0].device.is_cpu();
    const at::Tensor new_bad = at::zeros({1}, sums_[0].options().dtype(at::kLong));
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const ops::WindowGrid& grid = outputs[o].grid;
      auto [begin, end] = grid.final_rows(i);
      if (o == 0) begin = first, end = last;
      Sizes shape = sizes_of(grid, dims);
      shape[0] = end - begin;
      shape.insert(shape.begin(), finish_.channels(outputs[o].classes));
      at::Tensor& values = values_[o];
      if (!is_here || !values.defined() || values.use_count() > 1 ||
          values.storage().use_count() > 1 || values.sizes() != at::IntArrayRef(shape))
        values = at::empty(shape, sums_[o].options().dtype(finish_.type));
      // Rows that are not wanted lack some of their windows, so their values are undefined.
      const int64_t low = std::clamp(range_.begin, begin, end);
      const int64_t high = std::clamp(range_.end, low, end);
      const auto finish = [&, base = begin](int64_t from, int64_t to, const at::Tensor& count) {
        if (from >= to) return;
        const at::Tensor out = as_zyx(values.narrow(1, from - base, to - from), dims);
        ops::finish_rows(sums_[o], grid, from, to, finish_, out, count);
      };
      finish(begin, low, {});
      finish(low, high, new_bad);
      finish(high, end, {});
    }
    const int64_t begin = std::max(first, range_.begin), end = std::min(last, range_.end);
    std::vector<at::Tensor> wanted;
    if (begin < end) {
      wanted = values_;
      if (begin > first || end < last) wanted[0] = wanted[0].narrow(1, begin - first, end - begin);
    }
    if (!is_here) return download_.start(begin, wanted, new_bad);
    bad_ += *new_bad.const_data_ptr<int64_t>();
    if (bad_ == 0 && !wanted.empty()) sink_(begin, wanted);
  }
  int64_t end_of(int64_t i) const {
    const int64_t start = layout_.starts[0][static_cast<std::size_t>(i)] - layout_.before[0];
    return std::min(layout_.size[0], start + layout_.roi[0]);
  }

  const WindowLayout& layout_;
  const ops::Finish& finish_;
  const RowSink& sink_;
  const RowRange range_;
  const std::string folder_;
  RowRing ring_;
  RowDownload download_;
  std::vector<at::Tensor> sums_, values_;
  int64_t bad_ = 0;
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
    throw DataError("predict_slabs: an image of ({}), expected (C,[D,]H,W)",
                    fmt::join(source.shape, ","));
  }
  const Sizes size(source.shape.begin() + 1, source.shape.end());
  const WindowLayout layout = layout_windows(size, options);
  // The rows of windows that overlap the wanted rows.
  const Sizes& starts = layout.starts[0];
  const auto reaches = [&](int64_t start) {
    const int64_t row = start - layout.before[0];
    return row < range.end && row + layout.roi[0] > range.begin;
  };
  const auto begin = std::ranges::find_if(starts, reaches);
  if (begin == starts.end() || range.begin >= range.end) return 0;
  const auto end = std::find_if_not(begin, starts.end(), reaches);
  const c10::Device device = device_or(options.sw_device, c10::kCPU);
  WindowRun run(layout, options, 1, source.shape[0], device);
  const int64_t first = run.first_row(begin - starts.begin());
  Slabs io(source, layout, finish, sink, range, first, options.slab_folder, device);
  run.run_rows(model, io, progress, begin - starts.begin(), end - starts.begin());
  return io.finish();
}

}  // namespace cytra::inference
