// StarsToLabels: star-convex shapes by descending probability, painted where they are new. Source:
// stardist.nms, stardist/lib/stardist2d.cpp, stardist3d_impl.cpp.
#include "ops/labels/star_labels.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <unordered_map>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/error.h"
#include "ops/labels/volume.h"

namespace cytra::ops {
namespace {

/// Voxels [begin, end) of the dense volume: a part of a row.
struct Span {
  int64_t begin, end;
};

/// What lies between y and y + 1, at its middle.
struct Row {
  double y, from, to;
};

struct Shape {
  std::vector<Span> spans;
  /// In 2D the polygon with corners in whole numbers, of which StarDist counts overlaps.
  std::vector<Row> rows;
  double size = 0;             // that overlaps are shares of: area or volume, also beyond the image
  bool begins_before = false;  // the part of the image that is labelled
};

/// The area that two polygons share.
double shared_area(const std::vector<Row>& a, const std::vector<Row>& b) {
  double area = 0;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    if (i->y == j->y) area += std::max(0.0, std::min(i->to, j->to) - std::max(i->from, j->from));
    const bool ends_first = i->y != j->y ? i->y < j->y : i->to < j->to;
    ++(ends_first ? i : j);
  }
  return area;
}

struct Corner {
  double z, y, x;
};

/// The image that shapes are drawn into. Rows run slightly beside the voxels' centres, so that no
/// row meets a corner.
class Canvas {
 public:
  /// `size`: of the part.
  Canvas(const std::array<int64_t, 3>& size, const Part& part, const Rays& rays)
      : size_(size), part_(part), rays_(rays) {}

  /// The shape's voxels: those whose centres are inside.
  Shape draw(int64_t voxel, const float* distances, int64_t stride) const {
    const Corner centre{static_cast<double>(part_.first[0] + voxel / (size_[1] * size_[2])),
                        static_cast<double>(part_.first[1] + voxel / size_[2] % size_[1]),
                        static_cast<double>(part_.first[2] + voxel % size_[2])};
    std::vector<Corner> corners;
    for (std::size_t k = 0; k < rays_.directions.size(); ++k) {
      const double length = std::max(distances[static_cast<int64_t>(k) * stride], kShortest);
      const auto& [z, y, x] = rays_.directions[k];
      corners.push_back({centre.z + length * z, centre.y + length * y, centre.x + length * x});
    }
    std::vector<Crossing> crossings;
    Shape shape;
    for (const Corner& corner : corners)
      shape.begins_before = shape.begins_before || begins_before(corner);
    if (rays_.faces.empty()) {
      for (std::size_t k = 0; k < corners.size(); ++k)
        cross_edge(corners[k], corners[(k + 1) % corners.size()], crossings);
      shape.rows = rows_of(corners);
      for (const Row& row : shape.rows) shape.size += row.to - row.from;
    }
    for (const auto& face : rays_.faces) {
      const auto& [a, b, c] = std::array{&corners[static_cast<std::size_t>(face[0])],
                                         &corners[static_cast<std::size_t>(face[1])],
                                         &corners[static_cast<std::size_t>(face[2])]};
      cross_face(*a, *b, *c, crossings);
      shape.size += volume(centre, *a, *b, *c);
    }
    shape.spans = spans_between(crossings);
    return shape;
  }

 private:
  bool begins_before(const Corner& corner) const {
    const std::array<double, 3> place{corner.z, corner.y, corner.x};
    for (std::size_t d = 0; d < 3; ++d)
      if (part_.first[d] > 0 && place[d] < static_cast<double>(part_.first[d])) return true;
    return false;
  }
  static constexpr float kShortest = 1e-3F;  // StarDist's least distance
  static constexpr double kBeside = 1.3e-5, kBesideZ = 0.7e-5;
  struct Crossing {
    int64_t row;  // z * height + y
    double x;
    bool operator<(const Crossing& other) const {
      return row != other.row ? row < other.row : x < other.x;
    }
  };

