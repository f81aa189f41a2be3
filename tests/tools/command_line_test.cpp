// What the programs make of what is typed.
#include <fstream>

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/strings.h"
#include "config/node.h"
#include "tests/support/program.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {
using test::Outcome;
using test::shell;

std::string benchmark(const std::string& words) {
  return "cd " CYTRA_SOURCE_DIR
         " && \"$BIN/benchmark_performance\" trainer.accelerator=cpu warmup=0 repeats=1 " +
         words;
}

void expect_mistake(const std::string& command, const std::vector<std::string>& parts) {
  SCOPED_TRACE(command);
  const Outcome outcome = shell(command);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  for (const std::string& part : parts)
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " is not in: " << outcome.err;
}

TEST(CommandLine, AProgramAloneShowsItsCommonestLines) {
  for (const char* program : {"train",
                              "predict",
                              "benchmark_performance",
                              "export_model",
                              "preprocess_fundus",
                              "process_video"}) {
    const Outcome outcome = shell(std::string("\"$BIN/") + program + "\"");
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    const std::vector<std::string> lines = split(trim(outcome.err), '\n');
    ASSERT_EQ(lines.size(), 6U) << outcome.err;
    EXPECT_TRUE(lines[0].starts_with(std::string(program) + " - ")) << lines[0];
    for (const int line : {2, 3})
      EXPECT_TRUE(lines[line].starts_with(std::string("  ") + program + " ")) << lines[line];
    EXPECT_NE(lines[5].find("--help"), std::string::npos);
  }
}

TEST(CommandLine, AStrayBracketOrQuoteIsAMistake) {
  for (const char* word : {"+k=]", "run_name=a'", "run_name=a[0", "+k={", "run_name='a", "seed=1]"})
    expect_mistake("\"$BIN/train\" --cfg job \"" + std::string(word) + "\"",
                   {"command line '" + std::string(word) + "'", "expected"});
}

TEST(CommandLine, ABenchmarkTakesAnExperimentsOverrides) {
  for (const char* config : {"im2im/segmentation",
                             "configs/experiment/im2im/segmentation.yaml",
                             "experiment/im2im/segmentation"}) {
    const Outcome outcome = shell(benchmark(std::string("--config ") + config +
                                            " model.filters=[4,4,8] raw_im_channels=2 "
                                            "--input-shape 1 2 16 16 --json"));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const config::Node report = config::parse_yaml(outcome.out, "report");
    EXPECT_EQ(config::to_json(report.at("model.filters")), "[4,4,8]");
    EXPECT_GT(report.get<double>("inference.1.fp32.median_ms"), 0);
  }
  const Outcome usual = shell(benchmark("experiment=im2im/segmentation_3d model.filters=[2,2,2]"));
  EXPECT_EQ(usual.code, 0) << usual.err;
  EXPECT_NE(usual.err.find("input (1,1,64,64,64)"), std::string::npos) << usual.err;
}

