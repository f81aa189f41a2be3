#include "inference/windows/windows.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "config/checked.h"
#include "ops/windows/sums.h"

namespace cytra::inference {
namespace {

using Sizes = std::vector<int64_t>;

constexpr double kMostWindows = 1e7;  // along a dimension: a size in a file may be anything

/// Makes a number per dimension from one, or from as many. A `slice` dimension, which windows do
/// not have, may be omitted.
template <class T>
std::vector<T> per_dimension(std::vector<T> values,
                             std::size_t dims,
                             const char* name,
                             int64_t slice_dim = -1,
                             T slice = {}) {
  if (values.size() == 1) values.resize(dims, values[0]);
  if (slice_dim >= 0 && values.size() + 1 == dims) values.insert(values.begin() + slice_dim, slice);
  if (values.size() != dims) {
    throw ConfigError("inference_args.{} has {} numbers, the image has {} spatial dimensions",
                      name,
                      values.size(),
                      dims);
  }
  return values;
}

/// A side with Cellpose's border: 8 to 16 voxels on either end, so that it is a multiple of 16, or
/// a window. Source: cellpose.transforms.get_pad_yx. Throws: ConfigError for windows that may lie
/// in the border.
int64_t with_border(int64_t side, int64_t roi) {
  constexpr int64_t kDivisor = 16;
  if (roi < 2 * kDivisor)
    throw ConfigError("inference_args.spacing=cellpose: windows of {} voxels, expected {} or more",
                      roi,
                      2 * kDivisor);
  return kDivisor + (side < roi ? std::max(side, roi - kDivisor)
                                : (side + kDivisor - 1) / kDivisor * kDivisor);
}

/// A window's weights along each dimension, and the lower limit of their products.
struct Factors {
  std::vector<std::vector<float>> of;
  float floor = 0;
};

Factors make_factors(const Sizes& roi, const std::string& mode, const std::vector<double>& sigma) {
  Factors factors;
  if (mode == "gaussian") {
    // Computed in float, in this order, as in MONAI.
    float least = 1;
    for (std::size_t d = 0; d < roi.size(); ++d) {
      const double deviation = static_cast<double>(roi[d]) * sigma[d];
      const auto scale = static_cast<float>(-2 * deviation * deviation);
      std::vector<float>& line = factors.of.emplace_back();
      for (int64_t i = 0; i < roi[d]; ++i) {
        const float x = static_cast<float>(i) - static_cast<float>(roi[d] - 1) / 2;
        line.push_back(std::exp(x * x / scale));
      }
      least *= *std::ranges::min_element(line);
    }
    factors.floor = std::max(least, 1e-3F);
  } else if (mode == "nnunet") {  // nnunetv2's compute_gaussian, whose least value is float16's
    for (std::size_t d = 0; d < roi.size(); ++d) {
      const double deviation = static_cast<double>(roi[d]) * sigma[d];
      const auto reach = static_cast<int64_t>(4 * deviation + 0.5);
      std::vector<float>& line = factors.of.emplace_back();
      for (int64_t i = 0; i < roi[d]; ++i) {
        const auto x = static_cast<double>(i - roi[d] / 2);
        const bool is_reached = std::abs(x) <= static_cast<double>(reach);
        line.push_back(
            is_reached ? static_cast<float>(std::exp(-x * x / (2 * deviation * deviation))) : 0);
      }
    }
    factors.floor = 6e-9F;
  } else if (mode == "cellpose") {  // cellpose.transforms._taper_mask
    const int64_t largest = std::max<int64_t>(224, *std::ranges::max_element(roi));
    for (const int64_t side : roi) {
      std::vector<float>& line = factors.of.emplace_back();
      for (int64_t i = 0; i < side; ++i) {
        const double place = static_cast<double>(largest / 2 - side / 2 + i);
        const double x = std::abs(place - static_cast<double>(largest - 1) / 2);
        const double edge = static_cast<double>(largest) / 2 - 20;
        line.push_back(static_cast<float>(1 / (1 + std::exp((x - edge) / 7.5))));
      }
    }
  } else {
    for (const int64_t side : roi) factors.of.emplace_back(side, 1.F);
  }
  return factors;
}

/// The source of a voxel in the padded image; -1: none.
int64_t source_of(int64_t place, int64_t size, const std::string& padding_mode) {
  if (place >= 0 && place < size) return place;
  if (padding_mode == "reflect") {  // and back again, where it is longer than the image
    place = std::abs(place) % std::max<int64_t>(2 * size - 2, 1);
    return std::min(place, 2 * (size - 1) - place);
  }
  if (padding_mode == "replicate") return place < 0 ? 0 : size - 1;
  if (padding_mode == "circular") return place < 0 ? place + size : place - size;
  return -1;
}

/// The internal axis (Z, Y, X) of each of `dims` dimensions: rows come first.
std::vector<std::size_t> axes_of(std::size_t dims) {
  if (dims == 1) return {2};
  if (dims == 2) return {0, 2};
  return {0, 1, 2};
}

/// The places in a line of `from` from which a line of `to` takes its values: torch's
/// nearest-exact.
Sizes nearest_exact(int64_t from, int64_t to) {
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  Sizes places;
  for (int64_t i = 0; i < to; ++i) {
    const auto place = static_cast<int64_t>((static_cast<float>(i) + 0.5F) * scale);
    places.push_back(std::min(place, from - 1));
  }
  return places;
}

/// The map options.roi_weight_map as (z,y,x), or undefined.
at::Tensor weight_map(const WindowLayout& layout, const SlidingWindowOptions& options) {
  const at::Tensor& given = options.roi_weight_map;
  if (!given.defined()) return {};
  Sizes with, without;
  for (std::size_t d = 0; d < layout.roi.size(); ++d) {
    with.push_back(layout.roi[d]);
    if (static_cast<int64_t>(d) != layout.slice_dim) without.push_back(layout.roi[d]);
  }
  at::Tensor map = given;
  while (map.dim() > std::ssize(with) && map.size(0) == 1) map = map.squeeze(0);
  if (map.sizes() != at::IntArrayRef(with) && map.sizes() != at::IntArrayRef(without)) {
    throw ConfigError("roi_weight_map has the shape ({}), windows have ({}): expected the same",
                      fmt::join(given.sizes(), ","),
                      fmt::join(layout.roi, ","));
  }
  while (with.size() < 3) with.insert(with.begin() + (with.size() == 2 ? 1 : 0), 1);
  return map.to(at::kCPU, at::kFloat).reshape(with).contiguous();
}

}  // namespace

int64_t WindowLayout::windows() const {
  int64_t count = 1;
  for (const Sizes& line : starts) count *= std::ssize(line);
  return count;
}

std::vector<int64_t> window_starts(int64_t size,
                                   int64_t roi,
                                   double overlap,
                                   const std::string& spacing) {
  Sizes starts;
  const int64_t last = size - roi;
  if (last <= 0) return {0};
  const double about =
      static_cast<double>(size) / (static_cast<double>(roi) * std::max(1 - overlap, 1e-9));
  if (std::min(about, static_cast<double>(size)) > kMostWindows) {
    throw DataError(
        "sliding window: {} voxels by windows of {}, expected {:.0e} windows at most; the size may "
        "be damaged, else larger windows (inference_args.roi_size) or less overlap",
        size,
        roi,
        kMostWindows);
  }
  if (spacing != "monai") {
    int64_t count = 0;
    if (spacing == "even") {  // nnU-Net's compute_steps_for_sliding_window
      const double step = static_cast<double>(roi) * (1 - overlap);
      count = static_cast<int64_t>(std::ceil(static_cast<double>(last) / step)) + 1;
    } else {  // cellpose.transforms.make_tiles
      const double share = std::min(0.5, std::max(0.05, overlap));
      count = static_cast<int64_t>(
          std::ceil((1 + 2 * share) * static_cast<double>(size) / static_cast<double>(roi)));
    }
    const double step = static_cast<double>(last) / static_cast<double>(count - 1);
    for (int64_t i = 0; i < count; ++i) {
      const double start = step * static_cast<double>(i);
      starts.push_back(spacing == "even" ? std::lrint(start)  // half to even, as numpy does
                       : i == count - 1  ? last
                                         : static_cast<int64_t>(start));
    }
    return starts;
  }
  // Computed in double and truncated, as in MONAI: roi 100 with overlap 0.9 has steps of 9.
  const int64_t interval =
      std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(roi) * (1 - overlap)));
  for (int64_t start = 0;; start += interval) {
    starts.push_back(std::min(start, last));
    if (start >= last) return starts;
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
    if (size < 1) throw ConfigError("importance_map: a window of {} voxels", size);
  }
  const Factors factors =
      make_factors(roi, mode, per_dimension(sigma_scale, roi.size(), "sigma_scale"));
  at::Tensor map = at::ones({});
  for (const std::vector<float>& line : factors.of) map = map.unsqueeze(-1) * at::tensor(line);
  return map.clamp_min_(factors.floor);
}