  /// Corners count as far as an image's side beyond its ends: distances may be of any size.
  std::vector<Row> rows_of(std::vector<Corner> corners) const {
    const auto whole = [](double value, int64_t size) {
      const auto side = static_cast<float>(size);
      return std::trunc(std::clamp(static_cast<float>(value), -side, 2 * side));
    };
    for (Corner& corner : corners) {
      corner.y = whole(corner.y, part_.image[1]);
      corner.x = whole(corner.x, part_.image[2]);
    }
    std::vector<std::pair<double, double>> crossings;  // y, x
    for (std::size_t k = 0; k < corners.size(); ++k) {
      const Corner &a = corners[k], &b = corners[(k + 1) % corners.size()];
      for (double y = std::min(a.y, b.y); y < std::max(a.y, b.y); ++y)
        crossings.emplace_back(y, a.x + (y + 0.5 - a.y) / (b.y - a.y) * (b.x - a.x));
    }
    std::sort(crossings.begin(), crossings.end());
    std::vector<Row> rows;  // every row is crossed an even number of times
    for (std::size_t i = 0; i + 1 < crossings.size(); i += 2)
      rows.push_back({crossings[i].first, crossings[i].second, crossings[i + 1].second});
    return rows;
  }
  /// The volume of a tetrahedron.
  static double volume(const Corner& o, const Corner& a, const Corner& b, const Corner& c) {
    const auto from_o = [&o](const Corner& p) { return Corner{p.z - o.z, p.y - o.y, p.x - o.x}; };
    const Corner u = from_o(a), v = from_o(b), w = from_o(c);
    return std::abs(u.z * (v.y * w.x - v.x * w.y) - u.y * (v.z * w.x - v.x * w.z) +
                    u.x * (v.z * w.y - v.y * w.z)) /
           6;
  }
  /// Whole numbers n of the part's along an axis with low <= n + beside < high.
  std::pair<int64_t, int64_t> within(double low,
                                     double high,
                                     double beside,
                                     std::size_t axis) const {
    const auto first = static_cast<double>(part_.first[axis]);
    const auto bounded = [&](double value) {
      return static_cast<int64_t>(
          std::ceil(std::clamp(value - beside, first, first + static_cast<double>(size_[axis]))));
    };
    return {bounded(low), bounded(high)};
  }
  void cross_edge(const Corner& a, const Corner& b, std::vector<Crossing>& to) const {
    const auto [first, last] = within(std::min(a.y, b.y), std::max(a.y, b.y), kBeside, 1);
    for (int64_t y = first; y < last; ++y) {
      const double part = (static_cast<double>(y) + kBeside - a.y) / (b.y - a.y);
      to.push_back({y - part_.first[1], a.x + part * (b.x - a.x)});
    }
  }
  /// A row passes through a triangle once, or not at all: where it cuts the triangle's line in its
  /// plane z.
  void cross_face(const Corner& a,
                  const Corner& b,
                  const Corner& c,
                  std::vector<Crossing>& to) const {
    const auto [first, last] =
        within(std::min({a.z, b.z, c.z}), std::max({a.z, b.z, c.z}), kBesideZ, 0);
    for (int64_t z = first; z < last; ++z) {
      const double height = static_cast<double>(z) + kBesideZ;
      std::array<Corner, 2> ends{};
      std::size_t found = 0;
      for (const auto& [p, q] : {std::pair{&a, &b}, std::pair{&b, &c}, std::pair{&a, &c}}) {
        if ((p->z <= height) == (q->z <= height) || found == 2) continue;
        const double part = (height - p->z) / (q->z - p->z);
        ends[found++] = {height, p->y + part * (q->y - p->y), p->x + part * (q->x - p->x)};
      }
      const std::size_t begin = to.size();
      if (found == 2) cross_edge(ends[0], ends[1], to);
      for (std::size_t i = begin; i < to.size(); ++i) to[i].row += (z - part_.first[0]) * size_[1];
    }
  }
  /// The voxels between each row's first and second crossing, third and fourth, and so on.
  std::vector<Span> spans_between(std::vector<Crossing>& crossings) const {
    std::sort(crossings.begin(), crossings.end());
    std::vector<Span> spans;
    for (std::size_t i = 0; i + 1 < crossings.size();) {
      const Crossing& from = crossings[i];
      const Crossing& until = crossings[i + 1];
      if (from.row != until.row) {
        ++i;
        continue;
      }
      const auto [first, last] = within(from.x, until.x, 0, 2);
      const int64_t row = from.row * size_[2] - part_.first[2];
      if (first < last) spans.push_back({row + first, row + last});
      i += 2;
    }
    return spans;
  }
  const std::array<int64_t, 3> size_;
  const Part& part_;
  const Rays& rays_;
};

/// The objects painted so far.
class Painting {
 public:
  explicit Painting(at::Tensor& labels)
      : data_(labels.mutable_data_ptr<int32_t>()), count_(labels.numel()) {}
  /// Clears what is left visible, away from the part's sides, of shapes that begin before it: it
  /// lies where a more probable shape is, whose centre is outside.
  void finish(const at::Tensor& labels, const Part& part) {
    std::transform(data_, data_ + count_, data_, [](int32_t label) { return std::abs(label); });
    std::vector<bool> is_kept(shapes_.size() + 1);
    for (std::size_t i = 0; i < shapes_.size(); ++i) is_kept[i + 1] = !shapes_[i].begins_before;
    for (int64_t d = 0; d < labels.dim(); ++d) {
      if (part.first[static_cast<std::size_t>(3 - labels.dim() + d)] == 0) continue;
      const at::Tensor side = labels.select(d, 0).contiguous();
      const int32_t* const label = side.const_data_ptr<int32_t>();
      for (int64_t v = 0; v < side.numel(); ++v) is_kept[static_cast<std::size_t>(label[v])] = true;
    }
    std::transform(data_, data_ + count_, data_, [&](int32_t label) {
      return is_kept[static_cast<std::size_t>(label)] ? label : 0;
    });
  }

