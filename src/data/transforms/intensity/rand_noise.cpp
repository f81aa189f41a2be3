// RandGaussianNoised, RandRicianNoised. Source: monai.transforms.{RandGaussianNoised,
// RandRicianNoised}.
#include <cmath>

#include "data/batch_transforms/per_batch.h"
#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

/// Independent normal values. Both values of each Box-Muller pair are used: half the time of
/// Rng::normal().
at::Tensor normal(at::IntArrayRef sizes, double mean, double deviation, Rng& rng) {
  at::Tensor noise = at::empty(sizes, at::kFloat);
  float* values = noise.mutable_data_ptr<float>();
  for (int64_t i = 0; i < noise.numel(); i += 2) {
    const double radius = deviation * std::sqrt(-2 * std::log(1 - rng.uniform()));
    const double angle = 2 * M_PI * rng.uniform();
    values[i] = static_cast<float>(mean + radius * std::cos(angle));
    if (i + 1 < noise.numel()) values[i + 1] = static_cast<float>(mean + radius * std::sin(angle));
  }
  return noise;
}

struct RandGaussianNoised : RandKeyOptions {
  double mean = 0, std = 0.1;
  bool sample_std = true;
  void visit(auto& v) {
    RandKeyOptions::visit(v);
    visit_dtype(v);
    v("mean", mean, "mean of the noise");
    v("std", std, "deviation of the noise", 0, 1e30);
    v("sample_std", sample_std, "draw the deviation from 0..std");
  }
  auto draw(Rng& rng, const at::Tensor& first) const {
    const double deviation = sample_std ? rng.uniform(0, std) : std;
    return [noise = normal(first.sizes(), mean, deviation, rng)](const at::Tensor& image) {
      if (image.sizes() != noise.sizes())
        throw DataError("another shape than the first key, expected one: they share the noise");
      return image + noise;
    };
  }
};
CYTRA_REGISTER(Transform, RandPerKey<RandGaussianNoised>, "RandGaussianNoised");

struct BatchNoise : RandGaussianNoised {
  struct Drawn {
    double deviation;
    Rng::Span values;
    int64_t count;
  };
  Drawn draw_one(Rng& rng, at::IntArrayRef image) const {
    const double deviation = sample_std ? rng.uniform(0, std) : std;
    const int64_t count = c10::multiply_integers(image);
    return {deviation, rng.take(static_cast<uint64_t>(count + count % 2)), count};
  }
  at::Tensor on_batch(const at::Tensor& images,
                      const std::vector<Drawn>& drawn,
                      std::size_t) const {
    const int64_t count = drawn.front().count;
    if (images[0].numel() != count)
      throw DataError("another shape than the first key, expected one: they share the noise");
    std::vector<Rng::Span> spans;
    std::vector<double> deviations;
    for (const Drawn& one : drawn) {
      spans.push_back(one.values);
      deviations.push_back(one.deviation);
    }
    const at::Tensor noise = normal_pairs(spans, count + count % 2, images.device())
                                 .to(at::kFloat)
                                 .narrow(1, 0, count)
                                 .reshape(images.sizes());
    return images + (noise * per_sample(deviations, images) + mean);
  }
};
CYTRA_REGISTER(BatchTransform, PerBatch<BatchNoise>, "RandGaussianNoised");

struct RandRicianNoised : RandKeyOptions {
  std::vector<double> mean{0}, std{1};
  bool channel_wise = false, relative = false, sample_std = true;
  void visit(auto& v) {
    RandKeyOptions::visit(v);
    visit_dtype(v);
    v("mean", mean, "mean of both Gaussians; with channel_wise one per channel, or one");
    v("std", std, "their deviation, likewise");
    v("channel_wise", channel_wise, "each channel by itself");
    v("relative", relative, "std times the image's own deviation");
    v("sample_std", sample_std, "draw the deviation from 0..std");
  }
  void check() const {
    if (mean.empty() || std.empty()) throw ConfigError("mean, std: expected numbers");
    if (!channel_wise && (mean.size() > 1 || std.size() > 1))
      throw ConfigError("mean, std: expected one number each unless channel_wise is true");
  }
  /// Draws the noise; every key gets its own.
  auto draw(Rng& rng, const at::Tensor&) const {
    return [this, &rng](const at::Tensor& image) {
      std::size_t channel = 0;
      return by_channel(image, channel_wise, [&](const at::Tensor& part) {
        double deviation = of_channel(std, channel);
        if (relative) deviation *= part.std().item<float>();
        if (sample_std) deviation = rng.uniform(0, deviation);
        const double center = of_channel(mean, channel++);
        const at::Tensor real = part + normal(part.sizes(), center, deviation, rng);
        const at::Tensor imaginary = normal(part.sizes(), center, deviation, rng);
        return (real * real + imaginary * imaginary).sqrt();
      });
    };
  }

 private:
  static double of_channel(const std::vector<double>& numbers, std::size_t channel) {
    if (numbers.size() > 1 && channel >= numbers.size())
      throw DataError("more channels than mean or std have numbers, expected one per channel");
    return numbers[numbers.size() == 1 ? 0 : channel];
  }
};
CYTRA_REGISTER(Transform, RandPerKey<RandRicianNoised>, "RandRicianNoised");

}  // namespace
}  // namespace cytra::data
