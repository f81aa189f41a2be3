#include "data/survey/survey.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "config/registry.h"
#include "data/datamodules/array_datamodule.h"
#include "tests/support/at_least.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

using data::Histogram;
using data::Split;

void ignore(Split, int64_t, int64_t) {}

std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

bool has(const std::vector<std::string>& lines, const std::string& part) {
  return text_of(lines).find(part) != std::string::npos;
}

TEST(Histogram, KeepsOrderAndWholeNumbers) {
  float before = -INFINITY;
  for (const float value :
       {-3e38F, -1e6F, -1023.F, -2.F, -1.F, -1e-3F, 0.F, 1e-40F, 1.F, 1023.F, 7e4F}) {
    const float binned = Histogram::value_of(Histogram::bin_of(value));
    EXPECT_LE(std::abs(binned - value), std::abs(value) / 500 + 1e-38F) << value;
    EXPECT_GE(binned, before);
    before = binned;
  }
  for (int value = -1023; value <= 1023; ++value) {
    const auto number = static_cast<float>(value);
    EXPECT_EQ(Histogram::value_of(Histogram::bin_of(number)), number);
  }
  EXPECT_EQ(Histogram::bin_of(-0.F), Histogram::bin_of(0.F));
}

TEST(Histogram, PercentilesAsNumpy) {
  const config::Node golden =
      config::load_yaml(std::string(CYTRA_SOURCE_DIR) + "/tests/golden/datasets.json");
  Histogram histogram;
  for (int i = 0; i < 5000; ++i) {
    const int value = i < 7 ? 255 : i * 7919 % 251;
    ++histogram.counts[Histogram::bin_of(static_cast<float>(value))];
  }
  for (const auto& [q, value] : test::at_least(3, golden.at("percentiles").map))
    EXPECT_EQ(histogram.percentile(std::stod(q) / 100), value.as<double>()) << q;
}

TEST(Survey, TellsWhatIsThere) {
  const auto image = [](int64_t seed, int64_t width) {
    return (at::arange(16 * width).reshape({1, 16, width}) * 31 + seed)
        .remainder(997)
        .to(at::kShort);
  };
  const at::Tensor mask = at::arange(16 * 16).reshape({1, 16, 16}).lt(64).to(at::kByte);
  const data::ArrayDatamodule module(
      {{Split::train,
        {{{"raw", image(1, 16)}, {"seg", mask}}, {{"raw", image(2, 16)}, {"seg", mask * 3}}}},
       {Split::valid, {{{"raw", image(3, 16)}, {"seg", mask * 0}}}}});
  const data::Survey survey = data::survey(module, 3, ignore);
  EXPECT_EQ(text_of(survey.problems), "");
  ASSERT_EQ(survey.splits.size(), 2U);  // there is no test
  const data::KeyFacts& raw = survey.splits[0].keys.at("raw");
  EXPECT_EQ(raw.images[1].dtype, "int16");
  EXPECT_EQ(raw.images[1].shape, (std::vector<int64_t>{1, 16, 16}));
  EXPECT_EQ(raw.images[0].min, image(1, 16).min().item<double>());
  EXPECT_NEAR(raw.images[0].mean, image(1, 16).to(at::kDouble).mean().item<double>(), 1e-9);
  EXPECT_TRUE(raw.classes().empty());
  const auto classes = survey.splits[0].keys.at("seg").classes();
  ASSERT_EQ(classes.size(), 3U);
  EXPECT_EQ(classes[0].voxels, 2U * 192);
  EXPECT_EQ(classes[2].value, 3);
  EXPECT_EQ(classes[2].voxels, 64U);
  EXPECT_EQ(classes[2].images, 1U);
}

TEST(Survey, FindsWhatIsWrong) {
  const at::Tensor noise = at::arange(256).reshape({1, 16, 16}).remainder(97).to(at::kFloat) * 0.37;
  const at::Tensor mask = at::zeros({1, 16, 16}, at::kByte);
  const data::ArrayDatamodule module(
      {{Split::train,
        {{{"raw", noise}, {"seg", mask}},
         {{"raw", noise + 1}, {"seg", at::ones({1, 16, 12}, at::kByte)}},
         {{"raw", at::cat({noise, noise})}, {"seg", mask}},
         {{"raw", noise * 0 + 7.5}, {"seg", mask}},
         {{"raw", noise + 1}, {"seg", mask}}}},
       {Split::valid, {{{"raw", noise.clone()}, {"seg", mask}}}},
       {Split::test, {{{"raw", noise + 2}, {"seg", mask}}}}});
  const data::Survey survey = data::survey(module, 2, ignore);
  const auto& problems = survey.problems;
  EXPECT_EQ(problems.size(), 3U) << text_of(problems);
  EXPECT_TRUE(has(problems,
                  "train: train[1]: 'seg' has another size than 'raw' (train[1]): 16x12 voxels, "
                  "expected 16x16"))
      << text_of(problems);
  EXPECT_TRUE(has(problems,
                  "train raw: train[2]: channels 2, most others 1; data.on_error=skip leaves out"))
      << text_of(problems);
  EXPECT_TRUE(has(problems, "train and valid raw: train[0] has the same values as valid[0]"))
      << text_of(problems);
  EXPECT_TRUE(has(survey.notes, "train and train raw: train[1] has the same values as train[4]"));
  EXPECT_TRUE(has(survey.notes, "train raw: train[3]: every value is 7.5"));
}