  /// Adds a shape unless it overlaps an earlier one by more than `threshold` of the smaller of
  /// both, also where others cover that one.
  void add(const Shape& shape, double threshold) {
    overlaps_.clear();
    for (const auto& [begin, end] : shape.spans) {
      for (int64_t v = begin; v < end;) {
        const int32_t top = data_[v];
        const int64_t from = v++;
        if (top < 0) {
          const auto [hidden, last] = hidden_.equal_range(from);
          for (auto one = hidden; one != last; ++one)
            if (overlaps(one->second, 1, shape, threshold)) return;
        }
        while (top > 0 && v < end && data_[v] == top) ++v;
        if (top != 0 && overlaps(std::abs(top), v - from, shape, threshold)) return;
      }
    }
    if (shape.spans.empty()) return;
    shapes_.push_back({{}, shape.rows, shape.size, shape.begins_before});
    const auto label = static_cast<int32_t>(shapes_.size());
    for (const auto& [begin, end] : shape.spans) {
      for (int64_t v = begin; v < end; ++v) {
        if (data_[v] != 0) hidden_.emplace(v, label);
        data_[v] = data_[v] == 0 ? label : -std::abs(data_[v]);
      }
    }
  }

 private:
  /// Whether a shape shares too much with an earlier one, where it has `voxels` more of its voxels.
  bool overlaps(int32_t label, int64_t voxels, const Shape& shape, double threshold) {
    const Shape& earlier = shapes_[static_cast<std::size_t>(label) - 1];
    const auto [overlap, is_new] = overlaps_.emplace(label, 0);
    if (shape.rows.empty()) {
      overlap->second += static_cast<double>(voxels);
    } else if (is_new) {
      overlap->second = shared_area(shape.rows, earlier.rows);
    }
    return overlap->second > threshold * std::min(shape.size, earlier.size);
  }

