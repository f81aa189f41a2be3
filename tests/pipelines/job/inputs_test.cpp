#include "pipelines/job/inputs.h"

#include <filesystem>
#include <fstream>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/node.h"
#include "inference/predictor/input.h"
#include "io/tiff/ome_tiff.h"
#include "pipelines/job/names.h"
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

pipelines::Frames frames_by(const data::Sample& sample,
                            const std::string& image,
                            const inference::InputTransforms& transforms) {
  return pipelines::frames_of(sample, image, {transforms.axes(), transforms.choose_time(), false});
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
  const pipelines::Frames frames = frames_by(sample, "raw", transforms());
  ASSERT_EQ(frames.size(), 4U);
  for (int64_t t = 0; t < 4; ++t) {
    data::Sample frame = frames[static_cast<std::size_t>(t)];
    EXPECT_NE(frame.id.find("time point " + std::to_string(t)), std::string::npos);
    EXPECT_EQ(transforms().apply(frame, "raw").rows(0, 6).flatten()[0].item<int64_t>(), t);
  }
}

// Fields of a plate, series, scenes: only the first was predicted.
TEST(PredictInputs, AFileOfSeveralImagesIsAllOfThem) {
  const std::string plate = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/zarr/v3/plate_0.4.zarr";
  const pipelines::Frames parts = pipelines::frames_of(sample_of(plate), "raw", {});
  ASSERT_EQ(parts.size(), 4U);
  const std::vector<std::string> places{"/A/1/0", "/A/1/1", "/B/1/0", "/B/1/1"};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(parts[i].sources.at("raw").path, plate + places[i]);
    EXPECT_EQ(parts[i].id, plate + places[i]);
  }
  EXPECT_EQ(pipelines::frames_of(sample_of(plate), "raw", {"", false, true}).size(), 1U);
  data::Sample chosen = sample_of(plate);
  chosen.sources["raw"].selection.scene = 2;
  EXPECT_EQ(pipelines::frames_of(chosen, "raw", {}).size(), 1U);
  // Of a set with an image per file, each file gives its own
  const std::string set = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/ome_set/";
  EXPECT_EQ(pipelines::frames_of(sample_of(set + "scenes_1.ome.tif"), "raw", {}).size(), 1U);
}

TEST(PredictInputs, FilesOfAChannelEachAreOneImage) {
  const test::TmpDir dir;
  for (const char* name : {"set/imagesTr", "set/imagesTs"})
    std::filesystem::create_directories(dir / name);
  for (const char* name : {"a_0000", "a_0001", "b_0000", "b_0001"})
    io::write_nifti(dir / ("set/imagesTs/" + std::string(name) + ".nii.gz"), plane());
  std::ofstream(dir / "set/dataset.json")
      << R"({"channel_names": {"0": "x", "1": "y"}, "labels": {"background": 0, "a": 1},
             "file_ending": ".nii.gz", "numTraining": 0})";
  std::ofstream(dir / "set/imagesTr/z_0000.nii.gz") << "";  // tells nnU-Net's layout
  pipelines::InputOptions options;
  pipelines::InputWants wants;
  wants.channels = 2;
  for (const char* path : {"set", "set/", "set/dataset.json", "set/imagesTs"}) {
    options.path = dir / path;
    const auto samples = pipelines::list_inputs(options, {"raw"}, {}, wants);
    ASSERT_EQ(samples.size(), 2U) << path;
    const data::Source& source = samples[1].sources.at("raw");
    EXPECT_EQ(source.path, dir / "set/imagesTs/b_0000.nii.gz");
    EXPECT_EQ(source.more, std::vector<std::string>{dir / "set/imagesTs/b_0001.nii.gz"});
    EXPECT_EQ(pipelines::OutputNames().next(source), "b");
  }
  options.path = dir / "set/imagesTs/a_0000.nii.gz";  // one of them, by itself
  ASSERT_EQ(pipelines::list_inputs(options, {"raw"}, {}, wants).size(), 1U);
  EXPECT_EQ(pipelines::list_inputs(options, {"raw"}, {}, wants)[0].sources.at("raw").more,
            std::vector<std::string>{dir / "set/imagesTs/a_0001.nii.gz"});
  for (const char* name : {"frame_0000.tif", "frame_0001.tif"}) {  // of a film, with two channels
    io::Image frame = plane();
    frame.shape[0] = 2;
    frame.pixels.resize(frame.bytes(), 1);
    io::write_ome_tiff(dir / name, frame);
  }
  options.path = dir / "frame_0000.tif";
  EXPECT_TRUE(
      pipelines::list_inputs(options, {"raw"}, {}, wants)[0].sources.at("raw").more.empty());
  options.path = dir / "set/imagesTs/a_0000.nii.gz";
  wants.channels = 1;
  EXPECT_TRUE(
      pipelines::list_inputs(options, {"raw"}, {}, wants)[0].sources.at("raw").more.empty());
  options.path = dir / "set/imagesTs";
  EXPECT_EQ(pipelines::list_inputs(options, {"raw"}, {}, wants).size(), 4U);
  // Others are images by themselves
  io::write_nifti(dir / "set/imagesTs/c_0000.nii.gz", plane());
  wants.channels = 2;
  EXPECT_EQ(pipelines::list_inputs(options, {"raw"}, {}, wants).size(), 5U);
}

