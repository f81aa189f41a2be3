// `train data.path=FOLDER`: what is not typed is taken from the data.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/files.h"
#include "io/image.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using test::Outcome;
using test::shell;

/// Six images of bright squares, and targets of them.
class Infer : public ::testing::Test {
 protected:
  static constexpr int64_t kSide = 48, kImages = 6;

  static bool is_square(int64_t i, int64_t y, int64_t x) {
    return (y + i) % 16 < 9 && (x + 2 * i) % 16 < 9;
  }
  /// A number for each square, from 1.
  static int64_t square(int64_t i, int64_t y, int64_t x) {
    return (y + i) / 16 * 5 + (x + 2 * i) / 16 + 1;
  }
  using Value = int64_t (*)(int64_t i, int64_t y, int64_t x);
  static io::Image paint(int64_t i, int64_t channels, int64_t planes, Value value) {
    io::Image image;
    image.shape = {channels, planes, kSide, kSide};
    image.pixels.resize(image.bytes());
    for (std::size_t p = 0; p < image.pixels.size(); ++p) {
      const auto at = static_cast<int64_t>(p) % (kSide * kSide);
      image.pixels[p] = static_cast<unsigned char>(value(i, at / kSide, at % kSide));
    }
    return image;
  }
  static int64_t grey(int64_t i, int64_t y, int64_t x) {
    return (is_square(i, y, x) ? 150 : 20) + (7 * y + 13 * x + i) % 30;
  }
  static int64_t mask(int64_t i, int64_t y, int64_t x) { return is_square(i, y, x) ? 255 : 0; }
  static int64_t classes(int64_t i, int64_t y, int64_t x) {
    return is_square(i, y, x) ? square(i, y, x) % 2 + 1 : 0;
  }
  static int64_t objects(int64_t i, int64_t y, int64_t x) {
    return is_square(i, y, x) ? square(i, y, x) : 0;
  }

  /// Files NAME with * for the image's number.
  void write(const std::string& name, Value value, int64_t channels = 1, int64_t planes = 1) const {
    for (int64_t i = 0; i < kImages; ++i) {
      std::string path = dir_ / name;
      path.replace(path.find('*'), 1, "cell" + std::to_string(i));
      fs::create_directories(fs::path(path).parent_path());
      const io::Image image = paint(i, channels, planes, value);
      if (path.substr(path.size() - 4) == ".png") {
        io::write_png(path, image);
      } else {
        io::write_ome_tiff(path, image);
      }
    }
  }

  Outcome train(const std::string& words) const {
    return shell(
        "\"$BIN/train\" trainer.accelerator=cpu performance.num_threads=1 "
        "data.num_workers=0 logger=none trainer.max_steps=1 trainer.limit_val_batches=1 "
        "'paths.output_dir=" +
        run_ + "' 'data.path=" + dir_.path() + "' " + words);
  }
  /// Trains, and says `line`; the run's configuration has it.
  void expect(const std::string& words, const std::vector<std::string>& lines) const {
    const Outcome outcome = train(words);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    for (const std::string& line : lines)
      EXPECT_NE(outcome.err.find("from the data: " + line), std::string::npos)
          << line << " is not in " << outcome.err;
    const std::string kept = read_file(run_ + "/.hydra/overrides.yaml");
    for (const std::string& line : lines) {
      const std::string key = line.substr(0, line.find('='));
      EXPECT_NE(kept.find(key[0] == '\'' ? key.substr(1) : key), std::string::npos) << kept;
    }
  }
  const std::string small_ = "patch_shape=[32,32] 'model.filters=[4,8,8]' ";
  const test::TmpDir dir_;
  const std::string run_ = dir_ / "../" + fs::path(dir_.path()).filename().string() + "-run";
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(run_, ignored);
  }
};

TEST_F(Infer, FoldersAndColours) {
  write("image/*.png", grey, 3);
  write("label/*.png", mask);
  expect(small_ + "experiment=im2im/segmentation",
         {"data=folder 'data.folders=[image,label]'", "raw_im_channels=3"});
  const Outcome predicted =
      shell("\"$BIN/predict\" trainer.accelerator=cpu 'checkpoint.ckpt_path=" + run_ +
            "' 'data.path=" + dir_.path() + "/image' 'paths.output_dir=" + run_ + "/masks'");
  EXPECT_EQ(predicted.code, 0) << predicted.err;
  // The table of what was held out, which no user of folders has
  const Outcome scored =
      shell("\"$BIN/predict\" trainer.accelerator=cpu 'checkpoint.ckpt_path=" + run_ +
            "' 'data.path=" + run_ + "/held_out.csv' 'paths.output_dir=" + run_ +
            "/scored' data.with_target=true");
  EXPECT_EQ(scored.code, 0) << scored.err;
  EXPECT_NE(scored.out.find("dice"), std::string::npos) << scored.out;
}

