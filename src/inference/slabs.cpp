#include "inference/slabs.h"

#include <algorithm>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/progress.h"
#include "config/checked.h"
#include "inference/adaptive_batch.h"
#include "inference/device_rows.h"
#include "inference/windows.h"
#include "ops/windows/sums.h"

namespace cytra::inference {
namespace {

using Sizes = std::vector<int64_t>;

/// A tensor whose last `dims` dimensions are spatial, with three: Z, Y, X as ops/ takes them.
at::Tensor as_zyx(at::Tensor tensor, std::size_t dims) {
  for (; dims < 3; ++dims) tensor = tensor.unsqueeze(-2);
  return tensor;
}

/// Spatial sizes of a grid's image, of as many dimensions as the layout's.
Sizes sizes_of(const ops::WindowGrid& grid, std::size_t dims) {
  Sizes sizes;
  for (std::size_t d = 0; d < 3; ++d) {
    const bool is_there = dims == 3 || d == 2 || (dims == 2 && d == 0);
    if (is_there) sizes.push_back(grid.axes[d].size);
  }
  return sizes;
}

/// For sums and windows, which are written from end to end.
at::Tensor make_room(const Sizes& shape,
                     c10::Device device,
                     at::MemoryFormat format = at::MemoryFormat::Contiguous) {
  at::Tensor room = at::empty(shape, at::device(device).dtype(at::kFloat), format);
  if (device.is_cpu()) prefer_large_pages(room.mutable_data_ptr(), room.nbytes());
  return room;
}

c10::Device device_or(const std::optional<std::string>& given, c10::Device fallback) {
  return given ? c10::Device(*given) : fallback;
}

/// What the windows of an output are summed in.
struct Output {
  ops::WindowGrid grid;
  int64_t classes;
  c10::Device device;
};

/// Where images come from and results go.
class Road {
 public:
  virtual ~Road() = default;
  /// Image n with the rows of the windows in row `i` (C,L,Y,X), row z at z modulo L.
  virtual at::Tensor image(int64_t n, int64_t i) = 0;
  /// Windows up to row `i`, which follows, are under way: its rows may be fetched.
  virtual void expect_row(int64_t /*i*/) {}
  /// Called once, before any sums.
  virtual void open(const std::vector<Output>& outputs) = 0;
  /// Of image n (K,L,Y,X), row z at z modulo L.
  virtual at::Tensor sums(int64_t n, std::size_t output) = 0;
  /// All windows of row `i` of image n are summed.
  virtual void close_row(const std::vector<Output>& outputs, int64_t n, int64_t i) = 0;
};

/// Windows, in order, through the model.
class WindowRun {
 public:
  WindowRun(const WindowLayout& layout,
            const SlidingWindowOptions& options,
            int64_t images,
            int64_t channels,
            c10::Device image_device,
            at::ScalarType type = at::kFloat)
      : layout_(layout),
        options_(options),
        grid_(make_grid(layout, options, layout.roi)),
        per_image_(grid_.windows()),
        per_row_(per_image_ / static_cast<int64_t>(grid_.axes[0].starts.size())),
        total_(per_image_ * images),
        type_(type),
        image_device_(image_device),
        model_device_(device_or(options.sw_device, image_device)),
        sums_device_(device_or(options.device, image_device)) {
    shape_ = {std::min(options.sw_batch_size, total_), channels};
    shape_.insert(shape_.end(), layout.roi.begin(), layout.roi.end());
    if (!image_device.is_cpu()) grid_.table = ops::window_table(grid_, image_device);
  }

  void run(const Forward& model, Road& road, const WindowProgress& progress) {
    run(model, road, progress, 0, total_);
  }
  /// Windows of rows [begin, end) of windows, and those that share their batches: so each is in the
  /// batch that it is in when all are predicted, and gives the same values to the last bit.
  void run_rows(const Forward& model,
                Road& road,
                const WindowProgress& progress,
                int64_t begin,
                int64_t end) {
    const int64_t batch = shape_[0], last = (end * per_row_ + batch - 1) / batch * batch;
    run(model, road, progress, first_of(begin), std::min(total_, last));
  }
  /// The row of windows that run_rows() begins with.
  int64_t first_row(int64_t begin) const { return first_of(begin) / per_row_; }

