// `train experiment=detection/cells` and `predict` with what it made.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/strings.h"
#include "config/json.h"
#include "io/csv.h"
#include "io/reader.h"
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

TEST_F(DetectionPrograms, AnImageWhoseOutputIsNotFiniteIsLeftOut) {
  std::filesystem::create_directories(at("finite"));
  std::filesystem::copy_file(at("samples/images/test_0000_raw.ome.tif"), at("finite/a.ome.tif"));
  io::Image image;
  image.dtype = io::Dtype::f32;
  image.shape = {1, 1, 64, 64};
  image.pixels.resize(image.bytes());
  for (std::size_t i = 0; i < 64 * 64; ++i) {
    const float value = i % 4 == 0 ? -3e38F : 3e38F;  // beyond float32 once the mean is subtracted
    std::memcpy(image.pixels.data() + i * sizeof(value), &value, sizeof(value));
  }
  io::write_ome_tiff(at("finite/b.ome.tif"), image);
  const std::string images = "predict.overlay=false 'data.path=" + at("finite") + "' ";
  for (const std::string batch : {"1", "2"}) {
    const Outcome outcome = predict("finite_" + batch, images + "data.batch_size=" + batch);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find("1 of 2 images predicted"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.out.find("failed: " + at("finite/b.ome.tif")), std::string::npos)
        << outcome.out;
    EXPECT_TRUE(std::filesystem::exists(at("finite_" + batch + "/detections.csv")));
  }
}

TEST_F(DetectionPrograms, LargeImagesAreSearchedByWindows) {
  const std::string data =
      "predict.threshold=0 predict.overlay=false 'data.path=" + at("samples/test.csv") +
      "' inference_args.roi_size=";
  const auto table = [&](const std::string& name, const std::string& more) {
    const Outcome outcome = predict(name, data + more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read_file(at(name + "/detections.csv"));
  };
  const std::string whole = table("whole", "AUTO"), one = table("one_window", "64");
  EXPECT_EQ(one, whole) << "images of one window";
  EXPECT_NE(table("windows", "[32,48] inference_args.overlap=0.5"), whole);
  const Outcome refused = predict("refused", data + "32 inference_args.mode=constant");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(
      refused.err.find("command line 'inference_args.mode=constant': inference_args.mode: this "
                       "option is not for a detector"),
      std::string::npos)
      << refused.err;
}

TEST_F(DetectionPrograms, AKilledRunGoesOn) {
  const std::string data = "predict.threshold=0 'data.path=" + at("samples/test.csv") + "'";
  ASSERT_EQ(predict("undisturbed", data).code, 0);
  const std::string csv = read_file(at("undisturbed/detections.csv"));
  const std::string coco = read_file(at("undisturbed/detections.json"));
  ASSERT_EQ(predict("killed", data + " trainer.limit_predict_batches=1").code, 0);
  const std::string first = read_file(at("killed/detections.jsonl"));
  // As kill -9 leaves it: one image done, a line cut short, a table half written.
  std::ofstream(at("killed/detections.jsonl")) << first + first.substr(0, first.size() / 2);
  std::filesystem::remove(at("killed/detections.csv"));
  const Outcome resumed = predict("killed", data + " --resume");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("2 of 2 images predicted in"), std::string::npos) << resumed.err;
  EXPECT_NE(resumed.err.find(", 1 of them before"), std::string::npos) << resumed.err;
  EXPECT_EQ(read_file(at("killed/detections.csv")), csv);
  EXPECT_EQ(read_file(at("killed/detections.json")), coco);
  std::filesystem::remove(at("killed/test_0001_raw_overlay.png"));
  const Outcome again = predict("killed", data + " --resume");
  EXPECT_NE(again.err.find(", 1 of them before"), std::string::npos) << again.err;
  EXPECT_TRUE(std::filesystem::exists(at("killed/test_0001_raw_overlay.png")));
  const Outcome other = predict("killed", data + " --resume inference_args.roi_size=32");
  EXPECT_EQ(other.err.find("of them before"), std::string::npos) << "other settings: " << other.err;
}

TEST_F(DetectionPrograms, ACutIsTold) {
  const std::string images = "predict.threshold=0 'data.path=" + at("samples/test.csv") + "' ";
  const Outcome cut = predict("cut", images + "predict.max_detections=3");
  ASSERT_EQ(cut.code, 0) << cut.err;
  EXPECT_EQ(io::read_table(at("cut/detections.csv")).rows.size(), 6U);
  EXPECT_NE(cut.err.find("2 images or windows have 3 objects, as many as predict.max_detections"),
            std::string::npos)
      << cut.err;
  const Outcome whole = predict("whole", images);
  EXPECT_EQ(whole.err.find("predict.max_detections"), std::string::npos) << whole.err;
}

TEST_F(DetectionPrograms, ProcessesShareTheImages) {
  const std::string data = "predict.threshold=0 'data.path=" + at("samples/test.csv") + "' ";
  ASSERT_EQ(predict("one", data).code, 0);
  const Outcome two =
      predict("two", data + "trainer.devices=3 'predict.prometheus=" + at("f.prom") + "'");
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_NE(two.err.find("2 of 2 images predicted"), std::string::npos) << two.err;
  for (const char* table : {"/detections.csv", "/detections.json"})
    EXPECT_EQ(read_file(at("two") + table), read_file(at("one") + table));
  EXPECT_NE(read_file(at("f.prom")).find("cytra_stage_items_total"), std::string::npos);
  std::filesystem::remove(at("two/test_0001_raw_overlay.png"));
  const Outcome again = predict("two", data + "trainer.devices=2 --resume");
  EXPECT_NE(again.err.find(", 1 of them before"), std::string::npos) << again.err;
  EXPECT_EQ(read_file(at("two/detections.csv")), read_file(at("one/detections.csv")));
  const Outcome plan = predict("none", data + "--dry-run");
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_NE(plan.out.find("seconds: "), std::string::npos) << plan.out;
  EXPECT_FALSE(std::filesystem::exists(at("none")));
}

