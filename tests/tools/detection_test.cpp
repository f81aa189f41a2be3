// `train experiment=detection/cells` and `predict` with what it made.
#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.h"
#include "config/json.h"
#include "io/csv.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
using test::Outcome;

class DetectionPrograms : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new test::TmpDir();
    const Outcome made = test::shell("\"$BIN/generate_samples\" --output '" + at("samples") +
                                     "' --train 2 --valid 1 --test 2 --size 64 --seed 3");
    ASSERT_EQ(made.code, 0) << made.err;
    trained_ = test::shell(
        "\"$BIN/train\" experiment=detection/cells trainer.accelerator=cpu trainer.max_steps=2 "
        "patch_shape=[32,32] model.filters=[8,8,8] model.width=32 'data.path=" +
        at("samples") + "' 'paths.output_dir=" + at("run") + "'");
    ASSERT_EQ(trained_.code, 0) << trained_.err;
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }
  static std::string at(const std::string& name) { return *dir_ / name; }
  static Outcome predict(const std::string& name, const std::string& more) {
    return test::shell("\"$BIN/predict\" 'checkpoint.ckpt_path=" + at("run/checkpoints/last.ckpt") +
                       "' trainer.accelerator=cpu 'paths.output_dir=" + at(name) + "' " + more);
  }
  static test::TmpDir* dir_;
  static Outcome trained_;
};
test::TmpDir* DetectionPrograms::dir_ = nullptr;
Outcome DetectionPrograms::trained_{};

TEST_F(DetectionPrograms, BoxesAreWrittenAsTableAndCoco) {
  EXPECT_NE(trained_.out.find("val/map_50: "), std::string::npos) << trained_.out;
  const Outcome outcome =
      predict("out", "predict.threshold=0 'data.path=" + at("samples/test.csv") + "'");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const io::Table table = io::read_table(at("out/detections.csv"));
  EXPECT_EQ(table.columns,
            (std::vector<std::string>{"image", "x0", "y0", "x1", "y1", "score", "class"}));
  ASSERT_GT(table.rows.size(), 0U);
  const config::Node coco =
      config::parse_json(read_file(at("out/detections.json")), "detections.json");
  EXPECT_EQ(coco.at("images").list.size(), 2U);
  ASSERT_EQ(coco.at("annotations").list.size(), table.rows.size());
  const auto box = coco.at("annotations").list[0].get<std::vector<double>>("bbox");
  EXPECT_NEAR(box.at(0) + box.at(2), std::stod(table.rows[0][3]), 1e-3);
  EXPECT_NEAR(box.at(1) + box.at(3), std::stod(table.rows[0][4]), 1e-3);
  EXPECT_TRUE(std::filesystem::exists(at("out/test_0000_raw_overlay.png")));
}

TEST_F(DetectionPrograms, AnImageThatCannotBeReadIsLeftOut) {
  std::filesystem::create_directories(at("images"));
  std::filesystem::copy_file(at("samples/images/test_0000_raw.ome.tif"), at("images/a.ome.tif"));
  write_file(at("images/b.tif"), "no image");
  const Outcome outcome =
      predict("bad", "data.batch_size=2 predict.overlay=false 'data.path=" + at("images") + "'");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_NE(outcome.out.find("failed: "), std::string::npos) << outcome.out;
  EXPECT_TRUE(std::filesystem::exists(at("bad/detections.csv")));
  EXPECT_FALSE(std::filesystem::exists(at("bad/a_overlay.png")));
}

TEST_F(DetectionPrograms, OptionsOfOtherTasksAreRefused) {
  for (const std::string key : {"predict.resume=true", "performance.quantization=int8"}) {
    const Outcome outcome = predict("refused", key + " 'data.path=" + at("samples/test.csv") + "'");
    EXPECT_EQ(outcome.code, 2);
    const std::string name = key.substr(0, key.find('='));
    EXPECT_NE(outcome.err.find(name + ": a detector gives boxes"), std::string::npos)
        << outcome.err;
  }
}

}  // namespace
}  // namespace cytra
