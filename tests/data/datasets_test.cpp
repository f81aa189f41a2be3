// nnU-Net's and the Decathlon's layouts, arrays, and what LoadImaged makes of their sources.
#include <filesystem>
#include <fstream>
#include <set>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/datamodules/array_datamodule.h"
#include "data/loader/loader.h"
#include "io/tiff/ome_tiff.h"
#include "tests/data/datamodule_fixture.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;

#define EXPECT_MESSAGE(text, work) \
  EXPECT_NE(message_of([&] { work; }).find(text), std::string::npos) << message_of([&] { work; })

config::Node golden() {
  return config::load_yaml(std::string(CYTRA_SOURCE_DIR) + "/tests/golden/datasets.json");
}

/// A NIfTI image whose voxels are `value`.
void write_nifti(const std::string& path, int value, std::array<double, 3> spacing = {1, 2, 3}) {
  fs::create_directories(fs::path(path).parent_path());
  io::Image image;
  image.shape = {1, 2, 3, 4};
  image.pixels.assign(24, static_cast<unsigned char>(value));
  image.geometry.spacing_um = spacing;
  io::write_nifti(path, image);
}

data::Sample load(data::Sample sample, const std::string& options) {
  Rng unused(0);
  make<data::Transform>("{_target_: LoadImaged, " + options + "}")->apply(sample, unused);
  return sample;
}

class NnUnet : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 7; ++i) {
      const std::string name = "case_" + std::to_string(i);
      for (int c = 0; c < 2; ++c)
        write_nifti(dir_ / ("imagesTr/" + name + "_000" + std::to_string(c) + ".nii.gz"),
                    10 * i + c);
      write_nifti(dir_ / ("labelsTr/" + name + ".nii.gz"), 1);
    }
    write_nifti(dir_ / "imagesTs/t_0000.nii.gz", 1);
    write_nifti(dir_ / "imagesTs/t_0001.nii.gz", 2);
    list("");
  }
  void list(const std::string& more, int count = 7) {
    touch(dir_ / "dataset.json",
          R"({"channel_names": {"0": "T1", "1": "T2"}, "labels": {"background": 0, "tumour": 1},
              "file_ending": ".nii.gz", "numTraining": )" +
              std::to_string(count) + more + "}");
  }
  std::vector<data::Sample> items(data::Split split, const std::string& more = "") {
    return make("{_target_: NnUnetDatamodule, path: '" + dir_.path() + "'" + more + "}")
        ->items(split);
  }
  const test::TmpDir dir_;
};

TEST_F(NnUnet, ChannelsBecomeOneImageAndFoldsAreItsOwn) {
  const config::Node folds = golden().at("folds.7");
  for (int fold = 0; fold < 5; ++fold) {
    const std::string option = ", fold: " + std::to_string(fold);
    std::vector<std::string> valid;
    for (const data::Sample& sample : items(data::Split::valid, option))
      valid.push_back(fs::path(sample.sources.at("label").path).stem().stem().string());
    EXPECT_EQ(valid, folds.list[static_cast<std::size_t>(fold)].as<std::vector<std::string>>());
    EXPECT_EQ(items(data::Split::train, option).size(), 7 - valid.size());
  }
  const data::Sample sample =
      load(items(data::Split::train)[0], "keys: [image, label], spatial_dims: 3");
  const at::Tensor image = sample.tensors.at("image");
  EXPECT_EQ(image.sizes(), (std::vector<int64_t>{2, 2, 3, 4}));
  EXPECT_EQ(image[1][0][0][0].item<int>(), image[0][0][0][0].item<int>() + 1);
  EXPECT_NEAR(sample.geometry().spacing_um[0], 1, 1e-6);  // float32 in the file
  EXPECT_EQ(items(data::Split::test)[0].sources.count("label"), 0U);
  EXPECT_EQ(items(data::Split::predict).size(), 1U);
  EXPECT_EQ(load(items(data::Split::train)[0], "keys: image, spatial_dims: 3, channel: 1")
                .tensors.at("image")
                .size(0),
            1);
  EXPECT_MESSAGE("no channel 2",
                 load(items(data::Split::train)[0], "keys: image, spatial_dims: 3, channel: 2"));
}

