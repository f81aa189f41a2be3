#include "io/annotations/shapes.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace cytra::io {
namespace {

constexpr double kFarthestCorner = 1e7;
constexpr double kPi = 3.14159265358979323846;

}  // namespace

double coordinate(const std::string& place, double value) {
  if (std::abs(value) <= kFarthestCorner) return value;
  throw DataError(
      "{}: the coordinate {}, expected at most {} pixels", place, value, kFarthestCorner);
}

std::string last_name(const std::string& path) {
  const std::size_t slash = path.find_last_of("/\\");
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

Ring rectangle(const std::array<double, 4>& box) {
  const auto [x0, y0, x1, y1] = box;
  return {{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}};
}

std::array<double, 4> box_around(const Annotation& annotation) {
  bool is_empty = true;
  std::array<double, 4> box{};
  const auto add = [&](double x, double y) {
    if (is_empty) box = {x, y, x, y};
    is_empty = false;
    box = {std::min(box[0], x), std::min(box[1], y), std::max(box[2], x), std::max(box[3], y)};
  };
  for (const auto& part : annotation.parts)
    for (const Ring& ring : part)
      for (const auto& [x, y] : ring) add(x, y);
  for (const CocoRle& mask : annotation.masks) {
    const auto [x, y, width, height] = mask.box();
    if (width == 0) continue;
    add(static_cast<double>(x), static_cast<double>(y));
    add(static_cast<double>(x + width), static_cast<double>(y + height));
  }
  return box;
}

Ring ellipse(const std::array<double, 2>& centre,
             const std::array<double, 2>& a,
             const std::array<double, 2>& b) {
  // The distance from the curve is above 0.001 pixels only for radii above 200.
  constexpr int kCorners = 1024;
  Ring ring(kCorners);
  for (int i = 0; i < kCorners; ++i) {
    const double angle = 2 * kPi * (i + 0.5) / kCorners;
    for (std::size_t k = 0; k < 2; ++k)
      ring[static_cast<std::size_t>(i)][k] =
          centre[k] + std::cos(angle) * a[k] + std::sin(angle) * b[k];
  }
  return ring;
}

CocoRle fill_coco_polygon(const std::string& place,
                          const std::vector<double>& corners,
                          int64_t height,
                          int64_t width) {
  constexpr double kScale = 5;  // points densely along the outline, this fine
  constexpr int64_t kMostPoints = int64_t{1} << 27;
  const std::size_t count = corners.size() / 2;
  std::vector<std::array<int64_t, 2>> fine(count);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < 2; ++k)
      fine[i][k] = static_cast<int64_t>(kScale * corners[2 * i + k] + 0.5);
  int64_t points = 0;
  std::vector<int64_t> changes;  // pixels, column by column, where inside and outside change
  std::array<int64_t, 2> last{};
  bool is_first = true;
  const auto visit = [&](int64_t u, int64_t v) {
    if (!is_first && u != last[0]) {
      const double x = (static_cast<double>(u < last[0] ? u : u - 1) + 0.5) / kScale - 0.5;
      if (std::floor(x) == x && x >= 0 && x <= static_cast<double>(width - 1)) {
        const double y = (static_cast<double>(std::min(v, last[1])) + 0.5) / kScale - 0.5;
        const double row = std::ceil(std::clamp(y, 0.0, static_cast<double>(height)));
        changes.push_back(static_cast<int64_t>(x) * height + static_cast<int64_t>(row));
      }
    }
    last = {u, v};
    is_first = false;
  };
  for (std::size_t i = 0; i < count; ++i) {
    auto [xs, ys] = fine[i];
    auto [xe, ye] = fine[(i + 1) % count];
    const int64_t dx = std::abs(xe - xs), dy = std::abs(ye - ys), length = std::max(dx, dy);
    if ((points += length + 1) > kMostPoints)
      throw DataError(place +
                      ": an outline of more than 10 million pixels, expected a shorter one");
    const bool is_flipped = (dx >= dy && xs > xe) || (dx < dy && ys > ye);
    if (is_flipped) {
      std::swap(xs, xe);
      std::swap(ys, ye);
    }
    const double slope = length == 0 ? 0
                         : dx >= dy  ? static_cast<double>(ye - ys) / static_cast<double>(dx)
                                     : static_cast<double>(xe - xs) / static_cast<double>(dy);
    for (int64_t d = 0; d <= length; ++d) {
      const int64_t t = is_flipped ? length - d : d;
      const auto across = [&](int64_t from) {
        return static_cast<int64_t>(static_cast<double>(from) + slope * static_cast<double>(t) +
                                    0.5);
      };
      dx >= dy ? visit(t + xs, across(ys)) : visit(across(xs), t + ys);
    }
  }
  changes.push_back(height * width);
  std::ranges::sort(changes);
  CocoRle rle{height, width, {}};
  int64_t before = 0;
  for (const int64_t change :
       changes) {  // runs of no pixels change nothing in for_spans() and text()
    rle.counts.push_back(static_cast<uint32_t>(change - before));
    before = change;
  }
  return rle;
}

}  // namespace cytra::io
