#include "samples/generate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/own_files.h"
#include "base/rng.h"

namespace cytra::samples {
namespace {

constexpr double kTau = 6.283185307179586;
constexpr double kPlane = 4;                             // pixels between two planes
constexpr double kCoverage2d = 0.2, kCoverage3d = 0.12;  // share of the field that nuclei take
// A scientific CMOS camera: https://www.nature.com/articles/nmeth.2488 describes such noise.
constexpr double kOffset = 100, kCountsPerPhoton = 8, kReadNoise = 1.6;  // counts; counts; photons
constexpr double kStainCounts = 20000;
constexpr std::size_t kHarmonics = 4;  // of a nucleus' outline, from the second on
constexpr double kFarthest = 1.3;      // half axes that an outline can reach

struct Field {
  int64_t depth, size;
  std::vector<float> values;
  Field(int64_t planes, int64_t side)
      : depth(planes), size(side), values(static_cast<std::size_t>(planes * side * side)) {}
};

/// out[i] = sum over the kernel along one axis, whose neighbours are `step` apart; the border
/// repeats.
void blur_axis(Field& field, int64_t length, int64_t step, double sigma) {
  const auto reach = std::min<int64_t>(static_cast<int64_t>(std::ceil(2.5 * sigma)), length - 1);
  if (reach < 1) return;
  std::vector<float> kernel;
  double sum = 0;
  for (int64_t k = -reach; k <= reach; ++k)
    sum += std::exp(-0.5 * static_cast<double>(k * k) / (sigma * sigma));
  for (int64_t k = -reach; k <= reach; ++k) {
    kernel.push_back(
        static_cast<float>(std::exp(-0.5 * static_cast<double>(k * k) / (sigma * sigma)) / sum));
  }
  // The axis is made the slower of two, so that the inner loop runs over neighbours in memory.
  std::vector<float> block(static_cast<std::size_t>((length + 2 * reach) * step));
  const auto total = std::ssize(field.values);
  for (int64_t start = 0; start < total; start += length * step) {
    float* out = field.values.data() + start;
    for (int64_t i = -reach; i < length + reach; ++i) {
      std::copy_n(out + std::clamp<int64_t>(i, 0, length - 1) * step,
                  step,
                  block.data() + (i + reach) * step);
    }
    std::fill_n(out, length * step, 0.0F);
    for (std::size_t k = 0; k < kernel.size(); ++k) {
      const float weight = kernel[k];
      const float* in = block.data() + static_cast<int64_t>(k) * step;
      for (int64_t i = 0; i < length * step; ++i) out[i] += weight * in[i];
    }
  }
}

/// Gaussian with sigma in pixels and planes.
void blur(Field& field, double sigma, double sigma_z) {
  blur_axis(field, field.size, 1, sigma);
  blur_axis(field, field.size, field.size, sigma);
  blur_axis(field, field.depth, field.size * field.size, sigma_z);
}

struct Nucleus {
  double z, y, x;                            // centre; z in planes
  double a, b, c;                            // half axes in pixels, c along z
  double cosine, sine;                       // of the rotation about z
  std::array<double, kHarmonics> even, odd;  // of the outline, by the cosine and sine of k theta
  double brightness;
  struct Spot {
    double z, y, x, strength;  // from the centre, in pixels; < 0: nucleolus, > 0: chromocentre
  };
  std::array<Spot, 4> spots;

