#include "data/transforms/fundus/view.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "data/sample/image_tensor.h"
#include "samples/fundus.h"
#include "tests/data/make_transform.h"

namespace cytra::data::fundus {
namespace {

Disc squeezed_disc() {
  Disc disc;
  disc.y = 90;
  disc.x = 120;
  disc.major = 80;
  disc.minor = 60;
  disc.angle = 0.4;
  disc.top = disc.left = 0;
  disc.bottom = 199;
  disc.right = 259;
  return disc;
}

/// Values y and x of each pixel: what is read there says where it was read.
at::Tensor fundus_ramp(int64_t height, int64_t width) {
  const at::Tensor y = at::arange(height, at::kFloat).unsqueeze(1).expand({height, width});
  const at::Tensor x = at::arange(width, at::kFloat).expand({height, width});
  return at::stack({y, x}).unsqueeze(0);
}

TEST(FundusView, MakesACircleOfAnEllipse) {
  const Disc disc = squeezed_disc();
  const View view{64, 1};
  const at::Tensor seen = to_view(fundus_ramp(200, 260), {disc}, view, false)[0];
  // Pixels of the view at the rim were on the ellipse.
  for (int step = 0; step < 16; ++step) {
    const double t = 2 * M_PI * step / 16;
    const auto i = std::llround(31.5 + 30 * std::sin(t)), j = std::llround(31.5 + 30 * std::cos(t));
    const double y = seen[0][i][j].item<double>() - disc.y,
                 x = seen[1][i][j].item<double>() - disc.x;
    const double c = std::cos(disc.angle), s = std::sin(disc.angle);
    const double share = std::hypot((c * x + s * y) / disc.major, (c * y - s * x) / disc.minor);
    EXPECT_NEAR(share, std::hypot(i - 31.5, j - 31.5) / 32, 2e-3);
  }
  const at::Tensor pixel = at::tensor({10.0, 40.0, 1.0});
  const at::Tensor source = matrix_of(disc, view).matmul(pixel);
  EXPECT_NEAR(source[0].item<double>(), seen[0][10][40].item<double>(), 1e-3);
  EXPECT_NEAR(source[1].item<double>(), seen[1][10][40].item<double>(), 1e-3);
}

TEST(FundusView, ShrinksByMeansInTheSamePlace) {
  Disc disc = squeezed_disc();
  disc.major = disc.minor = 70;
  const View view{24, 1};  // a pixel of the view is 5.8 of the image
  const at::Tensor seen = to_view(fundus_ramp(200, 260), {disc}, view, false)[0];
  const at::Tensor source = matrix_of(disc, view).matmul(at::tensor({5.0, 17.0, 1.0}));
  EXPECT_NEAR(seen[0][5][17].item<double>(), source[0].item<double>(), 0.02);
  EXPECT_NEAR(seen[1][5][17].item<double>(), source[1].item<double>(), 0.02);
}

/// Of 200 x 259 pixels, so that blocks of 5 are cut off at the border.
TEST(FundusView, OfPixelsIsThatOfTheirValues) {
  Disc disc = squeezed_disc();
  disc.major = disc.minor = 70;
  at::manual_seed(1);
  for (const auto& [type, white] : {std::pair(at::kByte, 256), {at::kUInt16, 65536}}) {
    const at::Tensor values = at::randint(white, {2, 3, 200, 259}, at::kInt);
    const at::Tensor pixels = values.to(type).transpose(2, 3).contiguous().transpose(2, 3);
    for (const int64_t size : {24, 160}) {  // smaller than the disc, and larger
      const auto seen = [&](const at::Tensor& images) {
        return to_view(images, {disc, disc}, View{size, 1.5}, false);
      };
      EXPECT_TRUE(at::allclose(seen(pixels), seen(values.to(at::kFloat)), 1e-6)) << size;
      EXPECT_GT(seen(pixels).max().item<double>(), white / 2.0);
    }
  }
}

TEST(FundusView, OfABatchIsThatOfEachDisc) {
  Disc small = squeezed_disc(), large = squeezed_disc();
  small.major = small.minor = 20;
  large.major = large.minor = 85;
  const View view{32, 0.9};
  const at::Tensor images = at::cat({fundus_ramp(200, 260), fundus_ramp(200, 260) * 2});
  const at::Tensor both = to_view(images, {small, large}, view, false);
  EXPECT_TRUE(at::equal(both[0], to_view(images.narrow(0, 0, 1), {small}, view, false)[0]));
  EXPECT_TRUE(at::equal(both[1], to_view(images.narrow(0, 1, 1), {large}, view, false)[0]));
}

TEST(FundusView, MaskLeavesOutWhatIsCutOff) {
  Disc disc = squeezed_disc();
  disc.major = disc.minor = 60;
  disc.top = 60;
  const View view{120, 1};
  const at::Tensor mask = mask_of({disc}, view, at::kCPU, 0)[0][0];
  EXPECT_EQ(mask[20][60].item<float>(), 0);  // y = 50
  EXPECT_EQ(mask[40][60].item<float>(), 1);
  EXPECT_EQ(mask[5][5].item<float>(), 0);  // outside of the circle
  const double bottom = M_PI * 60 * 60 / 2;
  EXPECT_NEAR(mask.slice(0, 60).sum().item<double>(), bottom, 0.01 * bottom);
}

TEST(FundusView, ContrastIsThatOfOpenCv) {
  const auto golden =
      nlohmann::json::parse(read_file(std::string(CYTRA_SOURCE_DIR) + "/tests/golden/fundus.json"));
  const at::Tensor i = at::arange(128, at::kDouble).unsqueeze(1), j = at::arange(128, at::kDouble);
  const at::Tensor x =
      0.5 + 0.3 * (i * 0.13).sin() * (j * 0.09).cos() + 0.1 * (i * 7 + j * 13).remainder(11) / 11;
  Disc disc;
  disc.y = disc.x = 63.5;
  disc.major = disc.minor = 64;
  disc.bottom = disc.right = 127;
  disc.top = disc.left = -1;
  const View view{128, 1};
  at::Tensor mask = mask_of({disc}, view, at::kCPU);
  mask = ((i - 63.5).square() + (j - 63.5).square()).le(std::pow(64 * 0.99, 2)).to(at::kFloat);
  mask = mask.view({1, 1, 128, 128});
  for (const double sigma : {0.05, 0.2}) {  // as it is, and by pixels of 2 x 2
    const at::Tensor enhanced =
        enhance(x.to(at::kFloat).view({1, 1, 128, 128}), mask, view, sigma)[0][0];
    const auto expected =
        golden["contrast"][sigma == 0.05 ? "0.05" : "0.2"].get<std::vector<double>>();
    for (int64_t k = 0; k < 256; ++k) {
      // The taps end at 3 sigmas, OpenCV's at 4; the result is four times the blur.
      EXPECT_NEAR(enhanced[k / 16 * 8][k % 16 * 8].item<double>(),
                  expected[static_cast<std::size_t>(k)],
                  0.01)
          << sigma << " " << k;
    }
  }
}

TEST(FundusNormalized, PutsImageAndLabelsInOnePlace) {
  const samples::FundusSample generated = samples::generate_fundus({}, 2, 0);
  const auto sample_of = [&] {
    Sample sample;
    sample.id = "retina.png";
    sample.tensors["raw"] = to_tensor(generated.image, 2, "raw");
    sample.tensors["seg"] = to_tensor(generated.vessels, 2, "seg");
    return sample;
  };
  const std::string options =
      "{_target_: FundusNormalized, keys: [raw, seg], mode: [bilinear, nearest], size: 160";
  Rng rng(0);
  Sample sample = sample_of();
  make_transform(options + "}")->apply(sample, rng);
  EXPECT_EQ(sample.tensors["raw"].sizes().vec(), (std::vector<int64_t>{3, 160, 160}));
  EXPECT_EQ(sample.tensors["seg"].sizes().vec(), (std::vector<int64_t>{1, 160, 160}));
  EXPECT_LE(sample.tensors["raw"].max().item<double>(), 1);
  // Vessels are dark, in the enhanced green channel, where the labels say so.
  const at::Tensor green = sample.tensors["raw"][1];
  const at::Tensor vessel = sample.tensors["seg"][0].eq(1);
  EXPECT_GT(vessel.sum().item<int64_t>(), 200);
  EXPECT_LT(green.masked_select(vessel).mean().item<double>(), 0.3);
  Sample appended = sample_of();
  make_transform(options + ", contrast: append}")->apply(appended, rng);
  EXPECT_EQ(appended.tensors["raw"].size(0), 6);
  EXPECT_TRUE(at::equal(appended.tensors["raw"].narrow(0, 3, 3), sample.tensors["raw"]));
  Sample plain = sample_of();
  make_transform(options + ", contrast: none}")->apply(plain, rng);
  EXPECT_GT(plain.tensors["raw"].max().item<double>(), 100);
}

TEST(FundusNormalized, WantsToKnowWhatIsWhite) {
  const samples::FundusSample generated = samples::generate_fundus({}, 2, 0);
  Rng rng(0);
  const auto enhanced = [&](double scale, const std::string& white) {
    Sample sample;
    sample.id = "retina.png";
    sample.tensors["raw"] = to_tensor(generated.image, 2, "raw").to(at::kFloat) * scale;
    make_transform("{_target_: FundusNormalized, keys: [raw], size: 64" + white + "}")
        ->apply(sample, rng);
    return sample.tensors["raw"];
  };
  const at::Tensor expected = enhanced(1, "");
  EXPECT_TRUE(at::allclose(enhanced(1.0 / 255, ", white: 1"), expected, 1e-4, 1e-4));
  EXPECT_THROW(enhanced(1.0 / 255, ""), DataError);
  EXPECT_THROW(enhanced(257, ""), DataError);
  EXPECT_TRUE(at::allclose(enhanced(257, ", white: 65535"), expected, 1e-4, 1e-4));
}

TEST(FundusNormalized, NamesTheImageWithoutARetina) {
  Sample sample;
  sample.id = "black.png";
  sample.tensors["raw"] = at::zeros({3, 64, 64}, at::kByte);
  Rng rng(0);
  const auto transform = make_transform("{_target_: FundusNormalized, keys: [raw]}");
  try {
    transform->apply(sample, rng);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("black.png: 'raw': no retina, too dark"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace cytra::data::fundus
