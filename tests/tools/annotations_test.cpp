// Trainings on annotations in place of images, and predictions that are annotations again.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "io/image.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using test::Outcome;
using test::shell;

/// Five images of two bright squares, 64 x 64 pixels, whose places are known.
class Annotated : public ::testing::Test {
 protected:
  static constexpr int kSide = 64;
  Annotated() {
    for (int i = 0; i < 5; ++i) {
      io::Image image;
      image.shape = {1, 1, kSide, kSide};
      image.pixels.assign(image.bytes(), 10);
      for (int y = 8 + i; y < 28 + i; ++y) {
        for (const int x0 : {6, 34})
          for (int x = x0; x < x0 + 20; ++x)
            image.pixels[static_cast<std::size_t>(y * kSide + x)] = x0 == 6 ? 200 : 120;
      }
      fs::create_directories(dir_ / "images");
      io::write_png(dir_ / "images/" + std::to_string(i) + ".png", image);
    }
  }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(dir_ / name).parent_path());
    std::ofstream(dir_ / name) << text;
  }
  /// QuPath's, of two classes.
  void write_geojson() {
    for (int i = 0; i < 5; ++i) {
      std::string features;
      for (const int x : {6, 34}) {
        const int top = 8 + i, right = x + 20, end = top + 20;
        nlohmann::json feature{
            {"type", "Feature"},
            {"properties", {{"classification", {{"name", x == 6 ? "bright cell" : "dim"}}}}},
            {"geometry",
             {{"type", "Polygon"},
              {"coordinates", {{{x, top}, {right, top}, {right, end}, {x, end}, {x, top}}}}}}};
        features += (features.empty() ? "" : ",") + feature.dump();
      }
      write("annotations/" + std::to_string(i) + ".geojson",
            "{\"type\":\"FeatureCollection\",\"features\":[" + features + "]}");
    }
  }
  Outcome train(const std::string& experiment, const std::string& more) {
    return shell("$BIN/train experiment=" + experiment +
                 " trainer.accelerator=cpu performance.num_threads=1 data.num_workers=0 "
                 "patch_shape=[32,32] trainer.max_steps=2 data=folder "
                 "'data.folders=[images,annotations]' 'data.path=" +
                 dir_.path() + "' 'paths.output_dir=" + (dir_ / "run") + "' " + more);
  }
  /// Of images with their annotations.
  Outcome predict(const std::string& more) {
    std::string table = "raw,seg\n";
    for (int i = 0; i < 5; ++i) {
      table +=
          "images/" + std::to_string(i) + ".png,annotations/" + std::to_string(i) + ".geojson\n";
    }
    write("all.csv", table);
    return shell("$BIN/predict 'checkpoint.ckpt_path=" + (dir_ / "run/checkpoints/last.ckpt") +
                 "' trainer.accelerator=cpu 'paths.output_dir=" + (dir_ / "out") +
                 "' 'data.path=" + (dir_ / "all.csv") + "' " + more);
  }
  const std::string small_ =
      "model.filters=[4,4,8] 'model.kernel_size=[[3,3],[3,3],[3,3]]' "
      "'model.strides=[1,2,2]' 'model.upsample_kernel_size=[2,2]'";
  test::TmpDir dir_;
};