config::Node report_of(const std::string& words) {
  const Outcome outcome = shell(benchmark(words + " --json"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return config::parse_yaml(outcome.out, "report");
}

TEST(CommandLine, ABenchmarkMeasuresWhatItsExperimentSays) {
  const std::string small = "--config im2im/segmentation model.filters=[4,4,8] ";
  const std::string in_bf16 = small + "trainer.precision=bf16-mixed --input-shape 1 1 16 16 ";
  EXPECT_EQ(report_of(in_bf16).at("inference.1").keys(), std::vector<std::string>{"bf16"});
  const config::Node training = report_of(in_bf16 + "--train-step --batch-sizes 1 2");
  EXPECT_FALSE(training.has("inference"));
  EXPECT_GT(training.get<double>("training.2.bf16.median_ms"), 0);
  EXPECT_GT(training.get<double>("training.2.bf16.max_difference"), 0);
  const config::Node both = report_of(in_bf16 + "--train --inference");
  EXPECT_TRUE(both.has("inference.1.bf16") && both.has("training.1.bf16"));
}

TEST(CommandLine, ABenchmarkTakesThreeSidesForA3DModel) {
  const std::string words =
      "--config configs/experiment/im2im/segmentation.yaml --input-shape 1 1 16 32 32 --json";
  const Outcome outcome = shell(benchmark(words));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("spatial_dims=3 patch_shape=[16,32,32]"), std::string::npos);
  EXPECT_EQ(config::parse_yaml(outcome.out, "report").get<int64_t>("model.spatial_dims"), 3);
  expect_mistake(benchmark("--config im2im/segmentation spatial_dims=2 --input-shape 1 1 16 32 32"),
                 {"--input-shape 1 1 16 32 32: ", "expected N C H W"});
}

TEST(CommandLine, ABenchmarkFailsWhereItIsSlowerThanItsBaseline) {
  const test::TmpDir dir;
  const std::string before = dir.path() + "/b[1], old.json", page = dir.path() + "/r.html";
  const std::string words =
      "--config im2im/segmentation model.filters=[4,4,8] --input-shape 1 1 16 16 ";
  const Outcome first = shell(benchmark(words + "--output '" + before + "' '" + page + "'"));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_NE(read_file(page).find("<svg"), std::string::npos);
  config::Node report = config::parse_yaml(read_file(before), before);
  EXPECT_GT(report.get<double>("roofline.product_flops_per_s.fp32"), 0);
  EXPECT_GT(report.get<double>("inference.1.fp32.share_of_peak"), 0);

  const std::string against = words + "--baseline '" + before + "' ";
  EXPECT_EQ(shell(benchmark(against + "--threshold 1000000")).code, 0);
  for (const char* key : {"median_ms", "min_ms", "max_ms"})  // as of a far faster program
    report.find("inference.1.fp32")->set(key, config::parse_yaml("1.0e-6", "time"));
  std::ofstream(before) << config::to_json(report);
  const Outcome slower = shell(benchmark(against + "--threshold 5"));
  EXPECT_EQ(slower.code, 8) << slower.err;
  EXPECT_NE(slower.err.find("slower than before: inference, batch 1, fp32"), std::string::npos);
  EXPECT_NE(slower.out.find("slower"), std::string::npos) << slower.out;
  EXPECT_EQ(shell(benchmark(against)).code, 0) << "marked, without a threshold";
  expect_mistake(benchmark(against + "model.filters=[4,4,4]"),
                 {"--baseline ", "model.filters=[4,4,4]"});
  expect_mistake(benchmark(words + "--threshold 5"), {"--threshold needs --baseline"});
  expect_mistake(benchmark(words + "--output x.txt"), {"--output x.txt", "NAME.html"});
}

TEST(CommandLine, ABenchmarksMistakesSpeakOfItsFlags) {
  const std::string small = "--config im2im/segmentation model.filters=[4,4,8] ";
  expect_mistake(benchmark("--input-shape 1 1 32 32"), {"--config EXPERIMENT", "--ckpt"});
  expect_mistake(benchmark("--config im2im/segmentatoin"),
                 {"--config im2im/segmentatoin: ", "'im2im/segmentation'"});
  expect_mistake(benchmark(small + "model.filtres=[4]"), {"model.filtres", "'model.filters'"});
  expect_mistake(benchmark(small + "--input-shape 1 1 32"),
                 {"--input-shape 1 1 32: ", "expected N C H W"});
  expect_mistake(benchmark(small + "--input-shape 1 3 32 32"), {"3 channels, the model takes 1"});
  expect_mistake(benchmark(small + "--input-shape 1 1 30 32"), {"multiples of 4 4"});
  expect_mistake(benchmark(small + "--batch-sizes 0"), {"--batch-sizes"});
  expect_mistake(benchmark("--ckpt x.ckpt model.filters=[4]"),
                 {"model.filters=[4]", "--config EXPERIMENT"});
  expect_mistake(benchmark("--ckpt \"it's, [1].ckpt\""), {"it's, [1].ckpt: "});
  expect_mistake(benchmark("warmpu=3"), {"warmpu=3", "not a key of benchmark_performance"});
}

}  // namespace
}  // namespace cytra