  /// 0 in the centre, 1 on the outline; (dz, dy, dx) in pixels from the centre.
  double rho(double dz, double dy, double dx) const {
    const double u = (cosine * dx + sine * dy) / a, v = (cosine * dy - sine * dx) / b, w = dz / c;
    const double flat = std::sqrt(u * u + v * v), distance = std::sqrt(flat * flat + w * w);
    if (distance > kFarthest || flat < 1e-9) return distance;
    const double p = u / flat, q = v / flat;
    double outline = 0, real = p, imaginary = q;  // e^(i k theta)
    for (std::size_t k = 0; k < kHarmonics; ++k) {
      const double turned = real * p - imaginary * q;
      imaginary = real * q + imaginary * p;
      real = turned;
      outline += even[k] * real + odd[k] * imaginary;
    }
    return distance / (1 + outline * flat / distance);
  }
};

Nucleus draw_nucleus(const NucleiOptions& options, Rng& rng) {
  Nucleus nucleus{};
  const double radius = options.radius * std::clamp(1 + 0.18 * rng.normal(), 0.6, 1.5),
               aspect = rng.uniform(0.65, 1);
  nucleus.a = radius / std::sqrt(aspect);
  nucleus.b = radius * std::sqrt(aspect);
  nucleus.c = radius * rng.uniform(0.8, 1);
  const double angle = rng.uniform(0, kTau);
  nucleus.cosine = std::cos(angle);
  nucleus.sine = std::sin(angle);
  for (std::size_t k = 0; k < kHarmonics; ++k) {
    const double amplitude =
        0.06 / static_cast<double>(k + 1) * std::clamp(rng.normal(), -2.0, 2.0);
    const double phase = rng.uniform(0, kTau);
    nucleus.even[k] = amplitude * std::cos(phase);
    nucleus.odd[k] = -amplitude * std::sin(phase);
  }
  nucleus.brightness = rng.uniform(0.3, 1);
  for (Nucleus::Spot& spot : nucleus.spots) {
    const double theta = rng.uniform(0, kTau),
                 from_centre = 0.65 * radius * std::sqrt(rng.uniform());
    spot = {0.4 * radius * rng.uniform(-1, 1),
            from_centre * std::sin(theta),
            from_centre * std::cos(theta),
            rng.uniform() < 0.5 ? -0.45 : 0.35};
  }
  return nucleus;
}

struct Voxel {
  std::size_t index;
  float rho, spots;
};

/// A field that is filled with nuclei one by one.
class Scene {
 public:
  Scene(const NucleiOptions& options, Rng& rng)
      : options_(options),
        rng_(rng),
        depth_(options.spatial_dims == 3 ? options.depth : 1),
        labels(static_cast<std::size_t>(depth_ * options.size * options.size)),
        brightness(depth_, options.size) {
    const int64_t wanted = options.count > 0 ? options.count : by_density();
    for (int64_t attempt = 0; attempt < 30 * wanted && count() < wanted; ++attempt) {
      Nucleus nucleus = draw_nucleus(options, rng);
      const bool is_done = !placed_.empty() && rng.uniform() < 0.3 ? place_touching(nucleus)
                                                                   : place_anywhere(nucleus);
      if (is_done) fill(nucleus);
    }
  }

 private:
  int64_t count() const { return std::ssize(placed_); }

  int64_t by_density() const {
    const double r = options_.radius, side = static_cast<double>(options_.size);
    const bool is_3d = depth_ > 1;
    const double field = side * side * (is_3d ? static_cast<double>(depth_) * kPlane : 1);
    const double nucleus = is_3d ? kTau * 2 / 3 * r * r * r : kTau / 2 * r * r;
    const double count =
        (is_3d ? kCoverage3d : kCoverage2d) * field / nucleus * rng_.uniform(0.7, 1.3);
    return std::clamp<int64_t>(std::llround(count), 1, UINT16_MAX);
  }

  /// Finds the voxels of a nucleus; false when one is taken or too little of it lies within the
  /// field.
  bool fits(const Nucleus& nucleus) {
    voxels_.clear();
    const double reach = kFarthest * nucleus.a;
    const auto range = [](double centre, double width, int64_t length) {
      return std::pair(std::max<int64_t>(0, std::llround(centre - width)),
                       std::min<int64_t>(length - 1, std::llround(centre + width)));
    };
    const auto [z0, z1] = range(nucleus.z, kFarthest * nucleus.c / kPlane, depth_);
    const auto [y0, y1] = range(nucleus.y, reach, options_.size);
    const auto [x0, x1] = range(nucleus.x, reach, options_.size);
    for (int64_t z = z0; z <= z1; ++z) {
      for (int64_t y = y0; y <= y1; ++y) {
        for (int64_t x = x0; x <= x1; ++x) {
          const double dz = kPlane * (static_cast<double>(z) - nucleus.z);
          const double dy = static_cast<double>(y) - nucleus.y,
                       dx = static_cast<double>(x) - nucleus.x;
          const double rho = nucleus.rho(dz, dy, dx);
          if (rho >= 1) continue;
          const auto index = static_cast<std::size_t>((z * options_.size + y) * options_.size + x);
          if (labels[index] != 0) return false;
          voxels_.push_back({index, static_cast<float>(rho), spots_at(nucleus, dz, dy, dx)});
        }
      }
    }
    const double plane = kTau / 2 * nucleus.a * nucleus.b;
    return static_cast<double>(voxels_.size()) >
           0.3 * plane * (depth_ > 1 ? std::max(1.0, 1.2 * nucleus.c / kPlane) : 1);
  }

  static float spots_at(const Nucleus& nucleus, double dz, double dy, double dx) {
    const double width = 0.18 * nucleus.b;
    double sum = 0;
    for (const Nucleus::Spot& spot : nucleus.spots) {
      const double square = (dz - spot.z) * (dz - spot.z) + (dy - spot.y) * (dy - spot.y) +
                            (dx - spot.x) * (dx - spot.x);
      if (square < 9 * width * width)
        sum += spot.strength * std::exp(-0.5 * square / (width * width));
    }
    return static_cast<float>(sum);
  }