TEST_F(NnUnet, FoldsOfManyCasesAreItsOwn) {
  const config::Node folds = golden().at("folds.33");
  fs::remove_all(dir_ / "imagesTr");
  for (int i = 0; i < 33; ++i) {
    touch(dir_ / ("imagesTr/case_" + std::to_string(i) + "_0000.nii.gz"));
    touch(dir_ / ("imagesTr/case_" + std::to_string(i) + "_0001.nii.gz"));
    touch(dir_ / ("labelsTr/case_" + std::to_string(i) + ".nii.gz"));
  }
  list("", 33);
  for (int fold = 0; fold < 5; ++fold) {
    std::vector<std::string> valid;
    for (const data::Sample& sample : items(data::Split::valid, ", fold: " + std::to_string(fold)))
      valid.push_back(fs::path(sample.sources.at("label").path).stem().stem().string());
    EXPECT_EQ(valid, folds.list[static_cast<std::size_t>(fold)].as<std::vector<std::string>>());
  }
}

TEST_F(NnUnet, TakesSplitsOfAFile) {
  touch(dir_ / "splits_final.json", R"([{"train": ["case_1", "case_3"], "val": ["case_0"]}])");
  EXPECT_EQ(items(data::Split::train).size(), 2U);
  EXPECT_EQ(items(data::Split::valid)[0].id, dir_ / "imagesTr/case_0_0000.nii.gz");
  EXPECT_MESSAGE("has 1 folds", items(data::Split::train, ", fold: 1"));
  touch(dir_ / "other.json", R"([{"train": ["case_11"], "val": ["case_0"]}])");
  EXPECT_MESSAGE("Did you mean 'case_1'?",
                 items(data::Split::train, ", splits_file: '" + (dir_ / "other.json") + "'"));
}

TEST_F(NnUnet, FewCasesAreFoldsOfOneEach) {
  for (int i = 4; i < 7; ++i) {
    for (int c = 0; c < 2; ++c)
      fs::remove(dir_ /
                 ("imagesTr/case_" + std::to_string(i) + "_000" + std::to_string(c) + ".nii.gz"));
    fs::remove(dir_ / ("labelsTr/case_" + std::to_string(i) + ".nii.gz"));
  }
  list("", 4);
  std::set<std::string> held_out;
  for (int fold = 0; fold < 4; ++fold) {
    const std::string option = ", fold: " + std::to_string(fold);
    const auto valid = items(data::Split::valid, option);
    ASSERT_EQ(valid.size(), 1U);
    held_out.insert(valid[0].id);
    const auto train = items(data::Split::train, option);
    EXPECT_EQ(train.size(), 3U);
    for (const data::Sample& sample : train) EXPECT_NE(sample.id, valid[0].id);
  }
  EXPECT_EQ(held_out.size(), 4U);
  EXPECT_MESSAGE("has 4 folds", items(data::Split::train, ", fold: 4"));
}

TEST_F(NnUnet, WhatItsDescriptionSaysIsTakenOrRefusedByName) {
  list(R"(, "overwrite_image_reader_writer": "NibabelIO")");
  EXPECT_EQ(items(data::Split::train).size(), 5U);
  list(R"(, "overwrite_image_reader_writer": "NibabeIIO")");
  EXPECT_MESSAGE("Did you mean 'NibabelIO'?", items(data::Split::train));
  const auto describe = [&](const std::string& labels, const std::string& ending) {
    touch(dir_ / "dataset.json",
          R"({"channel_names": {"0": "R", "1": "G"}, "labels": )" + labels +
              R"(, "file_ending": ")" + ending + R"(", "numTraining": 7})");
  };
  describe(R"({"background": 0, "whole": [1, 2], "core": 2})", ".nii.gz");
  EXPECT_MESSAGE("labels.whole are regions", items(data::Split::train));
  describe(R"({"background": 0, "tumour": 1})", ".mrc");
  EXPECT_MESSAGE("file_ending '.mrc' is not read", items(data::Split::train));
  EXPECT_MESSAGE("bfconvert", items(data::Split::train));
  // NaturalImage2DIO: the colours of a file are the channels
  describe(R"({"background": 0, "tumour": 1})", ".png");
  for (int i = 0; i < 7; ++i) {
    const std::string name = "case_" + std::to_string(i);
    io::Image image;
    image.shape = {1, 1, 3, 4};
    image.pixels.assign(12, 1);
    io::write_png(dir_ / ("labelsTr/" + name + ".png"), image);
    image.shape = {3, 1, 3, 4};
    image.pixels.assign(36, 7);
    io::write_png(dir_ / ("imagesTr/" + name + "_0000.png"), image);
  }
  EXPECT_MESSAGE("case_0_0001.png: no such image", items(data::Split::train));
  touch(dir_ / "dataset.json",
        R"({"channel_names": {"0": "R", "1": "G", "2": "B"}, "labels": {"background": 0, "a": 1},
            "file_ending": ".png", "overwrite_image_reader_writer": "NaturalImage2DIO"})");
  const auto train = items(data::Split::train);
  ASSERT_EQ(train.size(), 5U);
  EXPECT_TRUE(train[0].sources.at("image").more.empty());
  EXPECT_EQ(load(train[0], "keys: image").tensors.at("image").size(0), 3);
}