TEST_F(Infer, TheExperimentOfAMask) {
  write("*.png", grey);
  write("*_mask.png", mask);
  expect(small_, {"data=folder 'data.folders=[.,.]'", "experiment=im2im/segmentation"});
}

TEST_F(Infer, TheExperimentOfObjects) {
  write("images/*.tif", grey);
  write("masks/*_cp_masks.tif", objects);
  expect(small_, {"data=folder 'data.folders=[images,masks]'", "experiment=im2im/instance"});
}

TEST_F(Infer, AMaskForEachObjectInAFolderForEachImage) {
  write("stage1_train/*/images/a.png", grey);
  for (int64_t number = 1; number <= 2; ++number) {
    write(
        "stage1_train/*/masks/" + std::to_string(number) + ".png",
        number == 1
        ? [](int64_t i,
             int64_t y,
             int64_t x) -> int64_t { return square(i, y, x) == 7 && is_square(i, y, x) ? 255 : 0; }
        : [](int64_t i, int64_t y, int64_t x) -> int64_t {
            return square(i, y, x) == 8 && is_square(i, y, x) ? 255 : 0;
          });
  }
  const std::string folders = "'data.folders=[stage1_train/*/images,stage1_train/*/masks]'";
  expect(small_, {"data=folder " + folders, "experiment=im2im/instance"});
  expect(small_ + "experiment=im2im/segmentation", {"data=folder " + folders});
  const Outcome checked = train(small_ + "experiment=im2im/instance --check-data");
  EXPECT_EQ(checked.code, 0) << checked.err << checked.out;
}

TEST_F(Infer, ClassesByTheirValues) {
  write("raw/*.tif", grey);
  write("seg/*.tif", classes);
  expect(small_ + "experiment=im2im/segmentation", {"data=folder", "num_classes=3"});
  const Outcome told = train(small_ + "experiment=im2im/segmentation num_classes=1");
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_EQ(told.err.find("num_classes=3"), std::string::npos) << told.err;
}

TEST_F(Infer, ClassesByTheTableOfTheirColours) {
  write("images/*.png", grey);
  write("labels/*.png", classes, 3);  // red is the class, the others 0
  for (int64_t i = 0; i < kImages; ++i) {
    const std::string path = dir_ / "labels/cell" + std::to_string(i) + ".png";
    io::Image image = paint(i, 3, 1, classes);
    for (std::size_t p = 0; p < kSide * kSide; ++p) {
      const unsigned char kind = image.pixels[p];
      image.pixels[p] = kind == 1 ? 255 : 0;
      image.pixels[p + kSide * kSide] = kind == 2 ? 128 : 0;
      image.pixels[p + 2 * kSide * kSide] = 0;
    }
    io::write_png(path, image);
  }
  std::ofstream(dir_ / "labelmap.txt")
      << "# label:color_rgb:parts:actions\nodd one:255,0,0::\neven:0,128,0::\nbackground:0,0,0::\n";
  expect(small_ + "experiment=im2im/segmentation",
         {"data=folder 'data.folders=[images,labels]'", "num_classes=3"});
  const Outcome trained = train(small_ + "experiment=im2im/segmentation logger=csv");
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE((trained.out + trained.err).find("val/dice_odd_one"), std::string::npos)
      << trained.out << trained.err;
}

TEST_F(Infer, Stacks) {
  write("images/*.tif", grey, 1, 12);
  write("labels/*.tif", mask, 1, 12);
  expect("patch_shape=[8,32,32] 'model.filters=[4,8]' ",
         {"data=folder", "spatial_dims=3", "experiment=im2im/segmentation_3d"});
}

TEST_F(Infer, BoxesOfVoc) {
  write("JPEGImages/*.png", grey);
  fs::create_directories(dir_ / "Annotations");
  for (int i = 0; i < kImages; ++i) {
    std::ofstream(dir_ / "Annotations/cell" + std::to_string(i) + ".xml")
        << "<annotation><size><width>48</width><height>48</height><depth>1</depth></size>"
           "<object><name>cell</name><bndbox><xmin>3</xmin><ymin>4</ymin><xmax>12</xmax>"
           "<ymax>13</ymax></bndbox></object></annotation>";
  }
  expect("patch_shape=[32,32] data.batch_size=1",
         {"data=folder 'data.folders=[JPEGImages,Annotations]'", "experiment=detection/cells"});
}

