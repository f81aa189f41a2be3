// StarsToLabels: star-convex shapes by descending probability, painted where they are new.
#include "ops/labels/star_labels.h"

#include <algorithm>
#include <cmath>
#include <map>

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

struct Corner {
  double z, y, x;
};

/// The image that shapes are drawn into. Rows run slightly beside the voxels' centres, so that no
/// row meets a corner.
class Canvas {
 public:
  Canvas(const std::array<int64_t, 3>& size, const Rays& rays) : size_(size), rays_(rays) {}

  /// The shape's voxels: those whose centres are inside.
  std::vector<Span> draw(int64_t voxel, const float* distances, int64_t stride) const {
    const Corner centre{static_cast<double>(voxel / (size_[1] * size_[2])),
                        static_cast<double>(voxel / size_[2] % size_[1]),
                        static_cast<double>(voxel % size_[2])};
    std::vector<Corner> corners;
    for (std::size_t k = 0; k < rays_.directions.size(); ++k) {
      const double length = std::max(distances[static_cast<int64_t>(k) * stride], kShortest);
      const auto& [z, y, x] = rays_.directions[k];
      corners.push_back({centre.z + length * z, centre.y + length * y, centre.x + length * x});
    }
    std::vector<Crossing> crossings;
    if (rays_.faces.empty()) {
      for (std::size_t k = 0; k < corners.size(); ++k)
        cross_edge(corners[k], corners[(k + 1) % corners.size()], crossings);
    }
    for (const auto& [a, b, c] : rays_.faces)
      cross_face(corners[static_cast<std::size_t>(a)],
                 corners[static_cast<std::size_t>(b)],
                 corners[static_cast<std::size_t>(c)],
                 crossings);
    return spans_between(crossings);
  }

 private:
  static constexpr float kShortest = 1e-3F;  // StarDist's least distance
  static constexpr double kBeside = 1.3e-5, kBesideZ = 0.7e-5;
  struct Crossing {
    int64_t row;  // z * height + y
    double x;
    bool operator<(const Crossing& other) const {
      return row != other.row ? row < other.row : x < other.x;
    }
  };

  /// Whole numbers n of [0, size) with low <= n + beside < high.
  static std::pair<int64_t, int64_t> within(double low, double high, double beside, int64_t size) {
    const auto bounded = [&](double value) {
      return static_cast<int64_t>(
          std::ceil(std::min(std::max(value - beside, 0.0), static_cast<double>(size))));
    };
    return {bounded(low), bounded(high)};
  }
  void cross_edge(const Corner& a, const Corner& b, std::vector<Crossing>& to) const {
    const auto [first, last] = within(std::min(a.y, b.y), std::max(a.y, b.y), kBeside, size_[1]);
    for (int64_t y = first; y < last; ++y) {
      const double part = (static_cast<double>(y) + kBeside - a.y) / (b.y - a.y);
      to.push_back({y, a.x + part * (b.x - a.x)});
    }
  }
  /// A row passes through a triangle once, or not at all: where it cuts the triangle's line in its
  /// plane z.
  void cross_face(const Corner& a,
                  const Corner& b,
                  const Corner& c,
                  std::vector<Crossing>& to) const {
    const auto [first, last] =
        within(std::min({a.z, b.z, c.z}), std::max({a.z, b.z, c.z}), kBesideZ, size_[0]);
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
      for (std::size_t i = begin; i < to.size(); ++i) to[i].row += z * size_[1];
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
      const auto [first, last] = within(from.x, until.x, 0, size_[2]);
      if (first < last) spans.push_back({from.row * size_[2] + first, from.row * size_[2] + last});
      i += 2;
    }
    return spans;
  }
  std::array<int64_t, 3> size_;
  const Rays& rays_;
};

/// The objects painted so far.
class Painting {
 public:
  explicit Painting(at::Tensor& labels) : data_(labels.mutable_data_ptr<int32_t>()) {}