TEST_F(DetectionPrograms, OptionsOfOtherTasksAreRefused) {
  for (const std::string key : {"data.with_target=true",
                                "performance.quantization=int8",
                                "predict.save=entropy",
                                "predict.temperature=2",
                                "predict.max_memory_mb=500",
                                "predict.frames=together",
                                "tta.mirror_axes=[0]"}) {
    const Outcome outcome = predict("refused", key + " 'data.path=" + at("samples/test.csv") + "'");
    EXPECT_EQ(outcome.code, 2);
    const std::string name = key.substr(0, key.find(key[0] == 't' ? '.' : '='));
    EXPECT_NE(outcome.err.find(name + ": this option is not for a detector, which gives boxes"),
              std::string::npos)
        << outcome.err;
  }
}

TEST_F(DetectionPrograms, OnlyTheWeightsOfADetectorAreExported) {
  const auto exported = [](const std::string& format) {
    return test::shell(
        "\"$BIN/export_model\" 'checkpoint.ckpt_path=" + at("run/checkpoints/last.ckpt") +
        "' 'output=" + at("exported") + "' format=" + format);
  };
  for (const std::string format : {"torchscript", "onnx"}) {
    const Outcome refused = exported(format);
    EXPECT_EQ(refused.code, 2);
    EXPECT_NE(refused.err.find("is a detector"), std::string::npos) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(at("exported")));
  }
  EXPECT_EQ(exported("safetensors").code, 0);
}

TEST_F(DetectionPrograms, ATrainingNamesWhatTakesItsModel) {
  EXPECT_NE(trained_.err.find("\npredict: "), std::string::npos) << trained_.err;
  const Outcome prompted = test::shell(
      "\"$BIN/train\" experiment=promptable/cells trainer.accelerator=cpu trainer.max_steps=1 "
      "model.img_size=64 'data.path=" +
      at("samples") + "' 'paths.output_dir=" + at("prompted") + "'");
  ASSERT_EQ(prompted.code, 0) << prompted.err;
  EXPECT_NE(prompted.err.find("batch_segment IMAGE_OR_FOLDER_OR_CSV --detector"), std::string::npos)
      << prompted.err;
  EXPECT_EQ(prompted.err.find("\npredict: "), std::string::npos) << prompted.err;
  // Larger images are cut into tiles of a small segmenter's square: what was made so is done.
  const auto lines_with = [&](const std::string& more) {
    const Outcome outcome = test::shell(
        "\"$BIN/batch_segment\" '" + at("samples/images/test_0000_raw.ome.tif") + "' --detector '" +
        at("run/checkpoints/last.ckpt") + "' --segmenter '" + at("prompted/checkpoints/last.ckpt") +
        "' trainer.accelerator=cpu 'paths.output_dir=" + at("segmented") + "' " + more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return std::ranges::count(read_file(at("segmented/segmented.jsonl")), '\n');
  };
  const auto lines = lines_with("");
  EXPECT_EQ(lines_with("--resume segment.tile=64"), lines);
  EXPECT_GT(lines_with("--resume segment.tile=0"), lines);
}

/// The same weights, measured over 5 images that three processes can't share evenly.
TEST_F(DetectionPrograms, SeveralProcessesMeasureAsOne) {
  const Outcome made = test::shell("\"$BIN/generate_samples\" --output '" + at("more") +
                                   "' --train 4 --valid 5 --test 1 --size 64 --seed 5");
  ASSERT_EQ(made.code, 0) << made.err;
  const auto train = [&](const std::string& name, const std::string& more) {
    return test::shell(
        "\"$BIN/train\" experiment=detection/cells trainer.accelerator=cpu patch_shape=[64,64] "
        "model.filters=[8,16,16] model.width=32 performance.num_threads=1 'data.path=" +
        at("more") + "' 'paths.output_dir=" + at(name) + "' " + more);
  };
  const Outcome learned = train("learned", "trainer.max_steps=100 trainer.max_epochs=-1");
  ASSERT_EQ(learned.code, 0) << learned.err;
  const auto measured = [&](int devices) {
    const std::string name = "measured_" + std::to_string(devices);
    const Outcome outcome = train(
        name,
        "optimizer.lr=0 trainer.max_steps=1 data.batch_size=1 checkpoint.weights_only=true "
        "'checkpoint.ckpt_path=" +
            at("learned/checkpoints/last.ckpt") + "' trainer.devices=" + std::to_string(devices));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::map<std::string, double> values;
    for (const std::string& line : split(outcome.out, '\n')) {
      if (line.starts_with("val/"))
        values[line.substr(0, line.find(':'))] = std::stod(line.substr(line.find(':') + 2));
    }
    return values;
  };
  const auto one = measured(1);
  EXPECT_GT(one.at("val/map"), 0.05);
  EXPECT_LT(one.at("val/map_50"), 1);
  for (const int devices : {2, 3}) {
    const auto several = measured(devices);
    ASSERT_EQ(several.size(), one.size());
    for (const auto& [name, value] : one) EXPECT_NEAR(several.at(name), value, 1e-6) << name;
  }
}

}  // namespace
}  // namespace cytra