TEST_F(Infer, ColumnsOfTables) {
  write("i/*.tif", grey, 2);
  write("o/*.tif", objects);
  std::string rows = "raw,instances\n";
  for (int i = 0; i < kImages; ++i)
    rows += "i/cell" + std::to_string(i) + ".tif,o/cell" + std::to_string(i) + ".tif\n";
  std::ofstream(dir_.path() + "/valid.csv") << rows.substr(0, rows.find("i/cell1"));
  std::ofstream(dir_.path() + "/train.csv") << "raw,instances\n"
                                            << rows.substr(rows.find("i/cell1"));
  expect(small_ + "experiment=im2im/instance", {"target_col=instances", "raw_im_channels=2"});
}

TEST_F(Infer, WhatMayMeanSeveralThingsIsAnError) {
  write("images/*.tif", grey);
  write("masks/*.tif", mask);
  write("labels/*.tif", objects);
  const Outcome outcome = train("experiment=im2im/segmentation");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("type data=folder 'data.folders=[images,labels]', or data=folder "
                             "'data.folders=[images,masks]'"),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(train(small_ + "data=folder 'data.folders=[images,masks]'").code, 0);
  EXPECT_FALSE(fs::exists(run_ + "-1"));
}

TEST_F(Infer, WhatIsTypedWinsAndAContradictionIsTold) {
  write("image/*.png", grey, 3);
  write("label/*.png", mask);
  Outcome outcome = train(small_ + "experiment=im2im/segmentation raw_im_channels=1");
  EXPECT_EQ(outcome.code, 0) << outcome.err;  // grey in three equal channels
  EXPECT_EQ(outcome.err.find("from the data: raw_im_channels"), std::string::npos) << outcome.err;
  outcome = train("experiment=im2im/segmentation_3d --check-data");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("spatial_dims=2 fits the images"), std::string::npos) << outcome.err;
}

TEST_F(Infer, AMaskThatTheTaskNamesIsLoaded) {
  write("raw/*.tif", grey);
  write("seg/*.tif", mask);
  write("roi/*.tif", mask);
  const Outcome outcome =
      train(small_ + "experiment=im2im/segmentation data=folder task.mask_key=roi");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  // What nobody knows is not learned: with no voxel left there is no Dice.
  write("roi/*.tif", [](int64_t, int64_t, int64_t) { return int64_t{0}; });
  const Outcome none =
      train(small_ + "experiment=im2im/segmentation data=folder task.mask_key=roi");
  EXPECT_EQ(none.out.find("val/dice: 0."), std::string::npos) << none.out;
}

// Images of other channels than most, as in Omnipose's test files.
TEST_F(Infer, ImagesOfOtherChannels) {
  write("*.png", grey);
  write("masks/*_cp_masks.png", objects);
  io::Image colours = paint(1, 3, 1, grey);
  io::write_png(dir_ / "cell1.png", colours);
  const std::string words = small_ + "--check-data";
  const Outcome same = train(words);
  EXPECT_EQ(same.code, 0) << same.out << "grey in colours is grey";
  EXPECT_NE(same.err.find("read as grey"), std::string::npos) << same.err;
  colours.pixels.back() ^= 64;
  io::write_png(dir_ / "cell1.png", colours);
  const Outcome told = train(words);
  EXPECT_EQ(told.code, 2) << told.out;
  EXPECT_NE(told.err.find("images have 1, 3 channels: LoadImaged's channel: [0] takes"),
            std::string::npos)
      << told.err;
  EXPECT_NE(told.out.find("problem: train raw: " + dir_ / "cell1.png" +
                          ": channels 3, most others 1; data.on_error=skip leaves out"),
            std::string::npos)
      << told.out;
  const Outcome left_out = train(words + " data.on_error=skip");
  EXPECT_EQ(left_out.code, 0) << left_out.out << left_out.err;
  EXPECT_NE(left_out.out.find("cell1.png"), std::string::npos) << left_out.out;
}

// What was looked at is not what there is.
TEST_F(Infer, SaysHowManyImagesItLookedAt) {
  write("images/*.png", grey);
  write("masks/*.png", mask);
  const Outcome all = train(small_ + "--check");
  EXPECT_NE(all.err.find("the targets' values are 0, 255, in 5 images, all of them"),
            std::string::npos)
      << all.err;
}

}  // namespace
}  // namespace cytra
