#include "io/objects/polygons.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "base/error.h"
#include "io/pixels/format.h"

namespace cytra::io {
namespace {

/// Finds the parts of equal label that are connected by their sides.
class Parts {
 public:
  Parts(const std::vector<uint32_t>& labels, int64_t height, int64_t width)
      : height_(height), width_(width), parts_(labels.size()) {
    std::iota(parts_.begin(), parts_.end(), 0U);
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        const auto at = static_cast<std::size_t>(y * width + x);
        if (x > 0 && labels[at] == labels[at - 1]) join(at, at - 1);
        const std::size_t above = at - static_cast<std::size_t>(width);
        if (y > 0 && labels[at] == labels[above]) join(at, above);
      }
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i] = root(i);
  }
  /// The first pixel of the part, in reading order; -1 outside of the image.
  int64_t at(int64_t y, int64_t x) const {
    if (y < 0 || x < 0 || y >= height_ || x >= width_) return -1;
    return parts_[static_cast<std::size_t>(y * width_ + x)];
  }

 private:
  uint32_t root(std::size_t i) {
    while (parts_[i] != i) i = parts_[i] = parts_[parts_[i]];
    return static_cast<uint32_t>(i);
  }
  void join(std::size_t a, std::size_t b) {
    const uint32_t one = root(a), other = root(b);
    parts_[std::max(one, other)] = std::min(one, other);
  }

  int64_t height_, width_;
  std::vector<uint32_t> parts_;
};

/// Walks along the sides of one part's pixels, with the part on the right hand.
class RingTracer {
 public:
  RingTracer(const Parts& parts, int64_t height, int64_t width)
      : parts_(parts), width_(width), is_seen_(static_cast<std::size_t>(height * width)) {}

  /// Whether the upper side of a pixel is a border that no ring has passed.
  bool begins(int64_t y, int64_t x) const {
    return parts_.at(y, x) != parts_.at(y - 1, x) &&
           !is_seen_[static_cast<std::size_t>(y * width_ + x)];
  }

  /// Traces the rings of a border, from the upper left corner of a pixel to the east and round. A
  /// walk that meets itself at a corner is split into its loops.
  std::vector<Ring> trace(int64_t y, int64_t x) {
    const int64_t part = parts_.at(y, x), begin_y = y, begin_x = x;
    std::vector<Ring> rings;
    Ring walk;
    std::unordered_map<int64_t, std::size_t> met;  // corners where two pixels of the part touch
    int direction = 0;                             // east, south, west, north
    do {
      if (direction == 0) is_seen_[static_cast<std::size_t>(y * width_ + x)] = true;
      x += kStep[direction][0];
      y += kStep[direction][1];
      const bool right = is_part(part, y, x, direction, 0),
                 left = is_part(part, y, x, direction, 1);
      if (right && !left) continue;
      const std::array<double, 2> corner{static_cast<double>(x), static_cast<double>(y)};
      if (!right && left) {
        const auto [found, is_new] = met.try_emplace(y * (width_ + 1) + x, walk.size());
        if (!is_new) {
          const auto loop = walk.begin() + static_cast<std::ptrdiff_t>(found->second);
          rings.emplace_back(loop, walk.end());
          for (auto i = loop + 1; i != walk.end(); ++i)
            met.erase(static_cast<int64_t>((*i)[1]) * (width_ + 1) + static_cast<int64_t>((*i)[0]));
          walk.erase(loop, walk.end());
          found->second = walk.size();
        }
      }
      walk.push_back(corner);
      direction = (direction + (right ? 3 : 1)) % 4;
    } while (y != begin_y || x != begin_x || direction != 0);
    rings.push_back(std::move(walk));
    return rings;
  }

 private:
  static constexpr int64_t kStep[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
  /// Whether the pixel ahead of the corner (x, y), on the right (0) or left (1), is of the part.
  bool is_part(int64_t part, int64_t y, int64_t x, int direction, int side) const {
    constexpr int64_t kAhead[4][2][2] = {// y, x against the pixel below and right of the corner
                                         {{0, 0}, {-1, 0}},
                                         {{0, -1}, {0, 0}},
                                         {{-1, -1}, {0, -1}},
                                         {{-1, 0}, {-1, -1}}};
    const auto& step = kAhead[direction][side];
    return parts_.at(y + step[0], x + step[1]) == part;
  }

  const Parts& parts_;
  int64_t width_;
  std::vector<bool> is_seen_;
};

/// The bits of each pixel of a plane, which differ where labels differ.
std::vector<uint32_t> plane_of_labels(const Image& image, int64_t z) {
  const auto count = static_cast<std::size_t>(image.shape[2] * image.shape[3]);
  const std::size_t size = size_of(image.dtype);
  const unsigned char* next = image.pixels.data() + static_cast<std::size_t>(z) * count * size;
  std::vector<uint32_t> labels(count);
  for (uint32_t& label : labels) {
    std::memcpy(&label, next, size);
    next += size;
  }
  return labels;
}

/// The first pixel of a traced part: row, column.
std::array<double, 2> first_pixel(const Polygon& polygon) {
  std::array<double, 2> first{polygon.outer[0][1], polygon.outer[0][0]};
  for (const auto& [x, y] : polygon.outer) first = std::min(first, {y, x});
  return first;
}

int64_t label_of(Dtype dtype, uint32_t bits) {
  const bool is_signed = dtype == Dtype::i8 || dtype == Dtype::i16 || dtype == Dtype::i32;
  const int64_t sign = is_signed ? int64_t{1} << (8 * size_of(dtype) - 1) : 0;
  return (static_cast<int64_t>(bits) ^ sign) - sign;
}

}  // namespace

