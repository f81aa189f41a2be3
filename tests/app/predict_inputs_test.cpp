#include "app/predict_inputs.h"

#include <filesystem>
#include <fstream>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/node.h"
#include "io/tiff/ome_tiff.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {
using inference::InputTransforms;

InputTransforms transforms(const std::string& load_options = "",
                           const std::string& left_out = "seg") {
  return {config::parse_yaml(
              "{train: [], predict: null, valid: [{_target_: LoadImaged, keys: [raw, "
              "seg]" +
                  load_options + "}, {_target_: AsDiscreted, keys: seg, threshold: 0.5}]}",
              "test"),
          left_out};
}

data::Sample sample_of(const std::string& path) {
  data::Sample sample;
  sample.id = path;
  sample.sources["raw"].path = path;
  return sample;
}

io::Image plane() {
  io::Image image;
  image.shape = {1, 1, 6, 8};
  image.pixels.resize(48, 1);
  return image;
}

std::string write_lapse(const std::string& path, int64_t frames) {
  io::ImageInfo info;
  info.shape = {1, 1, 6, 8};
  info.timepoints = frames;
  io::OmeTiffWriter writer(path, info);
  io::Image image = plane();
  for (int64_t t = 0; t < frames; ++t) {
    image.pixels[0] = static_cast<unsigned char>(t);
    writer.write({}, image, t);
  }
  writer.finish();
  return path;
}

TEST(PredictInputs, ATimeLapseIsAllItsFrames) {
  const test::TmpDir dir;
  const data::Sample sample = sample_of(write_lapse(dir / "a.ome.tif", 4));
  const app::Frames frames = app::frames_of(sample, "raw", transforms());
  ASSERT_EQ(frames.size(), 4U);
  for (int64_t t = 0; t < 4; ++t) {
    data::Sample frame = frames[static_cast<std::size_t>(t)];
    EXPECT_NE(frame.id.find("time point " + std::to_string(t)), std::string::npos);
    EXPECT_EQ(transforms().apply(frame, "raw").rows(0, 6).flatten()[0].item<int64_t>(), t);
  }
}

TEST(PredictInputs, WhatWasChosenIsKept) {
  const test::TmpDir dir;
  data::Sample sample = sample_of(write_lapse(dir / "a.ome.tif", 4));
  for (const char* options :
       {", timepoint: 1", ", time_as_channels: true", ", reader: {_target_: MonaiBioReader, T: 2}"})
    EXPECT_EQ(app::frames_of(sample, "raw", transforms(options)).size(), 1U) << options;
  sample.sources["raw"].selection.timepoint = 2;
  const app::Frames frames = app::frames_of(sample, "raw", transforms());
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].id, sample.id);
  EXPECT_EQ(app::frames_of(sample_of(write_lapse(dir / "b.ome.tif", 1)), "raw", transforms())[0]
                .sources.at("raw")
                .selection.timepoint,
            -1);
}

TEST(PredictInputs, AxesMakeAStackATimeLapse) {
  const test::TmpDir dir;
  io::Image stack = plane();
  stack.shape = {1, 3, 6, 8};
  stack.pixels.resize(stack.bytes(), 1);
  io::write_npy(dir / "a.npy", stack);
  app::InputOptions options;
  options.path = dir / "a.npy";
  options.axes = "TYX";
  const std::vector<data::Sample> samples = app::list_inputs(options, {"raw"}, {});
  EXPECT_EQ(app::frames_of(samples[0], "raw", transforms()).size(), 3U);
  const data::Sample sample = sample_of(options.path);  // as the checkpoint's LoadImaged says
  EXPECT_EQ(app::frames_of(sample, "raw", transforms()).size(), 1U);
  EXPECT_EQ(app::frames_of(sample, "raw", transforms(", axes: TYX")).size(), 3U);
}

TEST(PredictInputs, SpacingIsStatedBeforeOthersNeedIt) {
  const test::TmpDir dir;
  io::Image image = plane();
  image.geometry.affine = {-0.5, 0, 0, 1, 0, 0.25, 0, 2, 0, 0, 1, 3};
  image.geometry.spacing_um = {1000, 250, 500};
  io::write_nifti(dir / "a.nii", image);
  const data::Sample sample = sample_of(dir / "a.nii");
  const inference::ModelInput input = transforms().apply(sample, "raw", {100, 200});
  EXPECT_EQ(input.shown(0, 6).sizes(), (at::IntArrayRef{1, 6, 8}));
  const io::Geometry& geometry = input.sample.geometry();
  EXPECT_EQ(geometry.spacing_um, (std::array<double, 3>{1000, 100, 200}));
  const std::array<double, 12> expected{-0.2, 0, 0, 1, 0, 0.1, 0, 2, 0, 0, 1, 3};
  for (std::size_t i = 0; i < 12; ++i) EXPECT_NEAR(geometry.affine[i], expected[i], 1e-6) << i;
}

TEST(PredictInputs, AreListed) {
  const test::TmpDir dir;
  io::write_ome_tiff(dir / "b.tif", plane());
  io::write_ome_tiff(dir / "a.tif", plane());
  std::ofstream(dir / "m.csv") << "raw\na.tif\nno.tif\nb.tif\n";
  app::InputOptions options;
  std::vector<std::string> left_out;
  const auto list = [&](const std::string& name) {
    options.path = dir / name;
    std::string names;
    for (const data::Sample& sample :
         app::list_inputs(options, {"raw"}, [&](const std::string&id, const std::exception&) {
           left_out.push_back(id);
         }))
      names += std::filesystem::path(sample.sources.at("raw").path).filename().string() + " ";
    return names;
  };
  EXPECT_EQ(list("a.tif"), "a.tif ");
  EXPECT_EQ(list(""), "a.tif b.tif ");
  EXPECT_TRUE(left_out.empty());
  EXPECT_EQ(list("m.csv"), "a.tif b.tif ");
  EXPECT_EQ(left_out, (std::vector<std::string>{"no.tif"}));
  EXPECT_NE(message_of<ConfigError>([&] { list("none.tif"); }).find("none.tif"), std::string::npos);
  options.on_error = "fail";
  EXPECT_NE(message_of<DataError>([&] { list("m.csv"); }).find("m.csv:3"), std::string::npos);
}

}  // namespace
}  // namespace cytra
