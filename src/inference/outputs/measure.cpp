#include "inference/outputs/measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "io/csv.h"
#include "ops/labels/components.h"
#include "ops/labels/volume.h"

namespace cytra::inference {
namespace {

/// The intensity of one channel within an object; sums are about its first value, so that squares
/// keep their precision.
struct Intensity {
  double first = 0, sum = 0, squares = 0;
  float lowest = std::numeric_limits<float>::infinity(), highest = -lowest;
};

struct Object {
  int64_t count = 0;
  std::array<int64_t, 3> origin{};  // its first voxel: sums are relative to it, and so exact
  std::array<int64_t, 3> lowest{INT64_MAX, INT64_MAX, INT64_MAX}, highest{-1, -1, -1};
  std::array<int64_t, 3> sums{};
  int64_t yy = 0, yx = 0, xx = 0;  // sums of products
  double perimeter = 0;
  std::vector<Intensity> channels;

  /// Adds voxels [begin, end) of a row.
  void add_run(int64_t z, int64_t y, int64_t begin, int64_t end) {
    if (count == 0) origin = {z, y, begin};
    lowest = {std::min(lowest[0], z), std::min(lowest[1], y), std::min(lowest[2], begin)};
    highest = {z, std::max(highest[1], y), std::max(highest[2], end - 1)};
    const int64_t n = end - begin, row = y - origin[1], x = begin - origin[2];
    const int64_t sum_x = n * x + n * (n - 1) / 2;
    sums = {sums[0] + n * (z - origin[0]), sums[1] + n * row, sums[2] + sum_x};
    yy += n * row * row;
    yx += row * sum_x;
    xx += n * x * x + x * n * (n - 1) + (n - 1) * n * (2 * n - 1) / 6;
    count += n;
  }
  double centroid(std::size_t axis) const {
    return static_cast<double>(origin[axis]) +
           static_cast<double>(sums[axis]) / static_cast<double>(count);
  }
  /// The eigenvalues of the inertia about the centroid, in a plane, the larger first.
  std::array<double, 2> inertia() const {
    const auto n = static_cast<double>(count);
    const double y = static_cast<double>(sums[1]) / n, x = static_cast<double>(sums[2]) / n;
    const double a = static_cast<double>(yy) / n - y * y, b = static_cast<double>(xx) / n - x * x,
                 c = static_cast<double>(yx) / n - y * x;
    const double middle = (a + b) / 2, spread = std::hypot((a - b) / 2, c);
    return {std::max(0.0, middle + spread), std::max(0.0, middle - spread)};
  }
};

}  // namespace

/// Collects the objects of an image by label, from runs of voxels.
class RowMeasures::Objects {
 public:
  void add(const at::Tensor& labels, const at::Tensor& image) {
    const at::Tensor volume = ops::as_volume(labels, at::kInt);
    const at::Tensor values = image.defined() ? image.to(at::kCPU, at::kFloat).contiguous() : image;
    channels_ = image.defined() ? image.size(0) : 0;
    const int32_t* label = volume.const_data_ptr<int32_t>();
    const int64_t height = volume.size(1), width = volume.size(2);
    const bool is_plane = labels.dim() == 2;
    for (int64_t row = 0; row < volume.size(0) * height; ++row) {
      const int32_t* line = label + row * width;
      for (int64_t x = 0; x < width;) {
        const int64_t begin = x++;
        while (x < width && line[x] == line[begin]) ++x;
        if (line[begin] <= 0) continue;
        Object& object = objects_[line[begin]];
        const int64_t z = row / height, y = row % height;
        object.add_run(is_plane ? z : rows_ + z, is_plane ? rows_ + y : y, begin, x);
        if (image.defined()) add_values(object, values, row * width + begin, row * width + x);
      }
    }
    rows_ += labels.size(0);
    dims_ = static_cast<std::size_t>(labels.dim());
    if (is_plane) add_perimeters(volume[0], false);
  }
  /// Is called after the last rows.
  void finish() {
    if (last_rows_.defined()) add_perimeters(last_rows_.narrow(0, 0, 0), true);
  }
  std::size_t dims() const { return dims_; }
  std::map<int32_t, const Object*> sorted() const {
    std::map<int32_t, const Object*> sorted;
    for (const auto& [label, object] : objects_) sorted.emplace(label, &object);
    return sorted;
  }
  int64_t channels() const { return channels_; }