 private:
  int64_t first_of(int64_t row) const { return row * per_row_ / shape_[0] * shape_[0]; }
  void run(const Forward& model,
           Road& road,
           const WindowProgress& progress,
           int64_t begin,
           int64_t end) {
    std::optional<Progress> shown;
    if (options_.progress) shown.emplace("windows", end - begin);
    for (int64_t first = begin; first < end; first += shape_[0]) {
      const int64_t count = std::min(shape_[0], end - first);
      gather(road, first, count);
      sum(road, first, predict(model, count));
      if (first + count < end) road.expect_row((first + count) % per_image_ / per_row_);
      if (shown) shown->update(first + count - begin);
      if (progress) progress(first + count - begin, end - begin);
    }
  }
  void gather(Road& road, int64_t first, int64_t count) {
    // A model may give its windows back, and who called it may keep them.
    if (!buffer_.defined() || buffer_.storage().use_count() > 1) {
      const bool last = options_.channels_last && layout_.slice_dim < 0 && shape_.size() > 3;
      const at::MemoryFormat format = !last               ? at::MemoryFormat::Contiguous
                                      : shape_.size() > 4 ? at::MemoryFormat::ChannelsLast3d
                                                          : at::MemoryFormat::ChannelsLast;
      buffer_ = make_room(shape_, image_device_, format);
    }
    const at::Tensor windows = as_zyx(buffer_, layout_.roi.size());
    for (int64_t begin = first; begin < first + count;) {
      const int64_t stop = end_of_row(begin, first + count);
      const at::Tensor image = road.image(begin / per_image_, begin % per_image_ / per_row_);
      const at::Tensor part = windows.narrow(0, begin - first, stop - begin);
      ops::gather(image, grid_, begin % per_image_, options_.cval, part);
      begin = stop;
    }
  }

  /// Of the windows from `begin` on, those along the same rows.
  int64_t end_of_row(int64_t begin, int64_t end) const {
    return std::min(end, (begin / per_row_ + 1) * per_row_);
  }

  std::vector<at::Tensor> predict(const Forward& model, int64_t count) {
    at::Tensor windows = buffer_.narrow(0, 0, count);
    if (layout_.slice_dim >= 0) windows = windows.squeeze(layout_.slice_dim + 2);
    std::vector<at::Tensor> made = adaptive_(model, windows.to(model_device_, type_));
    if (made.empty()) throw DataError("sliding window: the model made no output");
    for (at::Tensor& output : made) {
      if (layout_.slice_dim >= 0) output = output.unsqueeze(layout_.slice_dim + 2);
      if (output.dim() != static_cast<int64_t>(shape_.size()) || output.size(0) != count) {
        throw DataError(fmt::format("sliding window: the model made ({}) of windows of ({})",
                                    fmt::join(output.sizes(), ","),
                                    fmt::join(windows.sizes(), ",")));
      }
    }
    return made;
  }

  void sum(Road& road, int64_t first, std::vector<at::Tensor> made) {
    if (outputs_.empty()) {
      for (const at::Tensor& values : made) {
        Output& output = outputs_.emplace_back(
            Output{make_grid(layout_, options_, values.sizes().slice(2).vec()),
                   values.size(1),
                   sums_device_});
        if (!sums_device_.is_cpu()) output.grid.map = ops::window_map(output.grid, sums_device_);
      }
      road.open(outputs_);
    }
    if (made.size() != outputs_.size()) {
      throw DataError(fmt::format(
          "sliding window: the model made {} outputs, then {}", outputs_.size(), made.size()));
    }
    for (at::Tensor& values : made) {
      if (values.scalar_type() == at::kDouble) values = values.to(at::kFloat);
      values = as_zyx(values.to(sums_device_), layout_.roi.size());
    }
    const int64_t end = first + made[0].size(0);
    for (int64_t begin = first; begin < end;) {
      const int64_t stop = end_of_row(begin, end);
      const int64_t n = begin / per_image_;
      for (std::size_t o = 0; o < made.size(); ++o) {
        ops::accumulate(made[o].narrow(0, begin - first, stop - begin),
                        outputs_[o].grid,
                        begin % per_image_,
                        road.sums(n, o));
      }
      if (stop % per_row_ == 0) road.close_row(outputs_, n, begin % per_image_ / per_row_);
      begin = stop;
    }
  }

