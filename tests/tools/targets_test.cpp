// Targets that can't be meant: told by `train --check-data` and by a training, and what is advised
// works.
#include <cmath>
#include <fstream>
#include <random>

#include <gtest/gtest.h>

#include "io/reader.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
using test::Outcome;
using test::shell;

constexpr int64_t kWidth = 48;

/// A value for each channel, where an object is or not.
using Paint = std::vector<unsigned char> (*)(bool is_object, int square, std::mt19937& random);

class Targets : public ::testing::Test {
 protected:
  /// A folder of five images and targets, raw/ and seg/, the squares in them painted.
  std::string folder(const std::string& name, const Paint& paint) {
    const std::string path = dir_ / name;
    std::filesystem::create_directories(path + "/raw");
    std::filesystem::create_directories(path + "/seg");
    std::mt19937 random(3);
    for (int i = 0; i < 5; ++i) {
      io::Image raw, seg;
      const auto channels = static_cast<int64_t>(paint(false, 0, random).size());
      raw.shape = {1, 1, kWidth, kWidth};
      seg.shape = {channels, 1, kWidth, kWidth};
      raw.pixels.resize(kWidth * kWidth);
      seg.pixels.resize(static_cast<std::size_t>(channels * kWidth * kWidth));
      for (int64_t p = 0; p < kWidth * kWidth; ++p) {
        const int64_t y = p / kWidth, x = p % kWidth;
        const bool is_object = (y + 2 * i) % 12 < 6 && (x + i) % 12 < 6;
        const auto square = static_cast<int>((y + 2 * i) / 12 + (x + i) / 12);
        raw.pixels[static_cast<std::size_t>(p)] =
            static_cast<unsigned char>((is_object ? 150 : 20) + random() % 30);
        const std::vector<unsigned char> values = paint(is_object, square, random);
        for (int64_t c = 0; c < channels; ++c)
          seg.pixels[static_cast<std::size_t>(c * kWidth * kWidth + p)] =
              values[static_cast<std::size_t>(c)];
      }
      const std::string file = "/" + std::to_string(i) + ".tif";
      io::write_ome_tiff(path + "/raw" + file, raw);
      io::write_ome_tiff(path + "/seg" + file, seg);
    }
    return path;
  }

  Outcome train(const std::string& path, const std::string& more) {
    return shell("\"$BIN/train\" data=folder 'data.path=" + path + "' 'paths.output_dir=" + path +
                 "/run' trainer.accelerator=cpu performance.num_threads=1 data.num_workers=1 "
                 "patch_shape=[32,32] 'model.filters=[4,8,8]' trainer.max_steps=1 logger=none " +
                 more);
  }

  /// `--check-data` and the training tell it with the option; with it there is nothing to tell.
  void expect_mended(const std::string& path,
                     const std::string& before,
                     const std::string& option) {
    const Outcome found = train(path, before + " --check-data");
    EXPECT_EQ(found.code, 2) << found.out << found.err;
    EXPECT_NE(found.out.find(option), std::string::npos) << option << " is not in: " << found.out;
    const Outcome mended = train(path, before + " " + option + " --check-data");
    EXPECT_EQ(mended.code, 0) << mended.out << mended.err;
    const Outcome trained = train(path, before + " " + option);
    EXPECT_EQ(trained.code, 0) << trained.err;
    EXPECT_EQ(trained.err.find("seg: "), std::string::npos) << trained.err;
  }

  const test::TmpDir dir_;
};

const char* const kMask = "experiment=im2im/segmentation";

TEST_F(Targets, NoBackground) {
  const std::string path = folder("ilastik", [](bool is_object, int, std::mt19937&) {
    return std::vector<unsigned char>{static_cast<unsigned char>(is_object ? 2 : 1)};
  });
  expect_mended(path, kMask, "target_values=[1,2]");
  const Outcome refused = train(path, kMask);
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_NE(refused.err.find("target_values=[1,2]"), std::string::npos) << refused.err;
}

TEST_F(Targets, NoBackgroundInSeveralMasks) {
  const std::string path = folder("masks", [](bool is_object, int, std::mt19937&) {
    const auto value = static_cast<unsigned char>(is_object ? 2 : 1);
    return std::vector<unsigned char>{value, value};
  });
  const std::string masks = std::string(kMask) + " num_classes=2 multilabel=true";
  expect_mended(path, masks, "target_values=[1,2]");
  const Outcome refused = train(path, masks);
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_NE(refused.err.find("target_values=[1,2]"), std::string::npos) << refused.err;
}