TEST(PredictInputs, WhatWasChosenIsKept) {
  const test::TmpDir dir;
  data::Sample sample = sample_of(write_lapse(dir / "a.ome.tif", 4));
  for (const char* options :
       {", timepoint: 1", ", time_as_channels: true", ", reader: {_target_: MonaiBioReader, T: 2}"})
    EXPECT_EQ(frames_by(sample, "raw", transforms(options)).size(), 1U) << options;
  sample.sources["raw"].selection.timepoint = 2;
  const pipelines::Frames frames = frames_by(sample, "raw", transforms());
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].id, sample.id);
  const pipelines::Frames one =
      frames_by(sample_of(write_lapse(dir / "b.ome.tif", 1)), "raw", transforms());
  EXPECT_EQ(one[0].sources.at("raw").selection.timepoint, -1);
}

TEST(PredictInputs, AxesMakeAStackATimeLapse) {
  const test::TmpDir dir;
  io::Image stack = plane();
  stack.shape = {1, 3, 6, 8};
  stack.pixels.resize(stack.bytes(), 1);
  io::write_npy(dir / "a.npy", stack);
  pipelines::InputOptions options;
  options.path = dir / "a.npy";
  options.axes = "TYX";
  const std::vector<data::Sample> samples = pipelines::list_inputs(options, {"raw"}, {});
  EXPECT_EQ(frames_by(samples[0], "raw", transforms()).size(), 3U);
  const data::Sample sample = sample_of(options.path);  // as the checkpoint's LoadImaged says
  EXPECT_EQ(frames_by(sample, "raw", transforms()).size(), 1U);
  EXPECT_EQ(frames_by(sample, "raw", transforms(", axes: TYX")).size(), 3U);
}

