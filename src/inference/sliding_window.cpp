#include "inference/sliding_window.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/progress.h"
#include "config/checked.h"

namespace cytra::inference {
namespace {

using Sizes = std::vector<int64_t>;

template <class T>
std::vector<T> per_dimension(std::vector<T> values, std::size_t dims, const char* name) {
  if (values.size() == 1) values.resize(dims, values[0]);
  if (values.size() != dims) {
    throw ConfigError(
        fmt::format("inference_args.{} has {} numbers, the image has {} spatial dimensions",
                    name,
                    values.size(),
                    dims));
  }
  return values;
}

/// Fills an image up to the window, half before and half after.
at::Tensor pad_to(const at::Tensor& image,
                  const Sizes& size,
                  const Sizes& before,
                  const SlidingWindowOptions& options) {
  Sizes pads;  // last dimension first
  bool any = false;
  for (std::size_t d = size.size(); d-- > 0;) {
    const int64_t missing = size[d] - image.size(static_cast<int64_t>(d) + 2);
    pads.push_back(before[d]);
    pads.push_back(missing - before[d]);
    any = any || missing > 0;
    if (options.padding_mode == "reflect" && missing > 0 &&
        missing - before[d] >= image.size(static_cast<int64_t>(d) + 2)) {
      throw ConfigError(
          "inference_args.padding_mode=reflect needs an image larger than the padding; use "
          "constant");
    }
  }
  if (!any) return image;
  if (options.padding_mode == "constant") return at::constant_pad_nd(image, pads, options.cval);
  return at::pad(image, pads, options.padding_mode);
}

/// The box of one window in an (N,C,spatial) tensor, image n alone.
at::Tensor box(const at::Tensor& tensor, int64_t n, const Sizes& start, const Sizes& roi) {
  at::Tensor view = tensor.narrow(0, n, 1);
  for (std::size_t d = 0; d < roi.size(); ++d)
    view = view.narrow(static_cast<int64_t>(d) + 2, start[d], roi[d]);
  return view;
}

/// All windows of one image in C order (the last dimension runs fastest).
std::vector<Sizes> place_windows(const Sizes& size,
                                 const Sizes& roi,
                                 const std::vector<double>& overlap) {
  std::vector<Sizes> windows{{}};
  for (std::size_t d = 0; d < size.size(); ++d) {
    std::vector<Sizes> longer;
    for (const Sizes& window : windows) {
      for (const int64_t start : window_starts(size[d], roi[d], overlap[d])) {
        longer.push_back(window);
        longer.back().push_back(start);
      }
    }
    windows = std::move(longer);
  }
  return windows;
}

}  // namespace

std::vector<int64_t> window_starts(int64_t size, int64_t roi, double overlap) {
  // In double and truncated, as the peer does: roi 100 with overlap 0.9 steps by 9.
  const int64_t interval =
      roi == size
          ? roi
          : std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(roi) * (1 - overlap)));
  std::vector<int64_t> starts;
  for (int64_t start = 0;; start += interval) {
    starts.push_back(std::min(start, size - roi));
    if (start + roi >= size) return starts;
  }
}

Tensor importance_map(const std::vector<int64_t>& roi,
                      const std::string& mode,
                      const std::vector<double>& sigma_scale) {
  SlidingWindowOptions options;
  options.roi_size = roi;
  options.mode = mode;
  options.sigma_scale = sigma_scale;
  config::checked(options, "importance_map");
  for (const int64_t size : roi) {
    if (size < 1) throw ConfigError(fmt::format("importance_map: a window of {} voxels", size));
  }
  if (mode == "constant") return at::ones(roi);
  const std::vector<double> scales = per_dimension(sigma_scale, roi.size(), "sigma_scale");
  at::Tensor map;
  for (std::size_t d = 0; d < roi.size(); ++d) {
    const double sigma = static_cast<double>(roi[d]) * scales[d];
    const at::Tensor x = at::arange(roi[d], at::kFloat) - static_cast<double>(roi[d] - 1) / 2;
    const at::Tensor line = at::exp(x.square() / (-2 * sigma * sigma));
    map = d == 0 ? line : map.unsqueeze(-1) * line;
  }
  return map.clamp_min_(std::max(map.min().item<double>(), 1e-3));
}