TEST_F(Targets, LossyMasks) {
  const std::string path = folder("lossy", [](bool is_object, int, std::mt19937& random) {
    const auto off = static_cast<unsigned char>(random() % 25);
    return std::vector<unsigned char>{static_cast<unsigned char>(is_object ? 255 - off : off)};
  });
  const Outcome found = train(path, std::string(kMask) + " --check-data");
  EXPECT_EQ(found.code, 0) << found.err;
  EXPECT_NE(found.err.find("task.target_threshold=127 (two values (0 and 255) blurred"),
            std::string::npos)
      << found.err;
  expect_mended(path, std::string(kMask) + " num_classes=1", "task.target_threshold=127");
}

TEST_F(Targets, Colours) {
  const std::string path = folder("colours", [](bool is_object, int square, std::mt19937&) {
    if (!is_object) return std::vector<unsigned char>{0, 0, 0};
    return std::vector<unsigned char>{255, static_cast<unsigned char>(square % 2 * 255), 0};
  });
  const std::string typed = std::string(kMask) + " num_classes=1";  // else colours are taken
  expect_mended(path, typed, "num_classes=3 \"task.colours=['#000000','#ff0000','#ffff00']\"");
}

TEST_F(Targets, GreyInThreeChannelsIsOne) {
  const std::string path = folder("grey", [](bool is_object, int, std::mt19937&) {
    return std::vector<unsigned char>(3, static_cast<unsigned char>(is_object ? 255 : 0));
  });
  const Outcome checked = train(path, std::string(kMask) + " --check-data");
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
}

TEST_F(Targets, Gaps) {
  const std::string path = folder("gaps", [](bool is_object, int square, std::mt19937&) {
    return std::vector<unsigned char>{
        static_cast<unsigned char>(is_object ? (square % 2 == 0 ? 5 : 7) : 0)};
  });
  expect_mended(path, std::string(kMask) + " num_classes=3", "num_classes=3 target_values=[0,5,7]");
}

TEST_F(Targets, MasksAsObjects) {
  const std::string path = folder("objects", [](bool is_object, int, std::mt19937&) {
    return std::vector<unsigned char>{static_cast<unsigned char>(is_object ? 255 : 0)};
  });
  const Outcome found = train(path, "experiment=im2im/instance --check-data");
  EXPECT_EQ(found.code, 2) << found.out << found.err;
  EXPECT_NE(found.out.find("experiment=im2im/segmentation num_classes=1"), std::string::npos)
      << found.out;
  EXPECT_NE(found.out.find("task.object_values=[255] makes an object of each region"),
            std::string::npos)
      << found.out;
  const Outcome mended =
      train(path, "experiment=im2im/instance 'task.object_values=[255]' --check-data");
  EXPECT_EQ(mended.code, 0) << mended.out << mended.err;
  const Outcome other =
      train(path, "experiment=detection/cells 'task.object_values=[255]' --check-data");
  EXPECT_EQ(other.out.find("not a number for each object"), std::string::npos) << other.out;
}

TEST_F(Targets, ObjectsWithoutABackground) {  // ilastik's 1 and 2
  const std::string path = folder("ilastik", [](bool is_object, int, std::mt19937&) {
    return std::vector<unsigned char>{static_cast<unsigned char>(is_object ? 2 : 1)};
  });
  const Outcome found = train(path, "experiment=im2im/instance --check-data");
  EXPECT_EQ(found.code, 2) << found.out << found.err;
  EXPECT_NE(found.out.find("task.object_values=[2]"), std::string::npos) << found.out;
  const Outcome mended =
      train(path, "experiment=im2im/instance 'task.object_values=[2]' --check-data");
  EXPECT_EQ(mended.code, 0) << mended.out << mended.err;
}

TEST_F(Targets, TheImageItself) {
  const std::string path = folder("itself", [](bool is_object, int, std::mt19937&) {
    return std::vector<unsigned char>{static_cast<unsigned char>(is_object)};
  });
  std::filesystem::copy(path + "/raw", path + "/copied");
  for (const char* experiment : {"im2im/segmentation", "im2im/labelfree", "im2im/instance"})
    for (const char* folder : {"raw", "copied"}) {
      const Outcome found =
          train(path,
                std::string("experiment=") + experiment + " target_col=target data.folders=[raw," +
                    folder + "] --check-data");
      EXPECT_EQ(found.code, 2) << found.out << found.err;
      EXPECT_NE(found.out.find("is the image itself"), std::string::npos) << found.out;
    }
}

}  // namespace
}  // namespace cytra