  bool place_anywhere(Nucleus& nucleus) {
    const auto side = static_cast<double>(options_.size);
    nucleus.z = depth_ > 1 ? rng_.uniform(0, static_cast<double>(depth_)) : 0;
    nucleus.y = rng_.uniform(-0.3 * options_.radius, side + 0.3 * options_.radius);
    nucleus.x = rng_.uniform(-0.3 * options_.radius, side + 0.3 * options_.radius);
    return fits(nucleus);
  }

  /// Moves away from a neighbour, a quarter of a pixel at a time, until they just touch.
  bool place_touching(Nucleus& nucleus) {
    const Nucleus& neighbour = placed_[rng_.below(placed_.size())];
    const double theta = rng_.uniform(0, kTau), start = 0.6 * (nucleus.b + neighbour.b);
    nucleus.z = neighbour.z;
    for (double distance = start; distance < 1.4 * (nucleus.a + neighbour.a); distance += 0.25) {
      nucleus.y = neighbour.y + distance * std::sin(theta);
      nucleus.x = neighbour.x + distance * std::cos(theta);
      if (fits(nucleus)) return true;
    }
    return false;
  }

  void fill(const Nucleus& nucleus) {
    placed_.push_back(nucleus);
    for (const Voxel& voxel : voxels_) {
      labels[voxel.index] = static_cast<uint16_t>(count());
      // Rounded like a lens, so that the projection of its thickness darkens the edge.
      const double body = 0.6 + 0.4 * std::sqrt(1 - static_cast<double>(voxel.rho * voxel.rho));
      brightness.values[voxel.index] = static_cast<float>(
          nucleus.brightness * body * std::max(0.3, 1 + static_cast<double>(voxel.spots)));
    }
  }

  const NucleiOptions& options_;
  Rng& rng_;
  const int64_t depth_;
  std::vector<Nucleus> placed_;
  std::vector<Voxel> voxels_;