WindowLayout layout_windows(const std::vector<int64_t>& size, const SlidingWindowOptions& options) {
  WindowLayout layout;
  const std::size_t dims = size.size();
  if (options.spatial_dim) {
    if (dims != 3) {
      throw ConfigError(
          "inference_args.spatial_dim={}: slices are taken of a volume, the image has {} spatial "
          "dimensions; leave it out",
          *options.spatial_dim,
          dims);
    }
    layout.slice_dim = *options.spatial_dim;
  }
  Sizes given = options.roi_size;
  if (given.empty()) given = {0};
  const std::size_t in_plane = dims - (options.spatial_dim ? 1 : 0);
  layout.roi = per_dimension(given, in_plane, "roi_size");
  if (options.spatial_dim) layout.roi.insert(layout.roi.begin() + layout.slice_dim, 1);
  const std::vector<double> overlap =
      per_dimension(options.overlap, dims, "overlap", layout.slice_dim, 0.);
  const Sizes units = per_dimension(
      options.unit.empty() ? Sizes{1} : options.unit, dims, "unit", layout.slice_dim, int64_t{1});
  layout.size = layout.padded = size;
  layout.before.assign(dims, 0);
  for (std::size_t d = 0; d < dims; ++d) {
    int64_t& roi = layout.roi[d];
    const bool has_border =
        options.spacing == "cellpose" && roi > 0 && static_cast<int64_t>(d) != layout.slice_dim;
    if (size[d] < 1) {
      throw DataError("sliding window: an image of ({}), expected one voxel at least",
                      fmt::join(size, ","));
    }
    if (roi <= 0) roi = size[d];
    const int64_t unit = units[d];
    const auto in_units = [unit](int64_t side) { return (side + unit - 1) / unit; };
    roi = in_units(roi) * unit;
    const int64_t whole = in_units(size[d]) * unit;
    layout.padded[d] = has_border ? with_border(whole, roi) : std::max(whole, roi);
    const int64_t missing = layout.padded[d] - size[d];
    layout.before[d] = options.unit.empty() ? missing / 2 : 0;
    const int64_t most = !options.unit.empty()                ? missing
                         : options.padding_mode == "reflect"  ? size[d] - 1
                         : options.padding_mode == "circular" ? size[d]
                                                              : missing;
    if (missing - missing / 2 > most) {
      throw ConfigError(
          "inference_args.padding_mode={0} needs an image larger than the padding; a window of {1} "
          "and an image of {2} leave {3} on a side; use constant",
          options.padding_mode,
          roi,
          size[d],
          missing - missing / 2);
    }
    layout.starts.push_back(
        window_starts(layout.padded[d] / unit, roi / unit, overlap[d], options.spacing));
    for (int64_t& start : layout.starts.back()) start *= unit;
  }
  double windows = 1;
  for (const Sizes& line : layout.starts) windows *= static_cast<double>(line.size());
  if (windows > kMostWindows * kMostWindows) {
    throw DataError("sliding window: {:.0e} windows of ({}) in an image of ({})",
                    windows,
                    fmt::join(layout.roi, ","),
                    fmt::join(size, ","));
  }
  return layout;
}