// Detectors and classifiers of planes, whatever the format of the stack.
TEST(PredictInputs, PlanesOfAStackAreImagesWhereTheyAreTaken) {
  const test::TmpDir dir;
  io::Image stack = plane();
  stack.shape = {1, 3, 6, 8};
  stack.pixels.clear();
  for (unsigned char z = 0; z < 3; ++z) stack.pixels.insert(stack.pixels.end(), 48, z);
  stack.geometry.affine = {-0.5, 0, 0, 1, 0, 0.25, 0, 2, 0, 0, 2, 3};
  stack.geometry.spacing_um = {2000, 250, 500};
  io::write_npy(dir / "a.npy", stack);
  io::write_nifti(dir / "a.nii", stack);
  for (const char* name : {"a.npy", "a.nii"}) {
    const data::Sample sample = sample_of(dir / name);
    const pipelines::Frames frames = pipelines::frames_of(sample, "raw", {.takes_planes = true});
    ASSERT_EQ(frames.size(), 3U) << name;
    for (int64_t z = 0; z < 3; ++z) {
      const data::Sample frame = frames[static_cast<std::size_t>(z)];
      EXPECT_NE(frame.id.find("(plane " + std::to_string(z)), std::string::npos) << frame.id;
      const inference::ModelInput input = transforms().apply(frame, "raw");
      EXPECT_EQ(input.shown(0, 6).sizes(), (at::IntArrayRef{1, 6, 8}));
      EXPECT_EQ(input.rows(0, 6).flatten()[7].item<int64_t>(), z) << name;
      if (std::string(name) == "a.nii") {
        EXPECT_NEAR(input.sample.geometry().affine[11], 3 + 2.0 * static_cast<double>(z), 1e-6);
      }
    }
    EXPECT_EQ(pipelines::frames_of(sample, "raw", {}).size(), 1U);
  }
  data::Sample beyond = sample_of(dir / "a.nii");
  beyond.sources.at("raw").selection.plane = 3;
  EXPECT_THROW(transforms().apply(beyond, "raw"), DataError);
  const pipelines::Frames single = pipelines::frames_of(
      sample_of(write_lapse(dir / "b.ome.tif", 4)), "raw", {.takes_planes = true});
  EXPECT_EQ(single.size(), 4U);
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
  pipelines::InputOptions options;
  std::vector<std::string> left_out;
  const auto list = [&](const std::string& name) {
    options.path = dir / name;
    std::string names;
    for (const data::Sample& sample :
         pipelines::list_inputs(options, {"raw"}, [&](const std::string&id, const std::exception&) {
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

TEST(PredictInputs, WhatWasTrainedOnIsNotScored) {
  const test::TmpDir dir;
  std::string all = "raw,split,part\n";
  for (const char* row : {"a,train,fit", "b,val,check", "c,test,final", "d,train,fit"}) {
    io::write_ome_tiff(dir / std::string(1, row[0]) + ".tif", plane());
    all += std::string(1, row[0]) + ".tif" + (row + 1) + "\n";
  }
  pipelines::InputOptions options;
  options.on_error = "fail";
  pipelines::InputWants wants;
  const auto list = [&](const std::string& table) {
    std::ofstream(dir / "m.csv") << table;
    options.path = dir / "m.csv";
    std::string names;
    for (const data::Sample& sample : pipelines::list_inputs(options, {"raw"}, {}, wants))
      names += std::filesystem::path(sample.id).filename().string()[0];
    return names;
  };
  const std::string without_test = all.substr(0, all.find("c.tif")) + "d.tif,train,fit\n";
  EXPECT_EQ(list(all), "abcd") << "nothing is scored";
  options.with_target = true;
  EXPECT_EQ(list(all), "c");
  EXPECT_EQ(list(without_test), "b");
  EXPECT_EQ(list("raw\na.tif\nb.tif\n"), "ab") << "no such column";
  EXPECT_EQ(list("raw,split\na.tif,valid\nb.tif,test\nc.tif,valid\n"), "b");
  EXPECT_EQ(list("raw,split\na.tif,valid\nb.tif,valid\n"), "ab");
  EXPECT_NE(message_of<ConfigError>([&] {
              list("raw,split\na.tif,train\nb.tif,train\n");
            }).find("which was not trained on; data.split=all takes all"),
            std::string::npos);
  wants.split_column = "part";
  wants.split_map = config::parse_yaml("{fit: train, check: valid, final: test}", "t");
  EXPECT_EQ(list(all), "c");
  EXPECT_EQ(list(without_test), "b");
  wants.has_folds = true;
  EXPECT_NE(message_of<ConfigError>([&] { list(without_test); }).find("data.split=all takes all"),
            std::string::npos);
  wants = {};
  for (const auto& [asked, rows] :
       {std::pair{"train", "ad"}, {"valid", "b"}, {"test", "c"}, {"all", "abcd"}}) {
    options.split = asked;
    EXPECT_EQ(list(all), rows);
    options.with_target = false;
    EXPECT_EQ(list(all), rows);
    options.with_target = true;
  }
  options.split = "test";
  EXPECT_NE(message_of<ConfigError>([&] { list("raw\na.tif\n"); }).find("no column of"),
            std::string::npos);
  for (const std::string other : {"", "a.tif"}) {  // a folder, an image
    options.path = dir / other;
    EXPECT_NE(message_of<ConfigError>([&] {
                pipelines::list_inputs(options, {"raw"}, {}, wants);
              }).find("is no table"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace cytra
