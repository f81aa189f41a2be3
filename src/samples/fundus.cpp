#include "samples/fundus.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/own_files.h"
#include "base/rng.h"
#include "io/csv.h"

namespace cytra::samples {
namespace {

constexpr double kTurn = 6.283185307179586;
constexpr std::array<double, 3> kColours{1, 0.45, 0.16};  // a retina has them, for red = 1
constexpr double kEdge = 0.8;  // pixels of the outline's slope, to both sides

/// A vessel: a walk from the optic disc outwards, in units of the radius.
struct Walk {
  std::vector<std::array<double, 3>> steps;  // y, x, half width
};

std::vector<Walk> draw_vessels(double y, double x, Rng& rng) {
  std::vector<Walk> walks;
  for (int i = 0; i < 10; ++i) {
    Walk walk;
    double angle = kTurn * (i + rng.uniform()) / 10, bend = rng.uniform(-1.5, 1.5);
    double py = y, px = x, width = rng.uniform(0.012, 0.022);
    while (py * py + px * px < 1.1 && width > 0.003) {
      walk.steps.push_back({py, px, width});
      py += 0.01 * std::sin(angle);
      px += 0.01 * std::cos(angle);
      angle += 0.01 * bend + 0.03 * rng.normal();
      width *= 0.992;
    }
    walks.push_back(std::move(walk));
  }
  return walks;
}

/// Centre, axes and turn of the disc, and where a pixel lies in it.
struct Ellipse {
  double y, x, major, minor, cosine, sine;
  std::array<double, 2> inner(double py, double px) const {  // y, x in units of the radius
    const double dy = py - y, dx = px - x;
    const double u = (cosine * dx + sine * dy) / major, v = (cosine * dy - sine * dx) / minor;
    return {sine * u + cosine * v, cosine * u - sine * v};
  }
  std::array<double, 2> outer(double iy, double ix) const {
    const double u = (cosine * ix + sine * iy) * major, v = (cosine * iy - sine * ix) * minor;
    return {y + sine * u + cosine * v, x + cosine * u - sine * v};
  }
};

/// How much of each pixel is a vessel, 0 to 1.
std::vector<float> paint(const std::vector<Walk>& walks,
                         const Ellipse& ellipse,
                         int64_t height,
                         int64_t width) {
  std::vector<float> painted(static_cast<std::size_t>(height * width));
  for (const Walk& walk : walks) {
    for (const auto& [iy, ix, half] : walk.steps) {
      const auto [cy, cx] = ellipse.outer(iy, ix);
      const double radius = std::max(0.5, half * ellipse.minor);
      const auto reach = static_cast<int64_t>(std::ceil(radius + 1));
      const int64_t my = std::llround(cy), mx = std::llround(cx);
      for (int64_t y = std::max<int64_t>(0, my - reach); y <= std::min(height - 1, my + reach);
           ++y) {
        for (int64_t x = std::max<int64_t>(0, mx - reach); x <= std::min(width - 1, mx + reach);
             ++x) {
          const double distance =
              std::hypot(static_cast<double>(y) - cy, static_cast<double>(x) - cx);
          float& value = painted[static_cast<std::size_t>(y * width + x)];
          value =
              std::max(value, static_cast<float>(std::clamp(radius + 0.5 - distance, 0.0, 1.0)));
        }
      }
    }
  }
  return painted;
}

io::Image plane(int64_t channels, int64_t height, int64_t width) {
  io::Image image;
  image.shape = {channels, 1, height, width};
  image.pixels.resize(image.bytes());
  return image;
}

void check_fundus(const FundusOptions& options) {
  const auto within = [](const char* name, double value, double low, double high) {
    if (value >= low && value <= high) return;
    throw ConfigError("samples: {} is {}, expected {} to {}", name, value, low, high);
  };
  within("height", static_cast<double>(options.height), 32, 16384);
  within("width", static_cast<double>(options.width), 32, 16384);
  within("radius", options.radius, 0.05, 2);
  within("shift", options.shift, 0, 1);
  within("exposure", options.exposure, 0, 1);
  within("noise", options.noise, 0, 1);
  within("uneven", options.uneven, 0, 0.95);
  within("axes_ratio", options.axes_ratio, 0.2, 1);
  within("bars", options.bars, 0, 0.45);
}

}  // namespace

FundusSample generate_fundus(const FundusOptions& options, uint64_t seed, uint64_t index) {
  check_fundus(options);
  Rng rng(seed, 1, index);
  const int64_t h = options.height, w = options.width;
  const auto side = static_cast<double>(std::min(h, w));
  FundusSample sample;
  const double radius = options.radius * side, shift = options.shift * side;
  sample.y = static_cast<double>(h - 1) / 2 + shift * rng.uniform(-1, 1);
  sample.x = static_cast<double>(w - 1) / 2 + shift * rng.uniform(-1, 1);
  sample.major = radius / std::sqrt(options.axes_ratio);
  sample.minor = radius * std::sqrt(options.axes_ratio);
  sample.angle = rng.uniform(0, kTurn / 2);
  const Ellipse ellipse{sample.y,
                        sample.x,
                        sample.major,
                        sample.minor,
                        std::cos(sample.angle),
                        std::sin(sample.angle)};
  const double nose = rng.uniform() < 0.5 ? -1 : 1;  // the optic disc is on the nose's side
  const double oy = rng.uniform(-0.15, 0.15), ox = 0.4 * nose;
  const double my = rng.uniform(-0.08, 0.08), mx = -0.15 * nose;
  const std::vector<float> vessels = paint(draw_vessels(oy, ox, rng), ellipse, h, w);
  const double light_y = rng.uniform(-0.4, 0.4), light_x = rng.uniform(-0.4, 0.4);
  const double bar = 2 * options.bars * sample.minor;
  const double top = sample.y - sample.minor + bar, bottom = sample.y + sample.minor - bar;

  sample.image = plane(3, h, w);
  sample.vessels = plane(1, h, w);
  sample.image.channel_names = {"red", "green", "blue"};
  const auto count = static_cast<std::size_t>(h * w);
  for (int64_t y = 0; y < h; ++y) {
    for (int64_t x = 0; x < w; ++x) {
      const auto i = static_cast<std::size_t>(y * w + x);
      const double py = static_cast<double>(y), px = static_cast<double>(x);
      const auto [iy, ix] = ellipse.inner(py, px);
      const double rho = std::hypot(iy, ix);
      // Distance from the outline along the way to the centre.
      const double depth =
          rho == 0 ? sample.minor : std::hypot(py - sample.y, px - sample.x) * (1 / rho - 1);
      double lit = std::clamp(0.5 + depth / (2 * kEdge), 0.0, 1.0);
      if (bar > 0) lit = py < top || py > bottom ? 0 : lit;
      const double far = std::min(1.0, std::hypot(iy - light_y, ix - light_x) / 1.4);
      const double fovea = std::exp(-((iy - my) * (iy - my) + (ix - mx) * (ix - mx)) / 0.02);
      const double papilla = std::hypot(iy - oy, ix - ox) < 0.14 ? 1 : 0;
      const bool is_letter = options.has_label && y > h / 40 && y < h / 14 && x > w / 40 &&
                             x < w / 6 && (x * 80 / w) % 2 == 0;
      for (std::size_t c = 0; c < 3; ++c) {
        const double dark = c == 0 ? 0.25 : 0.6;  // vessels and fovea show most in green
        double value = kColours[c] * (1 - options.uneven * far * far) * (1 - 0.5 * dark * fovea) *
                       (1 - dark * static_cast<double>(vessels[i]));
        value += papilla * (c == 0 ? 0.25 : 0.4);
        value = is_letter ? 1 : options.exposure * lit * value;
        value += options.noise * rng.normal();
        sample.image.pixels[c * count + i] =
            static_cast<unsigned char>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
      }
      sample.vessels.pixels[i] = lit > 0.5 && vessels[i] >= 0.5F && papilla == 0 ? 1 : 0;
    }
  }
  return sample;
}

FundusOptions varied_fundus(uint64_t seed, uint64_t index) {
  Rng rng(seed, 2, index);
  FundusOptions options;
  options.height = 240 + static_cast<int64_t>(rng.below(6)) * 60;
  options.width = options.height + static_cast<int64_t>(rng.below(4)) * 60;
  options.radius = rng.uniform(0.36, 0.47);
  options.exposure = rng.uniform(0.12, 0.85);
  options.noise = rng.uniform(0, 0.12) * options.exposure;
  options.uneven = rng.uniform(0, 0.6);
  switch (rng.below(5)) {
    case 0:  // cut off by the image at the top and bottom
      options.radius = rng.uniform(0.5, 0.58);
      options.width = options.height * 4 / 3;
      break;
    case 1:
      options.bars = rng.uniform(0.04, 0.12);
      break;
    case 2:
      options.axes_ratio = rng.uniform(0.85, 0.97);
      break;
    case 3:
      options.has_label = true;
      break;
    default:
      break;
  }
  return options;
}

void write_fundus_dataset(
    const std::string& folder, int64_t train, int64_t valid, int64_t test, uint64_t seed) {
  for (const char* table : {"/train.csv", "/valid.csv", "/test.csv"})  // no set of ours has them
    if (!path_exists(folder + "/images")) expect_replaceable(folder + table);
  make_folders(folder + "/images");
  uint64_t index = 0;
  for (const auto& [split, count] : {std::pair("train", train), {"valid", valid}, {"test", test}}) {
    std::vector<std::vector<std::string>> rows;
    for (int64_t i = 0; i < count; ++i, ++index) {
      const FundusSample sample = generate_fundus(varied_fundus(seed, index), seed, index);
      const std::string stem = fmt::format("images/{}_{:04}_", split, i);
      io::write_png(folder + "/" + stem + "raw.png", sample.image);
      io::write_png(folder + "/" + stem + "seg.png", sample.vessels);
      rows.push_back({stem + "raw.png", stem + "seg.png"});
      for (const double number : {sample.y, sample.x, sample.major, sample.minor, sample.angle})
        rows.back().push_back(io::cell_of(number));
    }
    io::write_table(
        folder + "/" + split + ".csv", {"raw", "seg", "y", "x", "major", "minor", "angle"}, rows);
  }
}

}  // namespace cytra::samples
