#include "data/transforms/fundus/find_discs.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "data/transforms/fundus/block_means.h"
#include "data/transforms/fundus/conics.h"

namespace cytra::data::fundus {
namespace {

constexpr int64_t kSide = 512;  // of the image that is searched, at most
constexpr int64_t kRays = 512;
constexpr int64_t kLevels = 256;     // of the histogram
constexpr int64_t kCorner = 16;      // a corner is a 16th of the sides
constexpr double kBrightest = 0.03;  // of the pixels
constexpr double kAbove = 0.2;       // of the disc's brightness over the surround's: not surround
constexpr double kNoises = 4;        // deviations of the noise that count as a difference
constexpr int64_t kBefore = 8, kAfter = 6;  // pixels of a ray around its edge that are looked at
constexpr double kBorder = 3;               // pixels from the image's border that are no edge
constexpr double kRim = 0.05;               // of the radius
constexpr double kFullOutline = 0.6;        // of the rays, that an ellipse needs

/// The searched images, (N,1,h,w) float32: the mean of the channels and of blocks of pixels,
/// slightly smoothed.
struct Searched {
  at::Tensor image;
  int64_t block = 1;
  double shift = 0;  // of a block's centre from its first pixel
};

Searched searched(const at::Tensor& images) {
  const int64_t side = std::max(images.size(2), images.size(3));
  Searched small;
  small.block = std::max<int64_t>(1, (side + kSide - 1) / kSide);
  // In a larger block four pixels represent all of them, as most of the time would be spent on
  // reading.
  const int64_t step = small.block < 4 ? 1 : (small.block + 1) / 2;
  if (step > 1) small.block = 2 * step;
  const int64_t pool = small.block / step;
  small.shift = static_cast<double>((pool - 1) * step) / 2;
  const at::Tensor some = images.slice(2, 0, {}, step).slice(3, 0, {}, step);
  const int64_t h = some.size(2) / pool * pool, w = some.size(3) / pool * pool;
  const at::Tensor grey = block_means(some.narrow(2, 0, h).narrow(3, 0, w), pool).mean(1, true);
  small.image = at::avg_pool2d(at::replication_pad2d(grey, {1, 1, 1, 1}), {3, 3}, {1, 1});
  return small;
}

/// The histograms of (N,pixels) in levels from low to high, each (N); values above count as the
/// highest. The result is (N,levels) on the CPU.
at::Tensor histograms_of(const at::Tensor& flat, const at::Tensor& low, const at::Tensor& high) {
  const int64_t count = flat.size(0);
  const at::Tensor step = ((high - low) / kLevels).clamp_min(1e-30).unsqueeze(1);
  const at::Tensor level =
      ((flat - low.unsqueeze(1)) / step).floor().clamp(0, kLevels - 1).to(at::kLong);
  const at::Tensor offset = at::arange(count, level.options()).unsqueeze(1) * kLevels;
  return at::bincount((level + offset).flatten(), {}, count * kLevels)
      .view({count, kLevels})
      .to(at::kCPU, at::kDouble)
      .contiguous();
}

/// The value, (N), below which all pixels except the share kBrightest are: letters and reflections
/// are much brighter than a dark retina.
at::Tensor bright_end(const at::Tensor& flat, const at::Tensor& low, const at::Tensor& high) {
  const at::Tensor shares =
      histograms_of(flat, low, high).cumsum(1) / static_cast<double>(flat.size(1));
  const at::Tensor levels = shares.lt(1 - kBrightest).sum(1).to(at::kFloat) + 1;
  return low + (high - low) * (levels / kLevels).to(low.device());
}

/// Otsu's threshold of each histogram, as a level: values above it belong to the brighter class.
std::vector<int64_t> otsu(const at::Tensor& counts) {
  std::vector<int64_t> levels;
  for (int64_t n = 0; n < counts.size(0); ++n) {
    const double* count = counts.data_ptr<double>() + n * kLevels;
    double all = 0, sum = 0;
    for (int64_t i = 0; i < kLevels; ++i) {
      all += count[i];
      sum += static_cast<double>(i) * count[i];
    }
    double below = 0, sum_below = 0, best = -1;
    int64_t level = 0;
    for (int64_t i = 0; i + 1 < kLevels; ++i) {
      below += count[i];
      sum_below += static_cast<double>(i) * count[i];
      const double above = all - below;
      if (below == 0 || above == 0) continue;
      const double difference = sum_below / below - (sum - sum_below) / above;
      const double between = below * above * difference * difference;
      if (between > best) {
        best = between;
        level = i;
      }
    }
    levels.push_back(level);
  }
  return levels;
}

/// The levels of each image, (N) float32.
struct Levels {
  at::Tensor surround, disc, noise;
};

Levels levels_of(const at::Tensor& image, const at::Tensor& flat) {
  const int64_t h = image.size(2), w = image.size(3);
  const at::Tensor low = flat.amin(1), high = bright_end(flat, low, flat.amax(1));
  const at::Tensor split =
      at::tensor(otsu(histograms_of(flat, low, high)), at::kLong).to(image.device());
  const at::Tensor threshold = low + (high - low) * ((split + 1) / static_cast<double>(kLevels));
  const at::Tensor cut = at::minimum(flat, high.unsqueeze(1));
  const at::Tensor is_bright = cut.ge(threshold.unsqueeze(1)).to(at::kFloat);
  Levels levels;
  levels.disc = (cut * is_bright).sum(1) / is_bright.sum(1).clamp_min(1);
  const int64_t dy = std::max<int64_t>(1, h / kCorner), dx = std::max<int64_t>(1, w / kCorner);
  std::vector<at::Tensor> corners;
  for (const int64_t y : {int64_t{0}, h - dy}) {
    for (const int64_t x : {int64_t{0}, w - dx})
      corners.push_back(image.narrow(2, y, dy).narrow(3, x, dx).mean({1, 2, 3}));
  }
  levels.surround = at::stack(corners).amin(0);
  // The median difference of neighbours measures the noise, not edges. Smoothing over 3 x 3 leaves
  // a third of the noise, and neighbours share two thirds of their pixels.
  const at::Tensor jumps = (image.narrow(3, 1, w - 1) - image.narrow(3, 0, w - 1)).abs();
  levels.noise = std::get<0>(jumps.flatten(1).median(1)) * 1.4826F;
  return levels;
}

/// Rays from the middle of the bright area: (N,R) distances of their ends, 0 where there is no
/// edge.
struct Rays {
  at::Tensor y, x;          // (N) middle
  at::Tensor sine, cosine;  // (R)
  at::Tensor length;        // (N,R)
};

Rays cast(const at::Tensor& image, const at::Tensor& threshold) {
  const int64_t h = image.size(2), w = image.size(3);
  const auto options = image.options();
  const at::Tensor rows = at::arange(h, options), columns = at::arange(w, options);
  const at::Tensor bright = image.gt(threshold.view({-1, 1, 1, 1})).to(at::kFloat).squeeze(1);
  const at::Tensor mass = bright.sum({1, 2}).clamp_min(1);
  Rays rays;
  rays.y = (bright.sum(2) * rows).sum(1) / mass;
  rays.x = (bright.sum(1) * columns).sum(1) / mass;
  const at::Tensor angle = at::arange(kRays, options) * (2 * M_PI / static_cast<double>(kRays));
  rays.sine = at::sin(angle);
  rays.cosine = at::cos(angle);
  const auto far = static_cast<int64_t>(std::hypot(h, w)) + 1;
  const at::Tensor r = at::arange(far, options);
  const at::Tensor py = rays.y.view({-1, 1, 1}) + rays.sine.view({1, -1, 1}) * r;
  const at::Tensor px = rays.x.view({-1, 1, 1}) + rays.cosine.view({1, -1, 1}) * r;
  const at::Tensor points = at::stack(
      {(px * 2 + 1) / static_cast<double>(w) - 1, (py * 2 + 1) / static_cast<double>(h) - 1}, -1);
  constexpr int64_t kBilinear = 0, kToBorder = 1;
  const at::Tensor values =
      at::grid_sampler_2d(image, points, kBilinear, kToBorder, false).squeeze(1);  // (N,R,far)
  const at::Tensor is_within =
      py.ge(0).logical_and(py.le(h - 1)).logical_and(px.ge(0)).logical_and(px.le(w - 1));
  const at::Tensor is_bright = values.gt(threshold.view({-1, 1, 1})).logical_and(is_within);
  // The outermost bright pixel of the ray, and the pixel of the image's border.
  const at::Tensor last = (is_bright.to(at::kFloat) * r).amax(2);
  const at::Tensor border = (is_within.to(at::kFloat) * r).amax(2);
  // The edge is where the ray passes the mean of the values on its two sides.
  const at::Tensor around = at::arange(-kBefore, kAfter + 1, options.dtype(at::kLong));
  const at::Tensor index = (last.to(at::kLong).unsqueeze(2) + around).clamp(0, far - 1);
  const at::Tensor profile = values.gather(2, index);
  const at::Tensor middle =
      (profile.narrow(2, 0, 4).mean(2) + profile.narrow(2, kBefore + 3, kAfter - 2).mean(2)) / 2;
  const at::Tensor before = profile.narrow(2, 3, 8) - middle.unsqueeze(2);
  const at::Tensor after = profile.narrow(2, 4, 8) - middle.unsqueeze(2);
  const at::Tensor crosses = before.ge(0).logical_and(after.lt(0)).to(at::kFloat);
  const at::Tensor place = at::arange(3 - kBefore, 11 - kBefore, options);
  // The last crossing; its number is the largest among them.
  const at::Tensor number = at::arange(1, 9, options);
  const at::Tensor chosen = (crosses * number).amax(2, true);
  const at::Tensor is_chosen = number.eq(chosen).to(at::kFloat) * crosses;
  const at::Tensor share = before / (before - after).clamp_min(1e-30);
  const at::Tensor shift = ((place + share) * is_chosen).sum(2);
  const at::Tensor is_edge =
      chosen.squeeze(2).gt(0).logical_and(last.gt(kBefore)).logical_and(last.lt(border - kBorder));
  rays.length = (last + shift) * is_edge.to(at::kFloat);
  return rays;
}

struct Ends {
  std::vector<Point> points;
  Point middle{};
};

std::vector<Ends> ends_of(const Rays& rays) {
  const at::Tensor x = rays.x.unsqueeze(1) + rays.length * rays.cosine;
  const at::Tensor y = rays.y.unsqueeze(1) + rays.length * rays.sine;
  // One copy: (N,R+1,3), the middle last.
  const at::Tensor middle = at::stack({rays.x, rays.y, at::ones_like(rays.x)}, 1).unsqueeze(1);
  const at::Tensor all =
      at::cat({at::stack({x, y, rays.length}, 2), middle}, 1).to(at::kCPU).contiguous();
  std::vector<Ends> ends(static_cast<std::size_t>(all.size(0)));
  const float* value = all.data_ptr<float>();
  for (Ends& one : ends) {
    for (int64_t ray = 0; ray < kRays; ++ray, value += 3) {
      if (value[2] > 0) one.points.push_back({value[0], value[1]});
    }
    one.middle = {value[0], value[1]};
    value += 3;
  }
  return ends;
}

/// The first and last place of a profile that is at least half full; -1 where none is.
std::pair<int64_t, int64_t> full_range(const float* full, const float* all, int64_t length) {
  int64_t first = -1, last = -1;
  for (int64_t i = 0; i < length; ++i) {
    if (all[i] == 0 || full[i] < 0.5F * all[i]) continue;
    if (first < 0) first = i;
    last = i;
  }
  return {first, last};
}

/// Fills in the visible part of the discs: rows and columns in which less than half of a disc is
/// bright are taken for a bar over it.
void find_borders(const Searched& small,
                  const at::Tensor& threshold,
                  int64_t height,
                  int64_t width,
                  std::vector<Disc>& discs) {
  const at::Tensor& image = small.image;
  const int64_t h = image.size(2), w = image.size(3);
  const auto side = static_cast<double>(small.block);
  const double half = small.shift;
  std::vector<float> numbers;
  for (const Disc& disc : discs) {
    const double cosine = std::cos(disc.angle), sine = std::sin(disc.angle);
    const double a = std::max(disc.major, 1.0) / side, b = std::max(disc.minor, 1.0) / side;
    for (const double number : {(disc.y - half) / side,
                                (disc.x - half) / side,
                                cosine / a,
                                sine / a,
                                -sine / b,
                                cosine / b})
      numbers.push_back(static_cast<float>(number));
  }
  const at::Tensor m = at::tensor(numbers).view({-1, 6, 1, 1}).to(image.device());
  const at::Tensor dy = at::arange(h, image.options()).unsqueeze(1) - m.select(1, 0);
  const at::Tensor dx = at::arange(w, image.options()) - m.select(1, 1);
  const at::Tensor u = dx * m.select(1, 2) + dy * m.select(1, 3);
  const at::Tensor v = dx * m.select(1, 4) + dy * m.select(1, 5);
  const at::Tensor within = (u * u + v * v).le(1).to(at::kFloat);
  const at::Tensor bright = image.squeeze(1).gt(threshold.view({-1, 1, 1})).to(at::kFloat) * within;
  const at::Tensor profiles =
      at::cat({bright.sum(2), within.sum(2), bright.sum(1), within.sum(1)}, 1)
          .to(at::kCPU)
          .contiguous();
  const float* rows = profiles.data_ptr<float>();
  for (Disc& disc : discs) {
    const auto [top, bottom] = full_range(rows, rows + h, h);
    const auto [left, right] = full_range(rows + 2 * h, rows + 2 * h + w, w);
    rows += 2 * (h + w);
    if (!disc.is_found()) continue;
    const double cosine = std::cos(disc.angle), sine = std::sin(disc.angle);
    const double ey = std::hypot(disc.major * sine, disc.minor * cosine);
    const double ex = std::hypot(disc.major * cosine, disc.minor * sine);
    // The light falls off at the rim, so a narrower dark part is no bar.
    const double rim = kRim * disc.radius();
    const auto border = [&](int64_t found, double outline, double end, bool is_first) {
      const double place = static_cast<double>(found) * side + (is_first ? 0 : side - 1);
      const double limit = is_first ? std::max(outline, 0.0) : std::min(outline, end);
      return found >= 0 && std::abs(place - limit) > rim ? place : limit;
    };
    disc.top = border(top, disc.y - ey, 0, true);
    disc.bottom = border(bottom, disc.y + ey, static_cast<double>(height - 1), false);
    disc.left = border(left, disc.x - ex, 0, true);
    disc.right = border(right, disc.x + ex, static_cast<double>(width - 1), false);
  }
}

}  // namespace

const char* name_of(DiscState state) {
  switch (state) {
    case DiscState::too_dark:
      return "too dark";
    case DiscState::few_edges:
      return "too few edges";
    case DiscState::few_inliers:
      return "too few inliers";
    case DiscState::found:
      break;
  }
  return "found";
}

double Disc::radius() const {
  return std::sqrt(major * minor);
}

std::string Disc::problem() const {
  const double share = rays == 0 ? 0 : 100.0 / static_cast<double>(rays);
  const auto percent = [share](int64_t count) { return static_cast<double>(count) * share; };
  switch (state) {
    case DiscState::too_dark:
      return fmt::format(
          "no retina, too dark: the brightest area is {:.3g} above the corners, noise {:.3g}",
          contrast,
          noise);
    case DiscState::few_edges:
      return fmt::format(
          "no retina, too few edges: {:.0f} % of the rays end at one, expected {:.0f} %",
          percent(edges),
          percent(min_inliers));
    case DiscState::few_inliers:
      return fmt::format(
          "no retina, too few inliers: {:.0f} % of the rays end at one circle or ellipse of the "
          "radii "
          "that are allowed, expected {:.0f} %",
          percent(inliers),
          percent(min_inliers));
    case DiscState::found:
      break;
  }
  return "";
}

std::vector<Disc> find_discs(const at::Tensor& images, const DiscOptions& options) {
  if (images.dim() != 4)
    throw DataError("expected images (N,C,H,W), got {} dimensions", images.dim());
  std::vector<Disc> discs(static_cast<std::size_t>(images.size(0)));
  const int64_t h = images.size(2), w = images.size(3);
  if (discs.empty()) return discs;
  if (std::min(h, w) < 32)
    throw DataError("{} x {} pixels, expected 32 x 32 or more to find a retina", h, w);
  const Searched small = searched(images);
  const at::Tensor flat = small.image.flatten(1);
  const Levels levels = levels_of(small.image, flat);
  const at::Tensor contrast = levels.disc - levels.surround;
  const at::Tensor threshold =
      levels.surround + at::maximum(contrast * kAbove, levels.noise * kNoises / 2);
  const std::vector<Ends> ends = ends_of(cast(small.image, threshold));
  const at::Tensor figures = at::stack({contrast, levels.noise}, 1).to(at::kCPU).contiguous();

  const auto block = static_cast<double>(small.block);
  RansacOptions ransac;
  ransac.seed = static_cast<uint64_t>(options.seed);
  ransac.min_radius = options.min_radius * static_cast<double>(std::min(h, w)) / block;
  ransac.max_radius = options.max_radius * static_cast<double>(std::max(h, w)) / block;
  ransac.min_axes_ratio = options.min_axes_ratio;
  ransac.min_ellipse_points = std::llround(kFullOutline * static_cast<double>(kRays));
  for (std::size_t n = 0; n < discs.size(); ++n) {
    Disc& disc = discs[n];
    const std::vector<Point>& points = ends[n].points;
    disc.rays = kRays;
    disc.min_inliers = std::llround(options.min_inliers * static_cast<double>(kRays));
    disc.edges = std::ssize(points);
    disc.contrast = figures.data_ptr<float>()[2 * n];
    disc.noise = figures.data_ptr<float>()[2 * n + 1];
    if (!(disc.contrast > kNoises * disc.noise)) {
      disc.state = DiscState::too_dark;
      continue;
    }
    if (disc.edges < disc.min_inliers) {
      disc.state = DiscState::few_edges;
      continue;
    }
    const Consensus found = find_conic(points, ends[n].middle, ransac);
    disc.inliers = std::ssize(found.inliers);
    if (disc.inliers < disc.min_inliers) {
      disc.state = DiscState::few_inliers;
      continue;
    }
    // The centre of a block of pixels is between them.
    disc.x = found.ellipse.x * block + small.shift;
    disc.y = found.ellipse.y * block + small.shift;
    disc.major = found.ellipse.major * block;
    disc.minor = found.ellipse.minor * block;
    disc.angle = found.ellipse.angle;
    disc.rms = found.rms * block;
  }
  find_borders(small, threshold, h, w, discs);
  return discs;
}

}  // namespace cytra::data::fundus