TEST_F(Annotated, ClassesOfQuPathAreLearnedByName) {
  write_geojson();
  const Outcome wrong = train("im2im/segmentation", "num_classes=2 " + small_);
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("2 classes: bright cell, dim; set num_classes=3"), std::string::npos)
      << wrong.err;
  EXPECT_FALSE(fs::exists(dir_ / "run"));
  const Outcome run = train("im2im/segmentation", "num_classes=3 " + small_);
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.err.find("class_names: bright cell, dim"), std::string::npos) << run.err;
  EXPECT_NE((run.out + run.err).find("dice_bright_cell"), std::string::npos) << run.out << run.err;
  const Outcome scored = predict("data.with_target=true predict.overlay=false");
  EXPECT_EQ(scored.code, 0) << scored.err;
  EXPECT_NE(scored.out.find("dice_dim: "), std::string::npos) << scored.out << scored.err;
  // What was predicted is a target with the same classes.
  const Outcome drawn = predict(
      "predict.contours=geojson predict.overlay=false 'paths.output_dir=" + (dir_ / "drawn") + "'");
  ASSERT_EQ(drawn.code, 0) << drawn.err;
  std::string names;
  for (int i = 0; i < 5; ++i) {
    const auto found =
        nlohmann::json::parse(read_file(dir_ / "drawn/" + std::to_string(i) + ".geojson"));
    for (const auto& feature : found["features"])
      names += feature["properties"]["classification"]["name"].get<std::string>() + ",";
    fs::copy_file(dir_ / "drawn/" + std::to_string(i) + ".geojson",
                  dir_ / "annotations/" + std::to_string(i) + ".geojson",
                  fs::copy_options::overwrite_existing);
  }
  EXPECT_TRUE(names.find("bright cell,") != std::string::npos ||
              names.find("dim,") != std::string::npos)
      << names;
  EXPECT_EQ(names.find("class_"), std::string::npos) << names;
  const Outcome again = train(
      "im2im/segmentation", "num_classes=3 'class_names=[bright cell,dim]' --check-data " + small_);
  EXPECT_EQ(again.code, 0) << again.out << again.err;
}

TEST_F(Annotated, TheirCheckReadsThemAsTheTrainingDoes) {
  write_geojson();
  Outcome run = train("im2im/segmentation", "num_classes=3 --check-data " + small_);
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_NE(run.out.find("2: 1600 voxels"), std::string::npos) << run.out;
  write("annotations/2.geojson", "{\"features\": [{\"type\": \"Feature\", \"geometry\": {}}]}");
  run = train("im2im/instance", "--check-data " + small_);
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.out.find("2.geojson: features[0]"), std::string::npos) << run.out;
}

TEST_F(Annotated, InstancesArePredictedAsAnnotationsAgain) {
  write_geojson();
  const Outcome run = train("im2im/instance", small_);
  ASSERT_EQ(run.code, 0) << run.err;
  const Outcome scored = predict("data.with_target=true predict.overlay=false");
  EXPECT_EQ(scored.code, 0) << scored.err;
  EXPECT_NE(scored.out.find("ap: "), std::string::npos) << scored.out << scored.err;
}

TEST_F(Annotated, BoxesOfTwoClassesAreLearnedFromYolo) {
  for (int i = 0; i < 5; ++i) {
    const std::string y = std::to_string((18.0 + i) / kSide);
    write("annotations/" + std::to_string(i) + ".txt",
          "0 0.25 " + y + " 0.3125 0.3125\n1 0.6875 " + y + " 0.3125 0.3125\n" + "1 0.5 " + y +
              " 0.6 0.3\n");  // one over the others
  }
  write("data.yaml", "nc: 2\nnames: [bright, dim]\n");
  const std::string small = " model.filters=[8,8,8] model.width=32";
  const Outcome run = train("detection/cells", "num_classes=2" + small);
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE((run.out + run.err).find("map_bright"), std::string::npos) << run.out << run.err;
  const Outcome found =
      shell("$BIN/predict 'checkpoint.ckpt_path=" + (dir_ / "run/checkpoints/last.ckpt") +
            "' trainer.accelerator=cpu predict.threshold=0 'paths.output_dir=" + (dir_ / "out") +
            "' 'data.path=" + (dir_ / "images") + "'");
  ASSERT_EQ(found.code, 0) << found.err;
  const auto coco = nlohmann::json::parse(read_file(dir_ / "out/detections.json"));
  EXPECT_EQ(coco["categories"][1]["name"], "dim");
  // What was found is learned in turn.
  fs::remove_all(dir_ / "run");
  fs::remove_all(dir_ / "annotations");
  fs::create_directories(dir_ / "annotations");
  fs::copy_file(dir_ / "out/detections.json", dir_ / "annotations/found.json");
  const Outcome again = train("detection/cells", "num_classes=2" + small);
  EXPECT_EQ(again.code, 0) << again.err;
  const Outcome listed = shell(
      "$BIN/train experiment=detection/cells trainer.accelerator=cpu data.num_workers=0 "
      "patch_shape=[32,32] data=coco num_classes=2 --check-data 'data.path=" +
      (dir_ / "out/detections.json") + "'" + small);
  EXPECT_EQ(listed.code, 0) << listed.out << listed.err;
}

}  // namespace
}  // namespace cytra