void SlidingWindowOptions::check() const {
  for (const double share : overlap) {
    if (!(share >= 0 && share < 1))
      throw ConfigError(fmt::format("inference_args.overlap: expected [0, 1), got {}", share));
  }
  if (cval != 0 && padding_mode != "constant") {
    throw ConfigError(fmt::format(
        "inference_args.cval={}: padding_mode={} takes its values from the image; leave "
        "cval out, or set padding_mode=constant",
        cval,
        padding_mode));
  }
  for (const double scale : sigma_scale) {
    if (!(scale > 0 && std::isfinite(scale))) {
      throw ConfigError(
          fmt::format("inference_args.sigma_scale: expected a number above 0, got {}", scale));
    }
  }
}

Tensor sliding_window(const Tensor& image,
                      const Predictor& predictor,
                      const SlidingWindowOptions& given,
                      const WindowProgress& progress) {
  const SlidingWindowOptions options = config::checked(given, "inference_args");
  const auto dims = static_cast<std::size_t>(image.dim() - 2);
  Sizes roi = per_dimension(options.roi_size, dims, "roi_size");
  const std::vector<double> overlap = per_dimension(options.overlap, dims, "overlap");
  const std::vector<double> sigma = per_dimension(options.sigma_scale, dims, "sigma_scale");
  Sizes size(dims), before(dims), original(dims);
  for (std::size_t d = 0; d < dims; ++d) {
    original[d] = image.size(static_cast<int64_t>(d) + 2);
    if (roi[d] <= 0) roi[d] = original[d];
    size[d] = std::max(original[d], roi[d]);
    before[d] = (size[d] - original[d]) / 2;
  }
  const at::Tensor input = pad_to(image, size, before, options);
  const at::Tensor importance = importance_map(roi, options.mode, sigma).to(input.device());
  const std::vector<Sizes> windows = place_windows(size, roi, overlap);
  const auto per_image = static_cast<int64_t>(windows.size());
  const int64_t total = per_image * input.size(0);

  std::vector<int64_t> shape{std::min(options.sw_batch_size, total), input.size(1)};
  shape.insert(shape.end(), roi.begin(), roi.end());
  const at::Tensor buffer = at::empty(shape, input.options());  // (S,C,roi), reused by every batch
  at::Tensor output, weight;                                    // (N,K,size), (1,1,size)
  std::optional<Progress> shown;
  if (options.progress) shown.emplace("windows", total);
  for (int64_t first = 0; first < total; first += shape[0]) {
    const int64_t count = std::min(shape[0], total - first);
    for (int64_t i = 0; i < count; ++i) {
      const Sizes& start = windows[static_cast<std::size_t>((first + i) % per_image)];
      buffer.narrow(0, i, 1).copy_(box(input, (first + i) / per_image, start, roi));
    }
    const at::Tensor predicted = predictor(buffer.narrow(0, 0, count)).to(at::kFloat);  // (S,K,roi)
    if (predicted.sizes().slice(2) != at::IntArrayRef(roi)) {
      throw DataError(fmt::format(
          "sliding window: the model made ({}) of a window of ({}); windows must keep their size",
          fmt::join(predicted.sizes().slice(2), ","),
          fmt::join(roi, ",")));
    }
    if (!output.defined()) {
      std::vector<int64_t> whole{input.size(0), predicted.size(1)};
      whole.insert(whole.end(), size.begin(), size.end());
      output = at::zeros(whole, predicted.options());
      whole[0] = whole[1] = 1;
      weight = at::zeros(whole, predicted.options());
    }
    for (int64_t i = 0; i < count; ++i) {
      const Sizes& start = windows[static_cast<std::size_t>((first + i) % per_image)];
      box(output, (first + i) / per_image, start, roi)
          .addcmul_(predicted.narrow(0, i, 1), importance);
      if (first + i < per_image)
        box(weight, 0, start, roi).add_(importance);  // the same for every image
    }
    if (shown) shown->update(first + count);
    if (progress) progress(first + count, total);
  }
  output.div_(weight);
  for (std::size_t d = 0; d < dims; ++d)
    output = output.narrow(static_cast<int64_t>(d) + 2, before[d], original[d]);
  return output;
}

}  // namespace cytra::inference
