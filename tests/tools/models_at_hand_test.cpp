// Models that are named by a word, and the model `nuclei`.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "io/reader.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
using test::Outcome;
using test::shell;
namespace fs = std::filesystem;

constexpr int64_t kNuclei = 25;

/// Nuclei of about `diameter` pixels in a grid of 5 x 5, with noise; 8 bits.
io::Image nuclei(double diameter, int64_t side = 256) {
  io::Image image;
  image.shape = {1, 1, side, side};
  image.pixels.resize(image.bytes());
  uint32_t state = 1;
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      const double step = static_cast<double>(side) / 5;
      const double dy = std::remainder(static_cast<double>(y) - step / 2, step);
      const double dx = std::remainder(static_cast<double>(x) - step / 2, step);
      const double edge = std::hypot(dy * 1.2, dx) - diameter / 2;
      state = state * 1664525 + 1013904223;
      const double noise = static_cast<double>(state >> 24) / 32;
      image.pixels[static_cast<std::size_t>(y * side + x)] =
          static_cast<unsigned char>(12 + noise + 150 / (1 + std::exp(edge * 1.5)));
    }
  }
  return image;
}

/// An empty image of 900 x 800 with the given one, of 256 x 256, at these columns of its top.
io::Image with_copies(const io::Image& corner, std::initializer_list<std::size_t> columns) {
  io::Image large = corner;
  large.shape = {1, 1, 900, 800};
  large.pixels.assign(large.bytes(), 14);
  for (std::size_t y = 0; y < 256; ++y)
    for (const std::size_t x : columns)
      std::memcpy(&large.pixels[y * 800 + x], &corner.pixels[y * 256], 256);
  return large;
}

io::Image labels_of(const std::string& image, const std::string& more = "") {
  const test::TmpDir dir;
  const Outcome outcome = shell(
      "\"$BIN/predict\" checkpoint.ckpt_path=nuclei trainer.accelerator=cpu 'data.path=" + image +
      "' 'paths.output_dir=" + (dir / "out") + "' predict.overlay=false " + more);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::size_t at = outcome.out.find("prediction: ");
  if (at == std::string::npos) return {};
  return io::read_image(outcome.out.substr(at + 12, outcome.out.find('\n', at) - at - 12));
}

int64_t count(const io::Image& labels) {
  int64_t most = 0;
  for (std::size_t i = 0; i < labels.pixels.size(); i += io::size_of(labels.dtype))
    most = std::max<int64_t>(most, labels.pixels[i]);
  return most;  // below 256 here
}

TEST(ModelsAtHand, WindowsWithoutForegroundAreLeftOut) {
  const test::TmpDir dir;
  const io::Image large = with_copies(nuclei(20), {0});
  io::Image negative = large;
  for (unsigned char& pixel : negative.pixels) pixel = static_cast<unsigned char>(255 - pixel);
  io::write_png(dir / "large.png", large);
  io::write_png(dir / "negative.png", negative);
  const std::string windows = "inference_args.roi_size=256 ";
  const io::Image all = labels_of(dir / "large.png", windows);
  EXPECT_EQ(count(all), kNuclei);
  for (const auto& [name, rule] : {std::pair("large.png", "otsu"),
                                   {"large.png", "60"},
                                   {"negative.png", "'<otsu'"},
                                   {"negative.png", "'<195'"}}) {
    const io::Image some = labels_of(dir / name, windows + "\"predict.skip_empty=" + rule + "\"");
    EXPECT_EQ(count(some), kNuclei) << name << " " << rule;
  }
  const Outcome told =
      shell("\"$BIN/predict\" checkpoint.ckpt_path=nuclei 'data.path=" + (dir / "large.png") +
            "' 'paths.output_dir=" + (dir / "out") + "' " + windows + "predict.skip_empty=otsu");
  EXPECT_NE(told.err.find(" windows hold no value above "), std::string::npos) << told.err;
  EXPECT_EQ(told.err.find(": 0 of "), std::string::npos) << told.err;
}