  const WindowLayout& layout_;
  const SlidingWindowOptions& options_;
  ops::WindowGrid grid_;
  int64_t per_image_, per_row_, total_;
  at::ScalarType type_;  // that the model takes
  c10::Device image_device_, model_device_, sums_device_;
  Sizes shape_;
  at::Tensor buffer_;  // (S,C,roi), used by every batch
  AdaptiveBatch adaptive_;
  std::vector<Output> outputs_;
};

/// Images and results in memory; sums become results in their place.
class WholeImages final : public Road {
 public:
  WholeImages(const at::Tensor& images, const WindowLayout& layout)
      : images_(readable(images)), dims_(layout.size.size()) {}
  at::Tensor image(int64_t n, int64_t /*i*/) override {
    return as_zyx(images_.select(0, n), dims_);
  }
  void open(const std::vector<Output>& outputs) override {
    for (const Output& output : outputs) {
      Sizes shape = sizes_of(output.grid, dims_);
      shape.insert(shape.begin(), {images_.size(0), output.classes});
      results.push_back(make_room(shape, output.device));
    }
  }
  at::Tensor sums(int64_t n, std::size_t output) override {
    return as_zyx(results[output].select(0, n), dims_);
  }
  void close_row(const std::vector<Output>& outputs, int64_t n, int64_t i) override {
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const auto [begin, end] = outputs[o].grid.final_rows(i);
      const at::Tensor all = sums(n, o);
      ops::finish_rows(all, outputs[o].grid, begin, end, {}, all.narrow(1, begin, end - begin), {});
    }
  }
  std::vector<at::Tensor> results;  // (N,K,...)

 private:
  /// Windows are taken out of it as it is, where that can be.
  static at::Tensor readable(const at::Tensor& images) {
    at::ScalarType type = images.scalar_type();
    if (type == at::kInt || type == at::kLong || type == at::kDouble || type == at::kBool ||
        type == at::kChar)
      type = at::kFloat;
    const at::Tensor same = images.to(type);
    return same.stride(-1) == 1 ? same : same.contiguous();
  }
  at::Tensor images_;
  std::size_t dims_;
};

/// Rows in, rows out.
class Slabs final : public Road {
 public:
  Slabs(const RowSource& source,
        const WindowLayout& layout,
        const ops::Finish& finish,
        const RowSink& sink,
        RowRange range,
        int64_t first_row,
        c10::Device device)
      : layout_(layout),
        finish_(finish),
        sink_(sink),
        range_(range),
        ring_(source,
              std::min(layout.size[0], layout.roi[0]),
              std::max<int64_t>(
                  layout.starts[0][static_cast<std::size_t>(first_row)] - layout.before[0], 0),
              device),
        download_([this](int64_t first, const std::vector<at::Tensor>& values, int64_t more) {
          bad_ += more;
          if (bad_ == 0 && !values.empty()) sink_(first, values);
        }) {}

  at::Tensor image(int64_t /*n*/, int64_t i) override {
    return as_zyx(ring_.up_to(end_of(i)), layout_.size.size());
  }
  void expect_row(int64_t i) override { ring_.fetch(end_of(i)); }

