// What the programs make of what is typed.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "config/node.h"
#include "tests/support/program.h"

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
  for (const char* program : {"train", "predict", "benchmark_performance", "optimize", "export_model"}) {
    const Outcome outcome = shell(std::string("\"$BIN/") + program + "\"");
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    const std::vector<std::string> lines = split(trim(outcome.err), '\n');
    ASSERT_EQ(lines.size(), 6U) << outcome.err;
    EXPECT_TRUE(starts_with(lines[0], std::string(program) + " - ")) << lines[0];
    for (const int line : {2, 3})
      EXPECT_TRUE(starts_with(lines[line], std::string("  ") + program + " ")) << lines[line];
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
    EXPECT_GT(report.get<double>("inference.1.eager.median_ms"), 0);
  }
  const Outcome usual = shell(benchmark("experiment=im2im/segmentation_3d model.filters=[2,2,2]"));
  EXPECT_EQ(usual.code, 0) << usual.err;
  EXPECT_NE(usual.err.find("input (1,1,64,64,64)"), std::string::npos) << usual.err;
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
  expect_mistake(benchmark("warmpu=3"), {"warmpu=3", "no key of benchmark_performance"});
}

}  // namespace
}  // namespace cytra