TEST(ModelsAtHand, AMaskImageSaysWhichWindowsArePredicted) {
  const test::TmpDir dir;
  io::write_png(dir / "large.png", with_copies(nuclei(20), {0, 540}));
  // A thumbnail, which leaves out the nuclei on the right.
  io::Image mask = nuclei(20);
  mask.shape = {1, 1, 225, 200};
  mask.pixels.assign(mask.bytes(), 0);
  for (std::size_t y = 0; y < 60; ++y) std::memset(&mask.pixels[y * 200], 1, 60);
  std::filesystem::create_directory(dir / "masks");
  io::write_png(dir / "masks/large.png", mask);
  const auto predicted = [&](const std::string& given) {
    return shell(
        "\"$BIN/predict\" checkpoint.ckpt_path=nuclei inference_args.roi_size=256 --resume "
        "'data.path=" +
        (dir / "large.png") + "' 'paths.output_dir=" + (dir / "out") +
        "' 'predict.skip_empty=" + (dir / given) + "'");
  };
  EXPECT_EQ(count(labels_of(dir / "large.png", "inference_args.roi_size=256")), 2 * kNuclei);
  for (const char* given : {"masks/large.png", "masks"}) {
    const Outcome told = predicted(given);
    EXPECT_EQ(told.code, 0) << told.err;
    EXPECT_NE(told.err.find("windows hold nothing of the mask "), std::string::npos) << told.err;
    EXPECT_EQ(count(io::read_image(dir / "out/large.png")), kNuclei) << told.err;
  }
  for (std::size_t y = 0; y < 60; ++y) std::memset(&mask.pixels[y * 200], 1, 200);
  io::write_png(dir / "masks/large.png", mask);  // another mask: --resume begins again
  EXPECT_EQ(predicted("masks").code, 0);
  EXPECT_EQ(count(io::read_image(dir / "out/large.png")), 2 * kNuclei);
  mask.shape = {1, 1, 200, 225};
  io::write_png(dir / "masks/large.png", mask);
  io::write_png(dir / "masks/other.png", mask);
  const Outcome other = predicted("masks/other.png");
  EXPECT_EQ(other.code, 2) << other.err;
  EXPECT_NE(other.err.find("a mask of 1x200x225 voxels, expected the sides of"), std::string::npos)
      << other.err;
  std::filesystem::remove(dir / "masks/large.png");
  const Outcome none = predicted("masks");
  EXPECT_EQ(none.code, 2) << none.err;
  EXPECT_NE(none.err.find("expected one image large.*, the mask of"), std::string::npos)
      << none.err;
}

TEST(ModelsAtHand, ADryRunGoesTheWholeRoadAndLeavesNothing) {
  const test::TmpDir dir;
  fs::create_directory(dir / "work");
  fs::create_directory(dir / "temporary");
  io::write_png(dir / "large.png", with_copies(nuclei(20), {0}));
  for (const char* more : {"", "predict.diameter=30"}) {
    const Outcome plan = shell("cd '" + (dir / "work") + "' && TMPDIR='" + (dir / "temporary") +
                               "' \"$BIN/predict\" checkpoint.ckpt_path=nuclei --dry-run "
                               "trainer.accelerator=cpu 'data.path=" +
                               (dir / "large.png") + "' " + more);
    EXPECT_EQ(plan.code, 0) << plan.err;
    EXPECT_NE(plan.out.find("seconds: "), std::string::npos) << plan.out;
    EXPECT_TRUE(fs::is_empty(dir / "work") && fs::is_empty(dir / "temporary")) << more;
  }
}

TEST(ModelsAtHand, TheSameObjectsInEveryFormOfAnImage) {
  const test::TmpDir dir;
  const io::Image grey = nuclei(20);
  io::Image colours = grey, negative = grey, wide = grey;
  for (int copies = 0; copies < 2; ++copies)
    colours.pixels.insert(colours.pixels.end(), grey.pixels.begin(), grey.pixels.end());
  colours.shape[0] = 3;
  for (unsigned char& pixel : negative.pixels) pixel = static_cast<unsigned char>(255 - pixel);
  wide.dtype = io::Dtype::u16;
  wide.pixels.resize(wide.bytes());
  for (std::size_t i = 0; i < grey.pixels.size(); ++i) {
    const auto value = static_cast<uint16_t>(grey.pixels[i] * 37 + 500);
    std::memcpy(&wide.pixels[2 * i], &value, 2);
  }
  io::write_png(dir / "grey.png", grey);
  const io::Image expected = labels_of(dir / "grey.png");
  EXPECT_EQ(count(expected), kNuclei);
  const auto same = [&](const io::Image& other) {
    if (other.pixels.size() != expected.pixels.size()) return 0.0;
    double both = 0, either = 0;
    for (std::size_t i = 0; i < other.pixels.size(); ++i) {
      both += other.pixels[i] > 0 && other.pixels[i] == expected.pixels[i] ? 1 : 0;
      either += other.pixels[i] > 0 || expected.pixels[i] > 0 ? 1 : 0;
    }
    return both / either;
  };
  for (const auto& [name, image] :
       {std::pair("colours.png", &colours), {"negative.png", &negative}, {"wide.png", &wide}}) {
    io::write_png(dir / name, *image);
    EXPECT_GT(same(labels_of(dir / name)), 0.98) << name;
  }
}