ops::WindowGrid make_grid(const WindowLayout& layout,
                          const SlidingWindowOptions& options,
                          const std::vector<int64_t>& output_roi) {
  const std::size_t dims = layout.roi.size();
  const std::vector<double> sigma =
      per_dimension(options.sigma_scale, dims, "sigma_scale", layout.slice_dim, 1.);
  const Factors factors = make_factors(layout.roi, options.mode, sigma);
  ops::WindowGrid grid;
  grid.floor = factors.floor;
  grid.map = weight_map(layout, options);
  const std::vector<std::size_t> places = axes_of(dims);
  for (std::size_t d = 0; d < dims; ++d) {
    ops::WindowAxis& axis = grid.axes[places[d]];
    const int64_t roi = layout.roi[d], padded = layout.padded[d], before = layout.before[d];
    axis.roi = output_roi[d];
    const double zoom = static_cast<double>(axis.roi) / static_cast<double>(roi);
    const auto zoomed = [&](int64_t x) {
      return static_cast<int64_t>(static_cast<double>(x) * zoom);
    };
    axis.starts = layout.starts[d];
    axis.weights = factors.of[d];
    if (axis.roi != roi) {
      for (int64_t& start : axis.starts) start = zoomed(start);
      const Sizes nearest = nearest_exact(roi, axis.roi);
      axis.weights.clear();
      for (const int64_t i : nearest)
        axis.weights.push_back(factors.of[d][static_cast<std::size_t>(i)]);
      if (grid.map.defined())
        grid.map = grid.map.index_select(static_cast<int64_t>(places[d]), at::tensor(nearest));
    }
    if (padded == layout.size[d]) {
      axis.size = std::max(zoomed(padded), axis.starts.back() + axis.roi);
    } else {  // half to even, as Python rounds
      axis.before = std::lrint(static_cast<double>(before) * zoom);
      axis.size = std::lrint(static_cast<double>(before + layout.size[d]) * zoom) - axis.before;
    }
    axis.source.clear();
    for (int64_t i = 0; axis.roi == roi && i < padded; ++i)
      axis.source.push_back(source_of(i - before, layout.size[d], options.padding_mode));
  }
  return grid;
}

}  // namespace cytra::inference
