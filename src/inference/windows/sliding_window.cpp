#include "inference/windows/sliding_window.h"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "config/checked.h"
#include "inference/windows/window_run.h"

namespace cytra::inference {
namespace {

using Sizes = std::vector<int64_t>;

void expect_device(const char* name, const std::optional<std::string>& device) {
  if (!device) return;
  try {
    static_cast<void>(c10::Device(*device));
  } catch (const c10::Error&) {
    throw ConfigError(
        "inference_args.{}: expected a device (cpu, cuda, cuda:1), got '{}'", name, *device);
  }
}

/// Images and results in memory; sums become results in their place.
class WholeImages final : public WindowIo {
 public:
  WholeImages(const at::Tensor& images, const WindowLayout& layout)
      : images_(readable(images)), dims_(layout.size.size()) {}
  at::Tensor image(int64_t n, int64_t /*i*/) override {
    return as_zyx(images_.select(0, n), dims_);
  }
  void open(const std::vector<SummedOutput>& outputs) override {
    for (const SummedOutput& output : outputs) {
      Sizes shape = sizes_of(output.grid, dims_);
      shape.insert(shape.begin(), {images_.size(0), output.classes});
      results.push_back(make_room(shape, output.device));
    }
  }
  at::Tensor sums(int64_t n, std::size_t output) override {
    return as_zyx(results[output].select(0, n), dims_);
  }
  void close_row(const std::vector<SummedOutput>& outputs, int64_t n, int64_t i) override {
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const auto [begin, end] = outputs[o].grid.final_rows(i);
      const at::Tensor all = sums(n, o);
      ops::finish_rows(all, outputs[o].grid, begin, end, {}, all.narrow(1, begin, end - begin), {});
    }
  }
  std::vector<at::Tensor> results;  // (N,K,...)

 private:
  /// An image that windows can be read from, without a copy where possible.
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

}  // namespace

void SlidingWindowOptions::check() const {
  constexpr int64_t kLargestSide = int64_t{1} << 20;
  for (const int64_t side : roi_size) {
    if (side > kLargestSide) {
      throw ConfigError(
          "inference_args.roi_size: {} voxels, expected {} at most", side, kLargestSide);
    }
  }
  for (const double share : overlap) {
    if (!(share >= 0 && share < 1))
      throw ConfigError("inference_args.overlap: expected [0, 1), got {}", share);
  }
  expect_device("sw_device", sw_device);
  expect_device("device", device);
  if (cval != 0 && padding_mode != "constant") {
    throw ConfigError(
        "inference_args.cval={}: padding_mode={} takes its values from the image; leave cval out, "
        "or set padding_mode=constant",
        cval,
        padding_mode);
  }
  for (const double scale : sigma_scale) {
    if (!(scale > 0 && std::isfinite(scale))) {
      throw ConfigError("inference_args.sigma_scale: expected a number above 0, got {}", scale);
    }
  }
}

std::vector<Tensor> sliding_window(const Tensor& image,
                                   const Forward& model,
                                   const SlidingWindowOptions& given,
                                   const WindowProgress& progress) {
  const SlidingWindowOptions options = config::checked(given, "inference_args");
  const at::NoGradGuard no_grad;
  if (image.dim() < 3 || image.dim() > 5) {
    throw DataError("sliding window: an image of ({}), expected (N,C,[D,][H,]W)",
                    fmt::join(image.sizes(), ","));
  }
  const WindowLayout layout = layout_windows(image.sizes().slice(2).vec(), options);
  WholeImages io(image, layout);
  // A model whose weights are short or double floats is given images that are.
  const at::ScalarType type = image.is_floating_point() ? image.scalar_type() : at::kFloat;
  WindowRun(layout, options, image.size(0), image.size(1), image.device(), type)
      .run(model, io, progress);
  return std::move(io.results);
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
      throw DataError(
          "sliding window: the model made ({}) of a window of ({}); windows must keep their size",
          fmt::join(made[0].sizes().slice(2), ","),
          fmt::join(windows.sizes().slice(2), ","));
    }
    return made;
  };
  return sliding_window(image, one, options, progress)[0];
}

bool WindowChanges::is_auto(const config::Node& roi) {
  return roi.kind == config::Kind::string && (roi.string == "AUTO" || roi.string == "auto");
}

void WindowChanges::check() {
  SlidingWindowOptions::check();
  if (given_roi.is_null() || is_auto(given_roi)) return;
  if (given_roi.kind != config::Kind::list) given_roi.as<int64_t>();
  for (const config::Node& side : given_roi.list) {
    if (!side.is_null()) side.as<int64_t>();
  }
}

}  // namespace cytra::inference
