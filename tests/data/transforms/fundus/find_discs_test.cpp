#include "data/transforms/fundus/find_discs.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "data/sample/image_tensor.h"
#include "io/reader.h"
#include "samples/fundus.h"

namespace cytra::data::fundus {
namespace {

at::Tensor fundus_tensor(const samples::FundusSample& sample) {
  return to_tensor(sample.image, 2, "generated").unsqueeze(0);
}

struct Errors {
  double centre, radius;  // share of the true radius
};

Errors errors_of(const Disc& disc, const samples::FundusSample& truth) {
  const double radius = std::sqrt(truth.major * truth.minor);
  return {std::hypot(disc.y - truth.y, disc.x - truth.x) / radius,
          std::abs(disc.radius() - radius) / radius};
}

struct Varied {
  samples::FundusSample truth;
  Disc disc;
};

/// Found once for all tests.
const std::vector<Varied>& varied() {
  static const std::vector<Varied> all = [] {
    std::vector<Varied> made;
    for (uint64_t i = 0; i < 100; ++i) {
      const auto sample = samples::generate_fundus(samples::varied_fundus(3, i), 3, i);
      made.push_back({sample, find_discs(fundus_tensor(sample), {})[0]});
    }
    return made;
  }();
  return all;
}

TEST(FundusDisc, IsFoundInNoisyCutDarkAndSqueezedRetinas) {
  for (std::size_t i = 0; i < varied().size(); ++i) {
    const auto& [truth, disc] = varied()[i];
    ASSERT_TRUE(disc.is_found()) << i << ": " << disc.problem();
    EXPECT_LT(errors_of(disc, truth).centre, 0.002) << i;
    EXPECT_LT(errors_of(disc, truth).radius, 0.002) << i;
    EXPECT_NEAR(disc.minor / disc.major, truth.minor / truth.major, 0.01) << i;
  }
}

nlohmann::json opencv() {
  return nlohmann::json::parse(
      read_file(std::string(CYTRA_SOURCE_DIR) + "/tests/golden/fundus.json"));
}

Errors difference(const Disc& disc, const nlohmann::json& other) {
  samples::FundusSample truth;
  truth.y = other["y"];
  truth.x = other["x"];
  truth.major = other["major"];
  truth.minor = other["minor"];
  return errors_of(disc, truth);
}

TEST(FundusDisc, IsThatOfOpenCv) {
  const nlohmann::json golden = opencv();
  ASSERT_GE(golden["discs"].size(), 50U);
  for (const auto& other : golden["discs"]) {
    const auto i = other["index"].get<std::size_t>();
    const Errors errors = difference(varied()[i].disc, other);
    EXPECT_LT(errors.centre, 0.005) << i;
    // OpenCV's contour goes through pixels' centres: up to one of 100 pixels' radius too far out.
    EXPECT_LT(errors.radius, 0.012) << i;
  }
}

TEST(FundusDisc, OfARealRetinaIsThatOfOpenCv) {
  const char* folder = std::getenv("CYTRA_REALDATA");
  const std::string path =
      (folder != nullptr ? std::string(folder)
                         : std::string(CYTRA_SOURCE_DIR) + "/../shared/realdata") +
      "/skimage/retina.jpg";
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " is not there; name its folder with CYTRA_REALDATA";
  const at::Tensor image = to_tensor(io::read_image(path), 2, path).unsqueeze(0);
  const Disc disc = find_discs(image, {})[0];
  ASSERT_TRUE(disc.is_found()) << disc.problem();
  const Errors errors = difference(disc, opencv()["retina"]);
  EXPECT_LT(errors.centre, 0.005);
  EXPECT_LT(errors.radius, 0.005);
}

TEST(FundusDisc, OfALargeImageIsAsExact) {
  for (const int64_t height : {700, 1100, 1500}) {  // blocks of 2, 4 and 4 pixels
    samples::FundusOptions options;
    options.height = height;
    options.width = height * 4 / 3;
    const samples::FundusSample sample = samples::generate_fundus(options, 1, 0);
    const Disc disc = find_discs(fundus_tensor(sample), {})[0];
    ASSERT_TRUE(disc.is_found()) << disc.problem();
    EXPECT_LT(errors_of(disc, sample).centre, 0.001) << height;
    EXPECT_LT(errors_of(disc, sample).radius, 0.001) << height;
  }
}

TEST(FundusDisc, KnowsWhatBarsCoverOfIt) {
  samples::FundusOptions options;
  options.bars = 0.1;
  options.noise = 0;
  const samples::FundusSample sample = samples::generate_fundus(options, 1, 0);
  const Disc disc = find_discs(fundus_tensor(sample), {})[0];
  ASSERT_TRUE(disc.is_found()) << disc.problem();
  const double bar = 0.2 * sample.minor;
  EXPECT_NEAR(disc.top, sample.y - sample.minor + bar, 2);
  EXPECT_NEAR(disc.bottom, sample.y + sample.minor - bar, 2);
  EXPECT_NEAR(disc.left, sample.x - sample.major, 1);
  EXPECT_NEAR(disc.right, sample.x + sample.major, 1);
}

TEST(FundusDisc, IsTheSameInABatchAndInAnyUnits) {
  const auto one = samples::generate_fundus({}, 5, 0), two = samples::generate_fundus({}, 5, 1);
  const at::Tensor a = fundus_tensor(one), b = fundus_tensor(two);
  const std::vector<Disc> both = find_discs(at::cat({a, b}), {});
  const Disc alone = find_discs(b, {})[0], scaled = find_discs(b.to(at::kFloat) / 255, {})[0];
  EXPECT_NEAR(both[1].x, alone.x, 0.02);
  EXPECT_NEAR(both[1].major, alone.major, 0.02);
  EXPECT_NEAR(scaled.x, alone.x, 0.02);
  EXPECT_NEAR(scaled.major, alone.major, 0.02);
  const Disc again = find_discs(b, {})[0];
  EXPECT_EQ(again.x, alone.x);
  EXPECT_EQ(again.inliers, alone.inliers);
}

TEST(FundusDisc, OfOtherImagesIsANamedFailure) {
  const auto options = at::TensorOptions(at::kFloat);
  const Disc black = find_discs(at::zeros({1, 3, 200, 300}, options), {})[0];
  EXPECT_EQ(black.state, DiscState::too_dark);
  EXPECT_NE(black.problem().find("too dark"), std::string::npos);
  at::manual_seed(1);
  const Disc noise = find_discs(at::rand({1, 3, 200, 300}, options), {})[0];
  EXPECT_FALSE(noise.is_found());
  at::Tensor half = at::zeros({1, 3, 200, 300}, options);
  half.slice(3, 150) = 1;
  const Disc few = find_discs(half, {})[0];
  EXPECT_EQ(few.state, DiscState::few_edges) << name_of(few.state);
  at::Tensor square = at::zeros({1, 3, 300, 300}, options);
  square.slice(2, 50, 250).slice(3, 50, 250) = 1;
  const Disc box = find_discs(square, {})[0];
  EXPECT_EQ(box.state, DiscState::few_inliers) << name_of(box.state);
  EXPECT_NE(box.problem().find("expected 30 %"), std::string::npos) << box.problem();
  // A small disc beside the limit of the radius.
  samples::FundusOptions small;
  small.radius = 0.13;
  EXPECT_EQ(find_discs(fundus_tensor(samples::generate_fundus(small, 1, 0)), {})[0].state,
            DiscState::few_inliers);
}

}  // namespace
}  // namespace cytra::data::fundus
