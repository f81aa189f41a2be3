// Part of samples/movie.h: all of it, under a name that the `dev` preset compiles with -O3.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/rng.h"
#include "samples/movie.h"

namespace cytra::samples {
namespace {

constexpr double kCellsPerPixel = 1.5e-4, kMoves_s = 2, kRests_s = 1, kSoftEdge = 2;  // pixels
constexpr std::size_t kNoise = (1 << 20) + 7;  // its length divides no frame's

/// The place after a way of `way` from 0, reflected at 0 and `length`.
double reflected(double way, double length) {
  const double turn = std::fmod(way, 2 * length), within = turn < 0 ? turn + 2 * length : turn;
  return within <= length ? within : 2 * length - within;
}

}  // namespace

Movie::Movie(const MovieOptions& options) : options_(options) {
  if (options.width < 16 || options.height < 16 || options.width > 16384 ||
      options.height > 16384 || options.frame_rate < 1 || options.frame_rate > 1000) {
    throw ConfigError(
        "a video of {}x{} pixels and {} frames per second: expected 16 to 16384 pixels, 1 to 1000 "
        "frames",
        options.width,
        options.height,
        options.frame_rate);
  }
  info_.width = options.width;
  info_.height = options.height;
  info_.time_base = {1, options.frame_rate};
  info_.frame_rate = static_cast<double>(options.frame_rate);
  info_.frames = options.frames;
  Rng rng(options.seed);
  const auto width = static_cast<double>(options.width),
             height = static_cast<double>(options.height);
  const auto count = std::max<int64_t>(std::llround(kCellsPerPixel * width * height), 3);
  for (int64_t i = 0; i < count; ++i) {
    const double direction = rng.uniform(0, 6.283185307179586),
                 speed = options.speed * rng.uniform(0.5, 1.5);
    cells_.push_back({rng.uniform(0, width),
                      rng.uniform(0, height),
                      speed * std::cos(direction),
                      speed * std::sin(direction),
                      options.radius * rng.uniform(0.7, 1.3),
                      rng.uniform(90, 200)});
  }
  ground_.resize(static_cast<std::size_t>(options.width * options.height));
  for (int64_t y = 0; y < options.height; ++y) {
    for (int64_t x = 0; x < options.width; ++x) {
      ground_[static_cast<std::size_t>(y * options.width + x)] =
          24.0F + 8.0F * static_cast<float>(x) / static_cast<float>(options.width) +
          8.0F * static_cast<float>(y) / static_cast<float>(options.height);
    }
  }
  noise_.resize(kNoise);
  for (signed char& value : noise_)
    value = static_cast<signed char>(
        std::lround(std::clamp(options.noise * rng.normal(), -100.0, 100.0)));
}

std::vector<Movie::Disc> Movie::discs(int64_t frame) const {
  const double seconds = static_cast<double>(frame) / static_cast<double>(options_.frame_rate),
               round = kMoves_s + kRests_s, rounds = std::floor(seconds / round);
  const double moved = rounds * kMoves_s + std::min(seconds - rounds * round, kMoves_s);
  std::vector<Disc> discs;
  for (const Cell& cell : cells_) {
    discs.push_back({reflected(cell.x + moved * cell.vx, static_cast<double>(options_.width)),
                     reflected(cell.y + moved * cell.vy, static_cast<double>(options_.height)),
                     cell.radius,
                     cell.brightness});
  }
  return discs;
}

bool Movie::read(io::VideoFrame& frame) {
  frame = {};
  if (next_ >= options_.frames) return false;
  const int64_t width = options_.width, height = options_.height;
  std::vector<float> light = ground_;
  for (const Disc& disc : discs(next_)) {
    const double reach = disc.radius + kSoftEdge;
    const auto first = [&](double at) { return std::max<int64_t>(std::llround(at - reach), 0); };
    const auto last = [&](double at, int64_t limit) {
      return std::min<int64_t>(std::llround(at + reach), limit - 1);
    };
    for (int64_t y = first(disc.y); y <= last(disc.y, height); ++y) {
      for (int64_t x = first(disc.x); x <= last(disc.x, width); ++x) {
        const double distance =
            std::hypot(static_cast<double>(x) - disc.x, static_cast<double>(y) - disc.y);
        const double share = std::clamp(0.5 + (disc.radius - distance) / kSoftEdge, 0.0, 1.0);
        float& pixel = light[static_cast<std::size_t>(y * width + x)];
        pixel = std::max(pixel, static_cast<float>(share * disc.brightness));
      }
    }
  }
  frame.rgb.resize(static_cast<std::size_t>(3 * width * height));
  auto at =
      static_cast<std::size_t>(Rng(options_.seed, 1, static_cast<uint64_t>(next_)).below(kNoise));
  for (std::size_t i = 0; i < light.size(); ++i) {
    const float value = std::clamp(light[i] + static_cast<float>(noise_[at]), 0.0F, 255.0F);
    std::fill_n(frame.rgb.data() + 3 * i, 3, static_cast<unsigned char>(value + 0.5F));
    if (++at == kNoise) at = 0;
  }
  frame.number = frame.pts = next_++;
  frame.duration = 1;
  return true;
}

std::vector<unsigned char> Movie::mask(int64_t frame) const {
  std::vector<unsigned char> mask(static_cast<std::size_t>(options_.width * options_.height));
  for (const Disc& disc : discs(frame)) {
    for (int64_t y = 0; y < options_.height; ++y) {
      for (int64_t x = 0; x < options_.width; ++x) {
        const double dx = static_cast<double>(x) - disc.x, dy = static_cast<double>(y) - disc.y;
        if (dx * dx + dy * dy <= disc.radius * disc.radius)
          mask[static_cast<std::size_t>(y * options_.width + x)] = 1;
      }
    }
  }
  return mask;
}

}  // namespace cytra::samples