TEST_F(NnUnet, MistakesAreNamed) {
  const auto message = [&] { return message_of([&] { items(data::Split::train); }); };
  list("", 8);
  EXPECT_NE(message().find("numTraining is 8, but there are 7 cases"), std::string::npos);
  list("");
  write_nifti(dir_ / "imagesTr/case_0_0002.nii.gz", 1);
  EXPECT_NE(message().find("channel 0002"), std::string::npos) << message();
  fs::remove(dir_ / "imagesTr/case_0_0002.nii.gz");
  fs::remove(dir_ / "imagesTr/case_3_0001.nii.gz");
  EXPECT_NE(message().find("case_3_0001.nii.gz: no such image"), std::string::npos) << message();
  write_nifti(dir_ / "imagesTr/case_3_0001.nii.gz", 1);
  fs::remove(dir_ / "labelsTr/case_2.nii.gz");
  EXPECT_NE(message().find("'case_2' has no label"), std::string::npos) << message();
  write_nifti(dir_ / "labelsTr/case_2.nii.gz", 1);
  touch(dir_ / "imagesTr/stray.nii.gz");
  EXPECT_NE(message().find("expected CASE_0000.nii.gz"), std::string::npos) << message();
  fs::remove(dir_ / "imagesTr/stray.nii.gz");
  write_nifti(dir_ / "imagesTr/case_6_0001.nii.gz", 1, {1, 2, 5});
  EXPECT_MESSAGE("case_6_0001.nii.gz: voxels of",
                 for (const data::Sample& sample
                      : items(data::Split::train, ", fold: 2"))
                     load(sample, "keys: image, spatial_dims: 3"));
  for (const char* text :
       {"", "[]", "{}", "{\"channel_names\"", "{\"channel_names\": {\"0\": 1}}"}) {
    touch(dir_ / "dataset.json", text);
    EXPECT_NE(message().find("dataset.json: "), std::string::npos) << text << message();
  }
  touch(dir_ / "dataset.json", std::string(100000, '['));
  EXPECT_NE(message().find("16 levels"), std::string::npos) << message();
}

TEST_F(NnUnet, TakesTheFirstVersion) {
  std::string training;
  for (int i = 0; i < 7; ++i) {
    const std::string name = "case_" + std::to_string(i) + ".nii.gz\"";
    training += (i == 0 ? "" : ",") + std::string(R"({"image": "./imagesTr/)") + name +
                R"(, "label": "./labelsTr/)" + name + "}";
  }
  touch(dir_ / "dataset.json",
        R"({"modality": {"0": "MR", "1": "CT"}, "numTraining": 7, "training": [)" + training +
            R"(], "test": ["./imagesTs/t.nii.gz"]})");
  const auto train = items(data::Split::train);
  ASSERT_EQ(train.size(), 5U);
  EXPECT_EQ(train[0].sources.at("image").more.size(), 1U);
  EXPECT_EQ(items(data::Split::test)[0].id, dir_ / "imagesTs/t_0000.nii.gz");
  fs::rename(dir_ / "imagesTr/case_4_0000.nii.gz", dir_ / "imagesTr/case_4.nii.gz");
  EXPECT_MESSAGE("data=decathlon", items(data::Split::train));
}

