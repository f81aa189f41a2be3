// How sure a prediction is: predict.save=entropy and variance, tta.dropout_samples.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "base/files.h"
#include "io/csv.h"
#include "io/reader.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
using test::Outcome;
using test::shell;

class Uncertainty : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new test::TmpDir();
    const Outcome made = shell("\"$BIN/generate_samples\" --output '" + at("samples") +
                               "' --train 2 --valid 1 --test 2 --size 48 --seed 3");
    ASSERT_EQ(made.code, 0) << made.err;
    for (const std::string dropout : {"0", "0.3"}) {
      const Outcome trained = shell(
          "\"$BIN/train\" experiment=im2im/segmentation trainer.accelerator=cpu "
          "trainer.max_steps=2 "
          "patch_shape=[32,32] model.filters=[4,8,8] " +
          std::string(dropout == "0" ? "'metrics=[dice,calibration_error,temperature]' " : "") +
          "model.dropout=" + dropout + " 'data.path=" + at("samples") +
          "' 'paths.output_dir=" + at("run" + dropout) + "'");
      ASSERT_EQ(trained.code, 0) << trained.err;
    }
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }
  static std::string at(const std::string& name) { return *dir_ / name; }
  static Outcome predict(const std::string& dropout,
                         const std::string& out,
                         const std::string& more) {
    return shell("\"$BIN/predict\" 'checkpoint.ckpt_path=" + at("run" + dropout) +
                 "/checkpoints/last.ckpt' trainer.accelerator=cpu 'data.path=" +
                 at("samples/test.csv") + "' 'paths.output_dir=" + at(out) + "' " + more);
  }
  static std::vector<float> pixels(const std::string& path) {
    const io::Image image = io::read_image(path);
    EXPECT_EQ(image.dtype, io::Dtype::f32);
    std::vector<float> values(image.pixels.size() / 4);
    std::memcpy(values.data(), image.pixels.data(), image.pixels.size());
    return values;
  }
  static test::TmpDir* dir_;
};
test::TmpDir* Uncertainty::dir_ = nullptr;

TEST_F(Uncertainty, EntropyIsThatOfTheProbability) {
  ASSERT_EQ(predict("0", "p", "predict.save=probability").code, 0);
  const Outcome outcome = predict("0", "e", "predict.save=entropy");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string name = "/test_0000_raw.ome.tif";
  const std::vector<float> p = pixels(at("p") + name), entropy = pixels(at("e") + name);
  ASSERT_EQ(p.size(), entropy.size());
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double q = p[i];
    EXPECT_NEAR(entropy[i], -q * std::log(q) - (1 - q) * std::log(1 - q), 2e-6);
    sum += entropy[i];
  }
  // The table has the mean of each image, the least sure first, and a resumed run all of it again.
  const io::Table table = io::read_table(at("e/uncertainty.csv"));
  EXPECT_EQ(table.columns, (std::vector<std::string>{"image", "mean_entropy"}));
  ASSERT_EQ(table.rows.size(), 2U);
  bool is_there = false;
  for (const auto& row : table.rows) {
    if (row[0].find("test_0000_raw") == std::string::npos) continue;
    is_there = true;
    EXPECT_NEAR(std::stod(row[1]), sum / static_cast<double>(p.size()), 1e-5);
  }
  EXPECT_TRUE(is_there);
  EXPECT_GE(std::stod(table.rows[0][1]), std::stod(table.rows[1][1]));
  const std::string before = read_file(at("e/uncertainty.csv"));
  ASSERT_EQ(predict("0", "e", "predict.save=entropy --resume").code, 0);
  EXPECT_EQ(read_file(at("e/uncertainty.csv")), before);
}

TEST_F(Uncertainty, DropoutSamplesVaryAndRepeatThemselves) {
  const std::string words = "predict.save=variance tta.dropout_samples=4";
  for (const char* out : {"v1", "v2"}) {
    const Outcome outcome = predict("0.3", out, words);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  const std::string name = "/test_0001_raw.ome.tif";
  const std::vector<float> variance = pixels(at("v1") + name);
  EXPECT_EQ(variance, pixels(at("v2") + name));
  double most = 0;
  for (const float value : variance) {
    EXPECT_GE(value, 0);
    most = std::max<double>(most, value);
  }
  EXPECT_GT(most, 1e-5);
  EXPECT_LE(most, 0.25);
  EXPECT_EQ(io::read_table(at("v1/uncertainty.csv")).columns[1], "mean_variance");
}

TEST_F(Uncertainty, TheValidationsTemperatureIsKeptAndTaken) {
  const std::string log = read_file(at("run0/metrics.jsonl"));
  EXPECT_NE(log.find("\"val/calibration_error\""), std::string::npos);
  const std::size_t place = log.rfind("\"val/temperature\":");
  ASSERT_NE(place, std::string::npos);
  const double temperature = std::stod(log.substr(place + std::strlen("\"val/temperature\":")));
  ASSERT_EQ(predict("0", "one", "predict.save=logits").code, 0);
  const Outcome outcome = predict("0", "auto", "predict.save=logits predict.temperature=auto");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string name = "/test_0000_raw.ome.tif";
  const std::vector<float> plain = pixels(at("one") + name), scaled = pixels(at("auto") + name);
  for (std::size_t i = 0; i < plain.size(); ++i)
    EXPECT_NEAR(scaled[i] * temperature, plain[i], 1e-4 * (1 + std::abs(plain[i])));
  // Scores of masks go on without the metrics of probabilities.
  const Outcome scored = predict("0", "scored", "data.with_target=true");
  EXPECT_EQ(scored.code, 0) << scored.err;
  EXPECT_NE(scored.out.find("dice: "), std::string::npos) << scored.out;
}

TEST_F(Uncertainty, WhatCanNotBeIsToldOnce) {
  for (const auto& [words, expected] : std::vector<std::pair<std::string, std::string>>{
           {"predict.save=variance", "there is one prediction; expected several"},
           {"tta.dropout_samples=3", "the model has no dropout"},
           {"tta.dropout_samples=3 performance.backend=torchscript", "expected eager"},
           {"predict.save=entropy predict.measurements=true", "are not objects"},
           {"predict.save=entropy data.with_target=true", "expected predict.save=mask"},
           {"predict.save=entropy predict.format=png", "holds no float32 values"},
           {"predict.temperature=0", "expected auto, or a number from 0.01 to 100"},
           {"predict.temperature=warm", "expected auto, or a number from 0.01 to 100"},
           {"predict.temperature=auto", "holds none; expected a number"}}) {
    SCOPED_TRACE(words);
    const bool has_temperature = words.find("=auto") == std::string::npos;
    const Outcome outcome = predict(has_temperature ? "0" : "0.3", "wrong", words);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find(expected), std::string::npos) << outcome.err;
  }
}

}  // namespace
}  // namespace cytra