  void open(const std::vector<Output>& outputs) override {
    for (const Output& output : outputs) {
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

  void close_row(const std::vector<Output>& outputs, int64_t /*n*/, int64_t i) override {
    const std::size_t dims = layout_.size.size();
    const bool is_here = outputs[0].device.is_cpu();
    const at::Tensor new_bad = at::zeros({1}, sums_[0].options().dtype(at::kLong));
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const ops::WindowGrid& grid = outputs[o].grid;
      const auto [begin, end] = grid.final_rows(i);
      Sizes shape = sizes_of(grid, dims);
      shape[0] = end - begin;
      shape.insert(shape.begin(), finish_.channels(outputs[o].classes));
      at::Tensor& values = values_[o];
      if (!is_here || !values.defined() || values.use_count() > 1 ||
          values.storage().use_count() > 1 || values.sizes() != at::IntArrayRef(shape))
        values = at::empty(shape, sums_[o].options().dtype(finish_.type));
      // Rows that are not wanted lack some of their windows: they may be anything.
      const int64_t low = std::clamp(range_.begin, begin, end);
      const int64_t high = std::clamp(range_.end, low, end);
      const auto finish = [&, first = begin](int64_t from, int64_t to, const at::Tensor& count) {
        if (from >= to) return;
        const at::Tensor out = as_zyx(values.narrow(1, from - first, to - from), dims);
        ops::finish_rows(sums_[o], grid, from, to, finish_, out, count);
      };
      finish(begin, low, {});
      finish(low, high, new_bad);
      finish(high, end, {});
    }
    const auto [first, last] = outputs[0].grid.final_rows(i);
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
  /// Nothing is on its way any more. Returns how many sums were NaN or infinite.
  int64_t finish() {
    download_.finish();
    return bad_;
  }

 private:
  int64_t end_of(int64_t i) const {
    const int64_t start = layout_.starts[0][static_cast<std::size_t>(i)] - layout_.before[0];
    return std::min(layout_.size[0], start + layout_.roi[0]);
  }

  const WindowLayout& layout_;
  const ops::Finish& finish_;
  const RowSink& sink_;
  const RowRange range_;
  RowRing ring_;
  RowDownload download_;
  std::vector<at::Tensor> sums_, values_;
  int64_t bad_ = 0;
};

}  // namespace

std::vector<Tensor> sliding_window(const Tensor& image,
                                   const Forward& model,
                                   const SlidingWindowOptions& given,
                                   const WindowProgress& progress) {
  const SlidingWindowOptions options = config::checked(given, "inference_args");
  const at::NoGradGuard no_grad;
  if (image.dim() < 3 || image.dim() > 5) {
    throw DataError(fmt::format("sliding window: an image of ({}), expected (N,C,[D,][H,]W)",
                                fmt::join(image.sizes(), ",")));
  }
  const WindowLayout layout = layout_windows(image.sizes().slice(2).vec(), options);
  WholeImages road(image, layout);
  // A model whose weights are short or double floats is given images that are.
  const at::ScalarType type = image.is_floating_point() ? image.scalar_type() : at::kFloat;
  WindowRun(layout, options, image.size(0), image.size(1), image.device(), type)
      .run(model, road, progress);
  return std::move(road.results);
}

Tensor sliding_window(const Tensor& image,
                      const Network& model,
                      const SlidingWindowOptions& options,
                      const WindowProgress& progress) {
  const Forward one = [&](const at::Tensor& windows) {
    std::vector<at::Tensor> made{model(windows)};
    const int64_t dims = windows.dim() - 2;
    if (made[0].dim() != windows.dim() ||
        made[0].sizes().slice(2, dims) != windows.sizes().slice(2, dims)) {
      throw DataError(fmt::format(
          "sliding window: the model made ({}) of a window of ({}); windows must keep their size",
          fmt::join(made[0].sizes().slice(2), ","),
          fmt::join(windows.sizes().slice(2), ",")));
    }
    return made;
  };
  return sliding_window(image, one, options, progress)[0];
}

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
  const c10::Device device = device_or(options.sw_device, c10::kCPU);
  WindowRun run(layout, options, 1, source.shape[0], device);
  Slabs road(source, layout, finish, sink, range, run.first_row(begin - starts.begin()), device);
  run.run_rows(model, road, progress, begin - starts.begin(), end - starts.begin());
  return road.finish();
}

}  // namespace cytra::inference