 public:
  std::vector<uint16_t> labels;
  Field brightness;
};

/// Smooth noise of mean 1 for the chromatin's texture.
Field draw_texture(int64_t depth, int64_t size, Rng& rng) {
  Field texture(depth, size);
  for (float& value : texture.values) value = static_cast<float>(rng.uniform(-1, 1));
  const double sigma = 1.6;
  blur(texture, sigma, depth > 1 ? sigma / kPlane : 0);
  // White noise of deviation 1/sqrt(3), averaged over 4 pi sigma^2 pixels.
  const auto scale = static_cast<float>(0.22 * std::sqrt(3.0 * 2 * kTau) * sigma);
  for (float& value : texture.values) value = std::max(0.3F, 1 + scale * value);
  return texture;
}

/// The light over (y, x): brightest near, not in, the centre, falling off to the corners. 1 -
/// uneven..1.
Field draw_light(int64_t size, double uneven, Rng& rng) {
  Field light(1, size);
  const double cy = rng.uniform(0.2, 0.8), cx = rng.uniform(0.2, 0.8);
  const double far = std::pow(std::max(cy, 1 - cy), 2) + std::pow(std::max(cx, 1 - cx), 2);
  for (int64_t y = 0; y < size; ++y) {
    for (int64_t x = 0; x < size; ++x) {
      const double dy = static_cast<double>(y) / static_cast<double>(size) - cy,
                   dx = static_cast<double>(x) / static_cast<double>(size) - cx;
      const double share =
          0.5 - 0.5 * std::cos(kTau / 2 * std::sqrt(std::min(1.0, (dy * dy + dx * dx) / far)));
      light.values[static_cast<std::size_t>(y * size + x)] = static_cast<float>(1 - uneven * share);
    }
  }
  return light;
}

template <class T, class Value>
io::Image make_image(const Field& like, io::Dtype dtype, const char* name, const Value& value_at) {
  io::Image image;
  image.dtype = dtype;
  image.shape = {1, like.depth, like.size, like.size};
  image.geometry.spacing_um = {like.depth > 1 ? 1.0 : 0.0, 0.25, 0.25};
  image.channel_names = {name};
  image.pixels.resize(image.bytes());
  T* pixels = reinterpret_cast<T*>(image.pixels.data());
  for (std::size_t i = 0; i < like.values.size(); ++i) pixels[i] = static_cast<T>(value_at(i));
  return image;
}

/// The cytoplasm: around each nucleus, brighter where nuclei are bright or crowded, thin above
/// them.
Field make_stain(const Field& brightness, double radius, double psf) {
  Field stain = brightness;
  const bool is_3d = stain.depth > 1;
  blur(stain, 0.6 * radius, is_3d ? 0.6 * radius / kPlane : 0);
  for (std::size_t i = 0; i < stain.values.size(); ++i) {
    const float around = stain.values[i] / (stain.values[i] + 0.25F);
    stain.values[i] = around * (brightness.values[i] > 0 ? 0.3F : 1.0F);
  }
  blur(stain, psf, is_3d ? 2 * psf / kPlane : 0);
  return stain;
}

void check(const NucleiOptions& options) {
  const auto within = [](const char* name, double value, double low, double high) {
    if (value >= low && value <= high) return;
    throw ConfigError("samples: {} is {}, expected {} to {}", name, value, low, high);
  };
  within("spatial_dims", static_cast<double>(options.spatial_dims), 2, 3);
  within("size", static_cast<double>(options.size), 16, 16384);
  within("depth", static_cast<double>(options.depth), 2, 4096);
  within("count", static_cast<double>(options.count), 0, UINT16_MAX);
  within("radius", options.radius, 2, 200);
  within("photons", options.photons, 0.1, 5000);
  within("psf_sigma", options.psf_sigma, 0.1, 50);
  within("background", options.background, 0, 1);
  within("uneven", options.uneven, 0, 1);
}

}  // namespace

NucleiSample generate_nuclei(const NucleiOptions& options, uint64_t seed, uint64_t index) {
  check(options);
  Rng rng(seed, 0, index);
  const Scene scene(options, rng);
  const Field& truth = scene.brightness;
  const bool is_3d = truth.depth > 1;
  Field signal = draw_texture(truth.depth, truth.size, rng);
  for (std::size_t i = 0; i < signal.values.size(); ++i) signal.values[i] *= truth.values[i];
  Field haze = signal;
  const double psf = options.psf_sigma, far = 1.5 * options.radius;
  blur(signal, psf, is_3d ? 2 * psf / kPlane : 0);
  blur(haze, far, is_3d ? 2 * far / kPlane : 0);  // light from out of focus
  const Field light = draw_light(truth.size, options.uneven, rng);
  const Field stray = draw_light(truth.size, options.uneven, rng);  // lights the background alone

  NucleiSample sample;
  sample.image = make_image<uint16_t>(truth, io::Dtype::u16, "nuclei", [&](std::size_t i) {
    const std::size_t pixel = i % light.values.size();
    const double ambient =
        options.background * (1 + 2.5 * (1 - static_cast<double>(stray.values[pixel])));
    const double lit = static_cast<double>(light.values[pixel] *
                                           (0.85F * signal.values[i] + 0.25F * haze.values[i])) +
                       ambient;
    const double photons = rng.poisson(options.photons * lit) + kReadNoise * rng.normal();
    return std::clamp(std::round(kOffset + kCountsPerPhoton * photons), 0.0, 65535.0);
  });
  sample.instances = make_image<uint16_t>(
      truth, io::Dtype::u16, "instances", [&](std::size_t i) { return scene.labels[i]; });
  sample.semantic = make_image<uint8_t>(
      truth, io::Dtype::u8, "nuclei", [&](std::size_t i) { return scene.labels[i] > 0; });
  const Field stain = make_stain(truth, options.radius, psf);
  sample.stain = make_image<uint16_t>(truth, io::Dtype::u16, "cytoplasm", [&](std::size_t i) {
    return std::round(kOffset + kStainCounts * static_cast<double>(stain.values[i]));
  });
  return sample;
}

void write_dataset(const std::string& folder,
                   const NucleiOptions& options,
                   int64_t train,
                   int64_t valid,
                   int64_t test,
                   uint64_t seed) {
  check(options);
  for (const char* table : {"/train.csv", "/valid.csv", "/test.csv"})  // of no set of ours
    if (!path_exists(folder + "/images")) expect_replaceable(folder + table);
  make_folders(folder + "/images");
  uint64_t index = 0;
  for (const auto& [split, count] : {std::pair("train", train), {"valid", valid}, {"test", test}}) {
    std::string table = "raw,seg,instances,stain\n";
    for (int64_t i = 0; i < count; ++i, ++index) {
      const NucleiSample sample = generate_nuclei(options, seed, index);
      const std::string stem = fmt::format("images/{}_{:04}_", split, i);
      for (const auto& [name, image] : {std::pair("raw", &sample.image),
                                        {"seg", &sample.semantic},
                                        {"instances", &sample.instances},
                                        {"stain", &sample.stain}}) {
        io::write_ome_tiff(folder + "/" + stem + name + ".ome.tif", *image);
        table += stem + name + (image == &sample.stain ? ".ome.tif\n" : ".ome.tif,");
      }
    }
    write_file(folder + "/" + split + ".csv", table);
  }
}

}  // namespace cytra::samples