double signed_area(const Ring& ring) {
  double twice = 0;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const auto &a = ring[i], &b = ring[(i + 1) % ring.size()];
    twice += a[0] * b[1] - b[0] * a[1];
  }
  return twice / 2;
}

void LabelTracer::add(std::span<const uint32_t> rows, int64_t width) {
  const auto side = static_cast<std::size_t>(width);
  for (; !rows.empty(); rows = rows.subspan(side), ++y_) {
    for (std::size_t x = 0; x < side;) {
      const std::size_t begin = x++;
      while (x < side && rows[x] == rows[begin]) ++x;
      if (rows[begin] != 0)
        open_[rows[begin]].push_back({y_, static_cast<int64_t>(begin), static_cast<int64_t>(x)});
    }
    std::erase_if(open_, [&](const auto& object) {
      if (object.second.back().y == y_) return false;
      trace(object.first, object.second);
      return true;
    });
  }
}

void LabelTracer::end_plane() {
  for (const auto& [label, runs] : open_) trace(label, runs);
  open_.clear();
  std::sort(polygons_.begin() + static_cast<std::ptrdiff_t>(first_),
            polygons_.end(),
            [](const Polygon& a, const Polygon& b) { return first_pixel(a) < first_pixel(b); });
  first_ = polygons_.size();
  y_ = 0;
  ++z_;
}

/// Traces the parts of an object that has ended.
void LabelTracer::trace(uint32_t label, const std::vector<Run>& runs) {
  const int64_t top = runs.front().y, height = runs.back().y - top + 1;
  int64_t left = INT64_MAX, right = 0;
  for (const Run& run : runs) {
    left = std::min(left, run.begin);
    right = std::max(right, run.end);
  }
  const int64_t width = right - left;
  if (height * width > UINT32_MAX)
    throw DataError("an object of {} rows and {} columns, too large for outlines", height, width);
  std::vector<uint32_t> is_inside(static_cast<std::size_t>(height * width));
  for (const Run& run : runs) {
    const auto row = is_inside.begin() + (run.y - top) * width - left;
    std::fill(row + run.begin, row + run.end, 1U);
  }
  const Parts parts(is_inside, height, width);
  RingTracer tracer(parts, height, width);
  std::unordered_map<int64_t, std::size_t> polygon_of;  // by part
  const std::size_t first = polygons_.size();
  for (const Run& run : runs) {
    for (int64_t x = run.begin - left; x < run.end - left; ++x) {
      if (!tracer.begins(run.y - top, x)) continue;
      const auto [found, is_new] =
          polygon_of.try_emplace(parts.at(run.y - top, x), polygons_.size());
      if (is_new) polygons_.push_back({{}, {}, label, z_});
      Polygon& polygon = polygons_[found->second];
      for (Ring& ring : tracer.trace(run.y - top, x)) {
        if (signed_area(ring) > 0) {
          polygon.outer = std::move(ring);
        } else {
          polygon.holes.push_back(std::move(ring));
        }
      }
    }
  }
  const auto move = [&](Ring& ring) {
    for (auto& [x, y] : ring) {
      x += static_cast<double>(left);
      y += static_cast<double>(top);
    }
  };
  for (std::size_t i = first; i < polygons_.size(); ++i) {
    move(polygons_[i].outer);
    for (Ring& hole : polygons_[i].holes) move(hole);
  }
}

std::vector<Polygon> trace_labels(const Image& image) {
  check_writable(image);
  const auto [c, depth, height, width] = image.shape;
  if (c != 1 || image.dtype == Dtype::f32 || image.dtype == Dtype::f64)
    throw std::logic_error("labels of several channels, or of real numbers");
  LabelTracer tracer;
  for (int64_t z = 0; z < depth; ++z) {
    tracer.add(plane_of_labels(image, z), width);
    tracer.end_plane();
  }
  std::vector<Polygon> polygons = tracer.take();
  for (Polygon& one : polygons) one.label = label_of(image.dtype, static_cast<uint32_t>(one.label));
  return polygons;
}

}  // namespace cytra::io