 private:
  void add_values(Object& object, const at::Tensor& values, int64_t begin, int64_t end) {
    object.channels.resize(static_cast<std::size_t>(channels_));
    for (int64_t c = 0; c < channels_; ++c) {
      const float* value = values.const_data_ptr<float>() + c * (values.numel() / channels_);
      Intensity& of = object.channels[static_cast<std::size_t>(c)];
      if (of.lowest > of.highest) of.first = static_cast<double>(value[begin]);
      double sum = 0, squares = 0;
      for (int64_t i = begin; i < end; ++i) {
        const double off = static_cast<double>(value[i]) - of.first;
        sum += off;
        squares += off * off;
        of.lowest = std::min(of.lowest, value[i]);
        of.highest = std::max(of.highest, value[i]);
      }
      of.sum += sum;
      of.squares += squares;
    }
  }

  /// Adds the perimeters of the rows (Y,X) that have two more behind them, or are the last.
  void add_perimeters(const at::Tensor& rows, bool are_last) {
    const at::Tensor all = last_rows_.defined() ? at::cat({last_rows_, rows}) : rows;
    const int64_t first = rows_ - all.size(0), end = are_last ? rows_ : rows_ - 2;
    if (end > measured_) {
      add_perimeters(all, measured_ - first, end - first);
      measured_ = end;
    }
    const int64_t kept = std::max<int64_t>(measured_ - 2 - first, 0);
    last_rows_ = all.narrow(0, kept, all.size(0) - kept).clone();
  }
  /// Adds those of rows [from, to): border pixels are weighted by the direction in which the border
  /// continues. Source: skimage.measure.perimeter; Benkrid & Crookes 2000.
  void add_perimeters(const at::Tensor& rows, int64_t from, int64_t to) {
    const int64_t height = rows.size(0), width = rows.size(1);
    const int32_t* label = rows.const_data_ptr<int32_t>();
    std::vector<uint8_t> is_border(static_cast<std::size_t>(rows.numel()));
    for (int64_t y = 0, i = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x, ++i) {
        const int32_t own = label[i];
        is_border[static_cast<std::size_t>(i)] =
            own > 0 &&
            (x == 0 || x + 1 == width || y == 0 || y + 1 == height || label[i - 1] != own ||
             label[i + 1] != own || label[i - width] != own || label[i + width] != own);
      }
    }
    for (int64_t y = from, i = from * width; y < to; ++y) {
      for (int64_t x = 0; x < width; ++x, ++i) {
        if (is_border[static_cast<std::size_t>(i)] == 0) continue;
        int sides = 0, corners = 0;
        for (int64_t dy = y > 0 ? -1 : 0; dy <= (y + 1 < height ? 1 : 0); ++dy) {
          for (int64_t dx = x > 0 ? -1 : 0; dx <= (x + 1 < width ? 1 : 0); ++dx) {
            const int64_t other = i + dy * width + dx;
            if (label[other] != label[i] || is_border[static_cast<std::size_t>(other)] == 0)
              continue;
            sides += std::abs(dy) + std::abs(dx) == 1 ? 1 : 0;
            corners += dy != 0 && dx != 0 ? 1 : 0;
          }
        }
        objects_[label[i]].perimeter += length_of(sides, corners);
      }
    }
  }
  static double length_of(int sides, int corners) {
    const double diagonal = std::sqrt(2.0);
    switch (1 + 2 * sides + 10 * corners) {
      case 5:
      case 7:
      case 15:
      case 17:
      case 25:
      case 27:
        return 1;
      case 21:
      case 33:
        return diagonal;
      case 13:
      case 23:
        return (1 + diagonal) / 2;
      default:
        return 0;
    }
  }

  std::unordered_map<int32_t, Object> objects_;
  int64_t channels_ = 0, rows_ = 0, measured_ = 0;  // the last: rows whose perimeters are known
  std::size_t dims_ = 2;
  at::Tensor last_rows_;
};

namespace {

double diameter_of(double size, std::size_t dims) {
  return dims == 2 ? std::sqrt(4 * size / M_PI) : std::cbrt(6 * size / M_PI);
}

/// Adds values to the last row of a table, whose first row names the columns.
class TableWriter {
 public:
  explicit TableWriter(Measurements& table) : table_(table) {}
  void start_row() {
    is_named_ = !table_.columns.empty();
    table_.rows.emplace_back();
  }
  void add(const std::string& column, double value) {
    if (!is_named_) table_.columns.push_back(column);
    table_.rows.back().push_back(value);
  }

