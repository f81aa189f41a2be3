#include "samples/generate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <set>

#include "io/csv.h"
#include "tests/io/fixture.h"

namespace cytra::samples {
namespace {

using io::Dtype;
using io::Image;

std::vector<uint16_t> values_of(const Image& image) {
  std::vector<uint16_t> values(static_cast<std::size_t>(image.count()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (image.dtype == Dtype::u8) {
      values[i] = image.pixels[i];
    } else {
      std::memcpy(&values[i], image.pixels.data() + 2 * i, 2);
    }
  }
  return values;
}

TEST(Generate, IsAFunctionOfItsArguments) {
  NucleiOptions options;
  options.size = 64;
  const NucleiSample a = generate_nuclei(options, 3, 5), b = generate_nuclei(options, 3, 5);
  EXPECT_TRUE(a.image.pixels == b.image.pixels && a.instances.pixels == b.instances.pixels &&
              a.stain.pixels == b.stain.pixels);
  EXPECT_FALSE(a.image.pixels == generate_nuclei(options, 3, 6).image.pixels);
  EXPECT_FALSE(a.image.pixels == generate_nuclei(options, 4, 5).image.pixels);
}

TEST(Generate, ShapesAndLabels) {
  for (const int64_t dims : {2, 3}) {
    NucleiOptions options;
    options.spatial_dims = dims;
    options.size = 96;
    options.depth = 16;
    const NucleiSample sample = generate_nuclei(options, 0, 0);
    const std::array<int64_t, 4> shape = {1, dims == 3 ? 16 : 1, 96, 96};
    for (const Image* image : {&sample.image, &sample.instances, &sample.semantic, &sample.stain}) {
      EXPECT_EQ(image->shape, shape);
      EXPECT_EQ(image->pixels.size(), image->bytes());
      EXPECT_EQ(image->dtype, image == &sample.semantic ? Dtype::u8 : Dtype::u16);
      EXPECT_EQ(image->geometry.spacing_um[2], 0.25);
    }
    const auto labels = values_of(sample.instances), mask = values_of(sample.semantic);
    const std::set<uint16_t> ids(labels.begin(), labels.end());
    EXPECT_GE(ids.size(), 4U);
    EXPECT_EQ(*ids.rbegin(), ids.size() - 1);  // 0..n without gaps
    double covered = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      ASSERT_EQ(mask[i], labels[i] > 0);
      covered += mask[i];
    }
    covered /= static_cast<double>(mask.size());
    EXPECT_GT(covered, 0.04);
    EXPECT_LT(covered, 0.35);
  }
}

/// Dice of the best possible and of Otsu's threshold over one image.
std::pair<double, double> threshold_dice(const NucleiSample& sample) {
  const auto image = values_of(sample.image), mask = values_of(sample.semantic);
  const double n = static_cast<double>(image.size());
  std::vector<double> all(65536), inside(65536);
  for (std::size_t i = 0; i < image.size(); ++i) {
    ++all[image[i]];
    inside[image[i]] += mask[i];
  }
  double total = 0, truth = 0, best = 0, best_variance = -1, otsu = 0;
  for (std::size_t v = 0; v < all.size(); ++v) {
    total += all[v] * static_cast<double>(v);
    truth += inside[v];
  }
  double below = 0, below_sum = 0, below_inside = 0;
  for (std::size_t v = 0; v + 1 < all.size(); ++v) {
    below += all[v];
    below_sum += all[v] * static_cast<double>(v);
    below_inside += inside[v];
    if (below == 0 || below == n) continue;
    const double dice = 2 * (truth - below_inside) / (truth + n - below);
    const double difference = below_sum / below - (total - below_sum) / (n - below);
    const double variance = below * (n - below) * difference * difference;
    best = std::max(best, dice);
    if (variance > best_variance) {
      best_variance = variance;
      otsu = dice;
    }
  }
  return {best, otsu};
}

TEST(Generate, IsNotSolvedByAThreshold) {
  double best = 0, otsu = 0;
  for (uint64_t i = 0; i < 8; ++i) {
    const auto [best_of_one, otsu_of_one] = threshold_dice(generate_nuclei({}, 0, i));
    best += best_of_one / 8;
    otsu += otsu_of_one / 8;
  }
  EXPECT_GT(best, 0.85);
  EXPECT_LT(best, 0.94);
  EXPECT_GT(otsu, 0.7);
  EXPECT_LT(otsu, 0.9);
}

TEST(Generate, FewerPhotonsAreNoisier) {
  const auto noise =
      [](double photons) {  // of neighbours, against the mean above the camera's offset
        NucleiOptions options;
        options.photons = photons;
        const auto values = values_of(generate_nuclei(options, 0, 0).image);
        double square = 0, sum = 0;
        for (std::size_t i = 1; i < values.size(); ++i) {
          square += std::pow(static_cast<double>(values[i]) - values[i - 1], 2);
          sum += values[i] - 100.0;
        }
        return std::sqrt(square * static_cast<double>(values.size())) / sum;
      };
  EXPECT_GT(noise(10), 2 * noise(100));
}

TEST(Generate, RefusesOptionsOutOfRange) {
  const auto message = [](auto change) {
    NucleiOptions options;
    change(options);
    return message_of<ConfigError>([&] { generate_nuclei(options, 0, 0); });
  };
  EXPECT_EQ(message([](auto& o) { o.size = 8; }), "samples: size is 8, expected 16 to 16384");
  EXPECT_NE(message([](auto& o) { o.spatial_dims = 4; }), "");
  EXPECT_NE(message([](auto& o) { o.photons = std::nan(""); }), "");
  EXPECT_NE(message([](auto& o) { o.count = -1; }), "");
  EXPECT_NE(message([](auto& o) { o.uneven = 1.5; }), "");
  EXPECT_EQ(message([](auto& o) { o.size = 16, o.radius = 200, o.count = 5; }), "");
}

TEST(Generate, WritesADataSet) {
  const io::Folder folder;
  NucleiOptions options;
  options.size = 32;
  write_dataset(folder / "new/set", options, 2, 1, 0, 7);
  const io::Table train = io::read_table(folder / "new/set/train.csv");
  EXPECT_EQ(train.columns, (std::vector<std::string>{"raw", "seg", "instances", "stain"}));
  ASSERT_EQ(train.rows.size(), 2U);
  EXPECT_EQ(io::read_table(folder / "new/set/valid.csv").rows.size(), 1U);
  EXPECT_EQ(io::read_table(folder / "new/set/test.csv").rows.size(), 0U);
  const NucleiSample second = generate_nuclei(options, 7, 1);
  const Image raw = io::read_image(folder / ("new/set/" + train.rows[1][0]));
  EXPECT_TRUE(raw.pixels == second.image.pixels);
  EXPECT_EQ(raw.geometry.spacing_um, second.image.geometry.spacing_um);
  EXPECT_TRUE(io::read_image(folder / ("new/set/" + train.rows[1][1])).pixels ==
              second.semantic.pixels);
}

}  // namespace
}  // namespace cytra::samples