TEST(Survey, ReadsFilesAndNamesTheBrokenOnes) {
  const test::TmpDir dir;
  const auto write = [&](const std::string& name, int first, double spacing, int64_t depth = 1) {
    io::Image image;
    image.shape = {1, depth, 8, 8};
    for (int64_t i = 0; i < image.count(); ++i)
      image.pixels.push_back(static_cast<unsigned char>((first + i) % 200));
    image.geometry.spacing_um = {1, spacing, spacing};
    io::write_ome_tiff(dir / name, image);
  };
  write("a.tif", 1, 0.5);
  write("b.tif", 2, 0.5);
  write("c.tif", 3, 0.7);
  write("deep.tif", 4, 0.5, 3);
  std::ofstream(dir / "broken.tif") << "no image";
  std::ofstream(dir / "train.csv") << "raw\na.tif\nb.tif\nbroken.tif\nc.tif\ndeep.tif\n";
  std::ofstream(dir / "valid.csv") << "raw\n./a.tif\n";
  std::ofstream(dir / "test.csv") << "raw\nnone1.tif\nnone2.tif\n";
  const auto module = make<data::DataModule>(
      "{_target_: DataframeDatamodule, path: '" + dir.path() +
      "', transforms: {train: [{_target_: LoadImaged, keys: [raw, seg], spatial_dims: 2}]}}");
  int64_t last = 0;
  const data::Survey survey =
      data::survey(*module, 2, [&](Split, int64_t done, int64_t) { last = done; });
  EXPECT_EQ(last, 1);
  const auto& problems = survey.problems;
  EXPECT_EQ(problems.size(), 5U) << text_of(problems);
  EXPECT_TRUE(has(problems, "train raw: " + (dir / "broken.tif") + ": ")) << text_of(problems);
  EXPECT_TRUE(has(problems, "deep.tif: a stack of 3 planes")) << text_of(problems);
  EXPECT_TRUE(has(problems, "test.csv:2: column 'raw': no such image")) << text_of(problems);
  EXPECT_TRUE(has(problems, "test.csv:3")) << text_of(problems);
  EXPECT_TRUE(has(problems, "train and valid raw: " + (dir / "a.tif") + " is in both"))
      << text_of(problems);
  EXPECT_TRUE(has(survey.notes, "c.tif: spacing 1 x 0.7 x 0.7 um, most others 1 x 0.5 x 0.5 um"))
      << text_of(survey.notes);
  EXPECT_EQ(survey.splits[0].keys.at("raw").broken(), 2U);
  // What a training leaves out is no problem of it.
  const auto skips = make<data::DataModule>(
      "{_target_: DataframeDatamodule, on_error: skip, path: '" + dir.path() +
      "', transforms: {train: [{_target_: LoadImaged, keys: [raw, seg], spatial_dims: 2}]}}");
  const data::Survey left_out = data::survey(*skips, 2, ignore);
  EXPECT_FALSE(has(left_out.problems, "broken.tif")) << text_of(left_out.problems);
  EXPECT_TRUE(has(left_out.notes, "train raw: " + (dir / "broken.tif") + ": "))
      << text_of(left_out.notes);
}

TEST(Survey, GreyInColoursIsGreyAndAClassIsNotEmptied) {
  const test::TmpDir dir;
  const auto write = [&](const std::string& name, int64_t channels, bool is_grey, int first) {
    std::filesystem::create_directories((dir / name).substr(0, (dir / name).rfind('/')));
    io::Image image;
    image.shape = {channels, 1, 8, 8};
    for (int64_t i = 0; i < image.count(); ++i)
      image.pixels.push_back(static_cast<unsigned char>(first + (is_grey ? i % 64 : i)));
    io::write_png(dir / name, image);
  };
  const auto problems = [&] {
    const auto module =
        make<data::DataModule>("{_target_: ClassFolderDatamodule, path: '" + dir.path() +
                               "', valid_fraction: 0, class_names: [cat, dog, fox], transforms: "
                               "{train: [{_target_: LoadImaged, keys: raw}]}}");
    return text_of(data::survey(*module, 2, ignore).problems);
  };
  for (int i = 0; i < 4; ++i) {
    write("cat/" + std::to_string(i) + ".png", 1, true, 4 * i);
    write("dog/" + std::to_string(i) + ".png", 3, true, 60 + 4 * i);
    write("fox/" + std::to_string(i) + ".png", 1, true, 120 + 4 * i);
  }
  EXPECT_EQ(problems().find("channels"), std::string::npos) << problems();
  write("dog/0.png", 3, false, 0);
  EXPECT_NE(problems().find("dog/0.png: channels 3, most others 1; data.on_error=skip"),
            std::string::npos)
      << problems();
  for (int i = 1; i < 3; ++i) write("dog/" + std::to_string(i) + ".png", 3, false, 7 * i);
  EXPECT_EQ(problems().find("on_error=skip"), std::string::npos) << problems();
  EXPECT_NE(problems().find("LoadImaged's channel: [0]"), std::string::npos) << problems();
}

}  // namespace
}  // namespace cytra