 private:
  Measurements& table_;
  bool is_named_ = false;
};

void add_shape(TableWriter& table, const Object& object, std::size_t dims) {
  const std::size_t first = 3 - dims;
  table.add("area", static_cast<double>(object.count));
  for (std::size_t d = 0; d < dims; ++d)
    table.add(fmt::format("bbox-{}", d), static_cast<double>(object.lowest[first + d]));
  for (std::size_t d = 0; d < dims; ++d)
    table.add(fmt::format("bbox-{}", dims + d), static_cast<double>(object.highest[first + d] + 1));
  for (std::size_t d = 0; d < dims; ++d)
    table.add(fmt::format("centroid-{}", d), object.centroid(first + d));
  table.add("equivalent_diameter_area", diameter_of(static_cast<double>(object.count), dims));
  if (dims == 3) return;
  const auto [major, minor] = object.inertia();
  table.add("perimeter", object.perimeter);
  table.add("eccentricity", major == 0 ? 0 : std::sqrt(1 - minor / major));
  table.add("axis_major_length", 4 * std::sqrt(major));
  table.add("axis_minor_length", 4 * std::sqrt(minor));
}

void add_um(TableWriter& table,
            const Object& object,
            std::size_t dims,
            const std::array<double, 3>& spacing_um) {
  double voxel = 1;
  for (std::size_t d = 3 - dims; d < 3; ++d) voxel *= spacing_um[d];
  if (voxel <= 0) return;
  const double size = static_cast<double>(object.count) * voxel;
  table.add(dims == 2 ? "area_um2" : "volume_um3", size);
  for (std::size_t d = 0; d < dims; ++d) {
    const std::size_t axis = 3 - dims + d;
    table.add(fmt::format("centroid_um-{}", d), object.centroid(axis) * spacing_um[axis]);
  }
  table.add("equivalent_diameter_um", diameter_of(size, dims));
}

void add_intensities(TableWriter& table, const Object& object) {
  const auto add = [&](const char* name, const auto& of) {
    for (std::size_t c = 0; c < object.channels.size(); ++c)
      table.add(fmt::format("intensity_{}-{}", name, c), of(object.channels[c]));
  };
  const auto count = static_cast<double>(object.count);
  add("mean", [&](const Intensity& of) { return of.first + of.sum / count; });
  add("min", [](const Intensity& of) { return static_cast<double>(of.lowest); });
  add("max", [](const Intensity& of) { return static_cast<double>(of.highest); });
  add("std", [&](const Intensity& of) {
    const double mean = of.sum / count;
    return std::sqrt(std::max(0.0, of.squares / count - mean * mean));
  });
}

}  // namespace

RowMeasures::RowMeasures() : objects_(std::make_unique<Objects>()) {}
RowMeasures::~RowMeasures() = default;

void RowMeasures::add(const Tensor& labels, const Tensor& image) {
  if (image.defined() &&
      (image.dim() != labels.dim() + 1 || image.sizes().slice(1) != labels.sizes())) {
    throw DataError("an image of [{}] for labels of [{}], expected their size",
                    fmt::join(image.sizes(), ", "),
                    fmt::join(labels.sizes(), ", "));
  }
  objects_->add(labels, image);
}

Measurements RowMeasures::finish(const io::Geometry& geometry) {
  objects_->finish();
  const std::size_t dims = objects_->dims();
  Measurements table;
  TableWriter writer(table);
  const auto add = [&](int32_t label, const Object& object) {
    writer.start_row();
    writer.add("label", label);
    add_shape(writer, object, dims);
    add_um(writer, object, dims, geometry.spacing_um);
    add_intensities(writer, object);
  };
  Object none;  // names the columns, also of an image without objects
  none.channels.resize(static_cast<std::size_t>(objects_->channels()));
  add(0, none);
  table.rows.clear();
  for (const auto& [label, object] : objects_->sorted()) add(label, *object);
  return table;
}

Measurements measure(const Tensor& labels, const Tensor& image, const io::Geometry& geometry) {
  RowMeasures all;
  all.add(labels, image);
  return all.finish(geometry);
}

MaskObjects objects_of(const Tensor& mask) {
  const at::Tensor values = mask.to(at::kInt).contiguous();
  const ops::Components found = ops::connected_components(values, /*connectivity=*/0);
  MaskObjects objects{found.labels,
                      std::vector<int32_t>(static_cast<std::size_t>(found.count) + 1)};
  const int32_t* label = found.labels.const_data_ptr<int32_t>();
  const int32_t* value = values.const_data_ptr<int32_t>();
  for (int64_t i = 0; i < values.numel(); ++i)
    objects.classes[static_cast<std::size_t>(label[i])] = value[i];
  return objects;
}

std::vector<std::vector<std::string>> Measurements::cells() const {
  std::vector<std::vector<std::string>> cells;
  for (const std::vector<double>& row : rows) {
    cells.emplace_back();
    for (const double value : row) cells.back().push_back(io::cell_of(value));
  }
  return cells;
}

}  // namespace cytra::inference