  int32_t* data_;  // negative: more shapes are there, in hidden_
  int64_t count_;
  std::vector<Shape> shapes_;                         // by label - 1, without spans
  std::unordered_multimap<int64_t, int32_t> hidden_;  // labels by voxel
  std::map<int32_t, double> overlaps_;                // of the one that is asked for, by label
};

/// One number for each of `count`; `given` may hold one for all. Throws: DataError.
std::vector<int64_t> numbers_for(std::vector<int64_t> given, std::size_t count, const char* name) {
  if (given.size() == 1) given.resize(count, given[0]);
  if (given.size() == count) return given;
  throw DataError("{}: {} numbers, expected 1 or {}", name, given.size(), count);
}

/// Which voxels of the part may be centres along one axis.
struct CentreAxis {
  int64_t first, end, step;
};

/// Voxels that may be centres, the most probable first; of equal ones the first.
std::vector<int64_t> candidates_of(const at::Tensor& scores,
                                   const Part& part,
                                   const StarsToLabels& options,
                                   std::size_t dims) {
  const auto border = numbers_for(options.border, 2 * dims, "border");
  const auto grid =
      numbers_for(options.grid.empty() ? std::vector<int64_t>{1} : options.grid, dims, "grid");
  const auto units = numbers_for(
      options.divisor.empty() ? std::vector<int64_t>{1} : options.divisor, dims, "divisor");
  std::array<CentreAxis, 3> axes{{{0, 1, 1}, {}, {}}};
  for (std::size_t d = 0; d < dims; ++d) {
    const std::size_t axis = 3 - dims + d;
    const int64_t size = part.image[axis], first = part.first[axis];
    const int64_t filled = (size + units[d] - 1) / units[d] * units[d];
    const int64_t count = (filled + grid[d] - 1) / grid[d];
    axes[axis] = {border[2 * d] * grid[d], (count - border[2 * d + 1]) * grid[d], grid[d]};
    if (size == 1) axes[axis] = {0, 1, 1};
    const int64_t begin = std::max(axes[axis].first, (first + grid[d] - 1) / grid[d] * grid[d]);
    axes[axis].first = begin - first;
    axes[axis].end = std::min(axes[axis].end - first, scores.size(static_cast<int64_t>(axis)));
  }
  std::vector<int64_t> found;
  const float* const data = scores.const_data_ptr<float>();
  const auto probability = [&](int64_t voxel) {
    const double score = data[voxel];
    return options.from_logits ? 1 / (1 + std::exp(-score)) : score;
  };
  const int64_t height = scores.size(1), width = scores.size(2);
  for (int64_t z = axes[0].first; z < axes[0].end; z += axes[0].step) {
    for (int64_t y = axes[1].first; y < axes[1].end; y += axes[1].step) {
      for (int64_t x = axes[2].first; x < axes[2].end; x += axes[2].step) {
        const int64_t voxel = (z * height + y) * width + x;
        if (probability(voxel) > options.prob_thresh) found.push_back(voxel);
      }
    }
  }
  std::ranges::stable_sort(found, [&](int64_t a, int64_t b) { return data[a] > data[b]; });
  return found;
}

}  // namespace

at::Tensor StarsToLabels::operator()(const at::Tensor& output, const Part& part) const {
  const int64_t dims = output.dim() - 1, count = output.size(0) - 1;
  if ((dims != 2 && dims != 3) || count <= dims) {
    throw DataError(
        "{} channels in {} dimensions, expected a probability and at least {} distances",
        output.size(0),
        dims,
        dims + 1);
  }
  const Rays rays = make_rays(count, dims, anisotropy);
  at::Tensor values = output.to(at::kCPU, at::kFloat).contiguous();
  at::Tensor labels = at::zeros(output.sizes().slice(1), at::kInt);
  const at::Tensor scores = dims == 3 ? values[0] : values[0].unsqueeze(0);
  const Canvas canvas({scores.size(0), scores.size(1), scores.size(2)}, part, rays);
  const float* const distances = values.const_data_ptr<float>() + labels.numel();
  const std::vector<int64_t> candidates =
      candidates_of(scores, part, *this, static_cast<std::size_t>(dims));
  Painting painting(labels);
  constexpr std::size_t kAtOnce = 4096;  // drawn by all threads, then painted in order
  for (std::size_t from = 0; from < candidates.size(); from += kAtOnce) {
    std::vector<Shape> shapes(std::min(kAtOnce, candidates.size() - from));
    at::parallel_for(0, std::ssize(shapes), 32, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t voxel = candidates[from + static_cast<std::size_t>(i)];
        shapes[static_cast<std::size_t>(i)] = canvas.draw(voxel, distances + voxel, labels.numel());
      }
    });
    for (const Shape& shape : shapes) painting.add(shape, nms_thresh);
  }
  painting.finish(labels, part);
  return labels;
}

}  // namespace cytra::ops