TEST(Decathlon, ListsAsMonai) {
  const config::Node cases = golden().at("decathlon");
  const test::TmpDir dir;
  for (const auto& [key, list] : cases.at("lists").map) {
    for (const config::Node& item : list.list) {
      for (const auto& [name, value] : item.map) {
        for (const config::Node& path :
             value.kind == config::Kind::list ? value.list : std::vector<config::Node>{value}) {
          if (path.kind == config::Kind::string && path.string.find('/') != std::string::npos)
            touch(dir / path.string);
        }
      }
    }
  }
  touch(dir / "dataset.json", config::to_json(cases.at("listing")));
  const std::string text = "{_target_: DecathlonDatamodule, path: '" + dir.path() + "'";
  const std::pair<const char*, data::Split> splits[] = {{"training", data::Split::train},
                                                        {"validation", data::Split::valid},
                                                        {"test", data::Split::test}};
  for (const auto& [key, split] : splits) {
    const auto items = make(text + "}")->items(split);
    const config::Node& list = cases.at("lists").at(key);
    ASSERT_EQ(items.size(), list.list.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      for (const auto& [name, value] : list.list[i].map) {
        std::vector<std::string> expected, found;
        for (const config::Node& one :
             value.kind == config::Kind::list ? value.list : std::vector<config::Node>{value})
          expected.push_back(one.as<std::string>());
        const auto source = items[i].sources.find(name);
        if (source == items[i].sources.end()) {
          found = {items[i].columns.at(name)};
        } else {
          found = source->second.more;
          found.insert(found.begin(), source->second.path);
          for (std::string& path : found) path = fs::path(path).lexically_relative(dir.path());
        }
        EXPECT_EQ(found, expected) << key << i << name;
      }
    }
  }
  const auto ids = [&](const std::string& more, data::Split split) {
    std::string names;
    for (const data::Sample& item : make(text + more + "}")->items(split))
      names += fs::path(item.id).stem().string() + " ";
    return names;
  };
  EXPECT_EQ(ids(", fold: 1", data::Split::valid), "b0 ");
  EXPECT_EQ(ids(", fold: 1", data::Split::train), "a ");
  EXPECT_MESSAGE("change data.fold", ids(", fold: 7", data::Split::valid));
  EXPECT_EQ(
      make(text + ", columns: [raw, seg]}")->items(data::Split::train)[0].sources.count("seg"), 1U);
  fs::remove(dir / "imagesTr/b1.nii");
  EXPECT_MESSAGE("dataset.json: training[1].image: no such image", ids("", data::Split::train));
}

TEST(Decathlon, HoldsOutTheEndAndTakesTimeForChannels) {
  const test::TmpDir dir;
  io::ImageInfo info;
  info.shape = {1, 2, 3, 4};
  info.timepoints = 3;
  io::OmeTiffWriter writer(dir / "time.ome.tif", info);
  for (int64_t t = 0; t < 3; ++t) {
    io::Image image;
    image.shape = info.shape;
    image.pixels.assign(24, static_cast<unsigned char>(t + 5));
    writer.write({}, image, t);
  }
  writer.finish();
  std::string training;
  for (int i = 0; i < 5; ++i)
    training += std::string(i == 0 ? "" : ",") + R"({"image": "time.ome.tif", "n": )" +
                std::to_string(i) + "}";
  touch(dir / "list.json", "{\"training\": [" + training + "]}");
  const auto module = make("{_target_: DecathlonDatamodule, path: '" + (dir / "list.json") +
                           "', valid_fraction: 0.4}");
  EXPECT_EQ(module->items(data::Split::train).size(), 3U);
  const auto valid = module->items(data::Split::valid);
  ASSERT_EQ(valid.size(), 2U);
  EXPECT_EQ(valid[0].columns.at("n"), "3");
  EXPECT_MESSAGE("'test' is missing", module->items(data::Split::test));
  const at::Tensor image = load(valid[0], "keys: image, spatial_dims: 3").tensors.at("image");
  EXPECT_EQ(image.sizes(), (std::vector<int64_t>{3, 2, 3, 4}));
  EXPECT_EQ(image[2].min().item<int>(), 7);

  data::Sample sample;
  sample.sources["x"].path = dir / "time.ome.tif";
  const auto first = [&](const std::string& options) {
    const at::Tensor loaded = load(sample, "keys: x, " + options).tensors.at("x");
    return std::pair<int64_t, int>{loaded.size(0), loaded.flatten()[0].item<int>()};
  };
  using Pair = std::pair<int64_t, int>;
  EXPECT_EQ(first("spatial_dims: 3, timepoint: 2"), (Pair{1, 7}));
  EXPECT_EQ(first("spatial_dims: 3, time_as_channels: true, channel: [2, 0]"), (Pair{2, 7}));
  EXPECT_EQ(first("reader: [{_target_: cyto_dl.image.io.MonaiBioReader, dimension_order_out: CZYX, "
                  "C: 0, T: 1, Z: null}]"),
            (Pair{1, 6}));
  sample.sources["x"].selection.timepoint = 0;
  EXPECT_EQ(first("spatial_dims: 3, timepoint: 2"), (Pair{1, 5}));  // the data set's word holds
  EXPECT_MESSAGE("scene", first("spatial_dims: 3, scene: 1"));
  sample.sources["x"].selection.scene = 0;
  EXPECT_EQ(first("spatial_dims: 3, scene: 1"), (Pair{1, 5}));
  EXPECT_MESSAGE("Z: one plane", first("reader: {_target_: MonaiBioReader, Z: 3}"));
  EXPECT_MESSAGE("unknown key 't'", first("reader: {_target_: MonaiBioReader, t: 3}"));
  EXPECT_MESSAGE("Did you mean 'MonaiBioReader'?", first("reader: MonaiBioRead"));
  EXPECT_MESSAGE("spatial_dims is 3",
                 first("spatial_dims: 3, reader: {_target_: MonaiBioReader, dimension_order_out: "
                       "CYX}"));
  EXPECT_EQ(first("spatial_dims: 3, reader: ITKReader, image_only: true, ensure_channel_first: "
                  "true, dtype: np.float32"),
            (Pair{1, 5}));
}