TEST(ModelsAtHand, ADiameterResamplesTheImageAndItsResultBack) {
  const test::TmpDir dir;
  io::Image image = nuclei(120, 1280);
  io::write_png(dir / "large.png", image);
  const io::Image labels = labels_of(dir / "large.png", "predict.diameter=120");
  EXPECT_EQ(labels.shape, (std::array<int64_t, 4>{1, 1, 1280, 1280}));
  EXPECT_EQ(count(labels), kNuclei);
  image.geometry.spacing_um = {0, 0.1, 0.1};
  io::write_ome_tiff(dir / "large.ome.tif", image);
  EXPECT_EQ(labels_of(dir / "large.ome.tif", "predict.diameter_um=12").pixels, labels.pixels);
  const Outcome no_size =
      shell("\"$BIN/predict\" checkpoint.ckpt_path=nuclei predict.diameter_um=12 'data.path=" +
            (dir / "large.png") + "' 'paths.output_dir=" + (dir / "none") + "'");
  EXPECT_EQ(no_size.code, 2);
  EXPECT_NE(no_size.err.find("expected data.spacing_um"), std::string::npos) << no_size.err;
  const Outcome unknown =
      shell("\"$BIN/predict\" checkpoint.ckpt_path=" CYTRA_SOURCE_DIR
            "/tests/golden/checkpoints/format1_2d.ckpt predict.diameter=3 'data.path=" +
            (dir / "large.png") + "'");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("task.diameter"), std::string::npos) << unknown.err;
}

TEST(ModelsAtHand, ObjectsOnTheSeamsOfBlocksAreWhole) {
  constexpr int64_t kTiles = 7, kSide = 256;  // blocks of the whole meet at centres of nuclei
  const test::TmpDir dir;
  const io::Image tile = nuclei(20, kSide);
  io::Image wide = tile;
  wide.shape = {1, 1, kTiles * kSide, kTiles * kSide};
  wide.pixels.clear();
  for (int64_t y = 0; y < kTiles * kSide; ++y) {
    const auto row = tile.pixels.begin() + y % kSide * kSide;
    for (int64_t x = 0; x < kTiles; ++x) wide.pixels.insert(wide.pixels.end(), row, row + kSide);
  }
  io::write_png(dir / "wide.png", wide);
  const io::Image labels = labels_of(dir / "wide.png");
  ASSERT_EQ(labels.dtype, io::Dtype::u16);
  std::map<uint16_t, int64_t> sizes;
  for (std::size_t i = 0; i < labels.pixels.size(); i += 2) {
    uint16_t label = 0;
    std::memcpy(&label, &labels.pixels[i], 2);
    ++sizes[label];
  }
  EXPECT_NEAR(static_cast<double>(sizes.size()), kTiles * kTiles * kNuclei + 1, 10);
  EXPECT_EQ(sizes.rbegin()->first + 1U, sizes.size());  // no gaps
  int64_t small = 0;  // nuclei have 262 pixels; a seam meets 70 of them
  for (const auto& [label, size] : sizes) small += size < 200 ? 1 : 0;
  EXPECT_LE(small, 2);
}

TEST(ModelsAtHand, AServerWithoutAModelOffersThoseThatMakeImages) {
  const test::TmpDir dir;
  const Outcome outcome = shell("cd '" + dir.path() +
                                "' && \"$BIN/serve\" --json port=0 until_stdin=true "
                                "trainer.accelerator=cpu < /dev/null");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\"model\":[\"hippocampus\",\"nuclei\"]"), std::string::npos)
      << outcome.out;
}

TEST(ModelsAtHand, NamesAreFoundAndPathsComeFirst) {
  const test::TmpDir dir;
  io::write_png(dir / "a.png", nuclei(20, 64));
  const std::string predict = "cd '" + dir.path() +
                              "' && \"$BIN/predict\" data.path=a.png trainer.accelerator=cpu "
                              "paths.output_dir=out checkpoint.ckpt_path=";
  Outcome outcome = shell(predict + "nuclie");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("Did you mean 'nuclei'?"), std::string::npos) << outcome.err;

  fs::create_directory(dir / "mine");
  fs::copy_file(CYTRA_SOURCE_DIR "/models/nuclei.ckpt", dir / "mine/cells.ckpt");
  std::ofstream(dir / "mine/cells.md") << "---\ntask: cells of ours\n---\nA card.\n";
  outcome = shell("CYTRA_MODELS='/nowhere:" + (dir / "mine") + "' \"$BIN/cytra\" models");
  EXPECT_NE(outcome.out.find("cells\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("cells of ours"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("nuclei\n"), std::string::npos) << outcome.out;
  outcome = shell("export CYTRA_MODELS=mine; " + predict + "cells");
  EXPECT_EQ(outcome.code, 0) << outcome.err;

  std::ofstream(dir / "nuclei") << "no model";
  outcome = shell(predict + "nuclei");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("this path is taken, not the model at hand"), std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace cytra