  /// Adds a shape unless it overlaps an earlier one by more than `threshold` of the smaller of
  /// both.
  void add(const std::vector<Span>& spans, double threshold) {
    int64_t size = 0;
    overlaps_.clear();
    for (const auto& [begin, end] : spans) {
      size += end - begin;
      for (int64_t v = begin; v < end; ++v) {
        if (data_[v] != 0) ++overlaps_[data_[v]];
      }
    }
    for (const auto& [label, overlap] : overlaps_) {
      const int64_t smaller = std::min(size, sizes_[static_cast<std::size_t>(label) - 1]);
      if (static_cast<double>(overlap) > threshold * static_cast<double>(smaller)) return;
    }
    if (size == 0) return;
    sizes_.push_back(size);
    for (const auto& [begin, end] : spans) {
      for (int64_t v = begin; v < end; ++v) {
        if (data_[v] == 0) data_[v] = static_cast<int32_t>(sizes_.size());
      }
    }
  }

 private:
  int32_t* data_;
  std::vector<int64_t> sizes_;           // by label - 1, with what is under others
  std::map<int32_t, int64_t> overlaps_;  // of the one that is asked for, by label
};

/// One number for each of `count`; `given` may hold one for all. Throws: DataError.
std::vector<int64_t> numbers_for(std::vector<int64_t> given, std::size_t count, const char* name) {
  if (given.size() == 1) given.resize(count, given[0]);
  if (given.size() == count) return given;
  throw DataError("{}: {} numbers, expected 1 or {}", name, given.size(), count);
}

/// Where voxels may be centres along one axis.
struct CentreAxis {
  int64_t size, step, first, end;  // first, end: in steps
  bool holds(int64_t at) const { return at % step == 0 && at / step >= first && at / step < end; }
};

/// Voxels that may be centres, the most probable first; of equal ones the first.
std::vector<int64_t> candidates_of(const at::Tensor& scores,
                                   const StarsToLabels& options,
                                   std::size_t dims) {
  const auto border = numbers_for(options.border, 2 * dims, "border");
  const auto grid =
      numbers_for(options.grid.empty() ? std::vector<int64_t>{1} : options.grid, dims, "grid");
  std::array<CentreAxis, 3> axes{{{1, 1, 0, 1}, {}, {}}};
  for (std::size_t d = 0; d < dims; ++d) {
    const std::size_t axis = 3 - dims + d;
    const int64_t size = scores.size(static_cast<int64_t>(axis));
    const int64_t count = (size + grid[d] - 1) / grid[d];
    axes[axis] = {size, grid[d], border[2 * d], count - border[2 * d + 1]};
    if (size == 1) axes[axis] = {1, 1, 0, 1};
  }
  std::vector<int64_t> found;
  const float* const data = scores.const_data_ptr<float>();
  const auto probability = [&](int64_t voxel) {
    const double score = data[voxel];
    return options.from_logits ? 1 / (1 + std::exp(-score)) : score;
  };
  for (int64_t z = 0, v = 0; z < axes[0].size; ++z) {
    for (int64_t y = 0; y < axes[1].size; ++y) {
      for (int64_t x = 0; x < axes[2].size; ++x, ++v) {
        if (probability(v) > options.prob_thresh && axes[0].holds(z) && axes[1].holds(y) &&
            axes[2].holds(x))
          found.push_back(v);
      }
    }
  }
  std::ranges::stable_sort(found, [&](int64_t a, int64_t b) { return data[a] > data[b]; });
  return found;
}

}  // namespace

at::Tensor StarsToLabels::operator()(const at::Tensor& output) const {
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
  const Canvas canvas({scores.size(0), scores.size(1), scores.size(2)}, rays);
  const float* const distances = values.const_data_ptr<float>() + labels.numel();
  const std::vector<int64_t> candidates =
      candidates_of(scores, *this, static_cast<std::size_t>(dims));
  Painting painting(labels);
  constexpr std::size_t kAtOnce = 4096;  // drawn by all threads, then painted in order
  for (std::size_t from = 0; from < candidates.size(); from += kAtOnce) {
    std::vector<std::vector<Span>> shapes(std::min(kAtOnce, candidates.size() - from));
    at::parallel_for(0, static_cast<int64_t>(shapes.size()), 32, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t voxel = candidates[from + static_cast<std::size_t>(i)];
        shapes[static_cast<std::size_t>(i)] = canvas.draw(voxel, distances + voxel, labels.numel());
      }
    });
    for (const std::vector<Span>& shape : shapes) painting.add(shape, nms_thresh);
  }
  return labels;
}

}  // namespace cytra::ops