TEST(LoadImaged, AxesThatTheUserNames) {
  const test::TmpDir dir;
  io::Image stack;
  stack.shape = {1, 3, 2, 2};  // slices that are time points
  for (int i = 0; i < 12; ++i) stack.pixels.push_back(static_cast<unsigned char>(i / 4));
  io::write_ome_tiff(dir / "a.ome.tif", stack);
  std::ofstream(dir / "m.csv") << "raw,start\na.ome.tif,0\n";
  const std::string manifest =
      "{_target_: DataframeDatamodule, just_inference: true, path: '" + dir / "m.csv" + "'";
  const auto module = make<data::DataModule>(manifest + ", axes: TYX}");
  const auto items = data::items_of(*module, data::Split::test);
  ASSERT_EQ(items.size(), 3U);  // counted by the axes
  for (int t = 0; t < 3; ++t) {
    const at::Tensor image =
        load(items[static_cast<std::size_t>(t)], "keys: raw, spatial_dims: 2").tensors.at("raw");
    EXPECT_TRUE(image.equal(at::full({1, 2, 2}, t, at::kByte))) << t;
  }
  data::Sample sample;
  sample.sources["raw"].path = dir / "a.ome.tif";
  EXPECT_TRUE(load(sample, "keys: raw, axes: TYX, timepoint: 2")
                  .tensors.at("raw")
                  .equal(at::full({1, 2, 2}, 2, at::kByte)));
  EXPECT_EQ(load(sample, "keys: raw, axes: CYX").tensors.at("raw").size(0), 3);
  EXPECT_MESSAGE("or axes=TYX when they are time points", load(sample, "keys: raw"));
  EXPECT_MESSAGE("axes: TZYX names 2", load(sample, "keys: raw, axes: TZYX"));
  EXPECT_MESSAGE("axes: 'XYT', expected those of the file", load(sample, "keys: raw, axes: XYT"));
  EXPECT_MESSAGE("axes: 'time', expected", make<data::DataModule>(manifest + ", axes: time}"));
}

TEST(ArrayDatamodule, GivesBatchesWithoutFiles) {
  const at::Tensor image = at::arange(32, at::kFloat).reshape({1, 4, 8});
  data::LoaderOptions options;
  options.transforms.train = config::parse_yaml(
      "[{_target_: SpatialCropd, keys: [raw, seg], roi_start: [0, 0], roi_end: [2, 2]}]", "test");
  options.batch_size = 4;
  const data::ArrayDatamodule module(
      {{data::Split::train, {{{"raw", image}, {"seg", image.to(at::kByte)}}}},
       {data::Split::test, {{{"raw", image}}, {{"raw", image.flip(2)}}}}},
      options);
  data::DataLoader tests(data::loader_spec(module, data::Split::test));
  EXPECT_EQ(tests.size(), 2);  // whole images, one by one, in their order
  tests.start_epoch(0);
  EXPECT_TRUE(tests.next()->at("raw")[0].equal(image));
  data::DataLoader loader(data::loader_spec(module, data::Split::train));
  loader.start_epoch(0);
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_TRUE(batch->at("raw").flatten().equal(at::tensor({0.F, 1.F, 8.F, 9.F})));
  EXPECT_EQ(batch->ids[0], "train[0]");
  EXPECT_MESSAGE("no arrays were given for valid", module.items(data::Split::valid));
  EXPECT_MESSAGE("train[0]: 'x' is a tensor of 4x8",
                 data::ArrayDatamodule({{data::Split::train, {{{"x", image[0]}}}}}));
  EXPECT_MESSAGE("undefined", data::ArrayDatamodule({{data::Split::train, {{{"x", {}}}}}}));
  EXPECT_MESSAGE("leave it out", load(module.items(data::Split::train)[0], "keys: raw"));
}

}  // namespace
}  // namespace cytra
