// configs/debug: each with an experiment that it overrides.
#include <filesystem>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using test::Outcome;

class Debug : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new test::TmpDir();
    const Outcome made = test::shell("\"$BIN/generate_samples\" --output '" + at("samples") +
                                     "' --train 2 --valid 1 --test 1 --size 48 --seed 3");
    ASSERT_EQ(made.code, 0) << made.err;
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }
  static std::string at(const std::string& name) { return *dir_ / name; }
  /// Two batches of one sample in an epoch; the run folder is at(name).
  static Outcome train(const std::string& name, const std::string& more) {
    Outcome outcome = test::shell(
        "\"$BIN/train\" experiment=im2im/segmentation "
        "trainer.steps_per_epoch=null trainer.accelerator=cpu data.batch_size=1 "
        "'patch_shape=[16,16]' 'model.filters=[4,4,4]' logger=none 'data.path=" +
        at("samples") + "' 'paths.output_dir=" + at(name) + "' " + more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err.find("Warning"), std::string::npos) << outcome.err;
    return outcome;
  }
  static bool trained(const Outcome& outcome, int steps) {
    return outcome.out.find("steps: " + std::to_string(steps) + "\n") != std::string::npos;
  }
  static bool has_checkpoint(const std::string& name) {
    return fs::exists(at(name) + "/checkpoints/last.ckpt");
  }
  static std::string trace_of(const std::string& name) {
    for (const auto& entry : fs::directory_iterator(at(name) + "/profiler")) {
      if (entry.path().string().find(".1.pt.trace.json") != std::string::npos)
        return read_file(entry.path().string());
    }
    return "";
  }
  static test::TmpDir* dir_;
};
test::TmpDir* Debug::dir_ = nullptr;

TEST_F(Debug, DefaultIsOneEpoch) {
  EXPECT_TRUE(trained(train("default", "debug=default"), 2));
  EXPECT_TRUE(has_checkpoint("default"));
}

TEST_F(Debug, ItsValuesWinOverTheExperiments) {  // 100 epochs
  EXPECT_TRUE(trained(train("limit", "debug=limit"), 4));
  EXPECT_TRUE(trained(train("command_line", "debug=limit trainer.max_epochs=1"), 2));
}

TEST_F(Debug, FastDevRunIsOneBatch) {
  EXPECT_TRUE(trained(train("fdr", "debug=fdr"), 1));
  EXPECT_FALSE(has_checkpoint("fdr"));
}

TEST_F(Debug, OverfitKeepsNoCheckpoint) {
  EXPECT_TRUE(
      trained(train("overfit", "debug=overfit callbacks=early_stopping trainer.max_epochs=2"), 4));
  EXPECT_FALSE(has_checkpoint("overfit"));
}

TEST_F(Debug, ProfilerWritesTraceAndTable) {
  EXPECT_TRUE(trained(train("profiler", "debug=profiler"), 5));
  const std::string trace = trace_of("profiler");
  for (const char* name : {"ProfilerStep#2",
                           "ProfilerStep#4",
                           "aten::convolution",
                           "\"forward\"",
                           "\"backward\"",
                           "\"optimizer\"",
                           "\"data\"",
                           "\"validation\""})
    EXPECT_NE(trace.find(name), std::string::npos) << name;
  EXPECT_EQ(trace.find("ProfilerStep#1\""), std::string::npos);
  EXPECT_NE(read_file(at("profiler/profiler/table.txt")).find("ProfilerStep*"), std::string::npos);
}

TEST_F(Debug, ProfileGpuTellsWhenThereIsNone) {
  const Outcome outcome = train("gpu", "debug=profile_gpu");
  const std::string note = "the model is on the CPU, nothing of a GPU is recorded";
  const std::size_t place = outcome.err.find(note);
  ASSERT_NE(place, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find(note, place + 1), std::string::npos);
  EXPECT_NE(trace_of("gpu").find("aten::convolution"), std::string::npos);
}

TEST_F(Debug, ProfileMemoryWritesItsCourse) {
  const Outcome outcome = train("memory", "debug=profile_memory");
  EXPECT_NE(outcome.err.find("peak by phase"), std::string::npos) << outcome.err;
  EXPECT_NE(read_file(at("memory/profiler/memory.json")).find("\"forward\""), std::string::npos);
  EXPECT_TRUE(fs::exists(at("memory/profiler/memory.svg")));
}

TEST_F(Debug, SimpleIsAWord) {
  train("simple", "trainer.profiler=simple trainer.max_steps=2");
  const std::string table = read_file(at("simple/profiler/table.txt"));
  for (const char* name : {"forward", "checkpoint", "callbacks.model_checkpoint.on_validation_end"})
    EXPECT_NE(table.find(name), std::string::npos) << name;
}

TEST_F(Debug, AnUnknownProfilerIsAMistake) {
  const Outcome outcome =
      test::shell("\"$BIN/train\" trainer.profiler=simpel 'data.path=" + at("samples") +
                  "' 'paths.output_dir=" + at("wrong") + "'");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("trainer.profiler"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("advanced"), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(at("wrong")));
}

TEST_F(Debug, TransfersAreForbiddenInAStepThatHasNone) {
  train("transfers",
        "trainer.profiler=transfers performance.forbid_transfers=error trainer.max_steps=3");
  const std::string table = read_file(at("transfers/profiler/table.txt"));
  EXPECT_NE(table.find("Phase: operation"), std::string::npos) << table;
  EXPECT_NE(table.find("optimizer: aten::item"), std::string::npos) << table;
  EXPECT_EQ(table.find("forward: aten::item"), std::string::npos) << table;
  const Outcome wrong = test::shell("\"$BIN/train\" performance.forbid_transfers=eror data.path=x");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("expected one of warn, error, got 'eror'"), std::string::npos)
      << wrong.err;
}

TEST_F(Debug, ARehearsalOnTheHostSeesWhatACallbackWouldWaitFor) {
  const Outcome outcome = test::shell(
      "\"$BIN/train\" experiment=im2im/segmentation trainer.accelerator=cpu trainer.max_steps=3 "
      "patch_shape=[32,32] model.filters=[4,8,8] performance.forbid_transfers=error logger=csv "
      "+callbacks.gradients._target_=GradientLogging +callbacks.gradients.every_n_steps=1 "
      "'data.path=" +
      at("samples") + "' 'paths.output_dir=" + at("gradients") + "'");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("makes the host wait for the device (to host in "
                             "callbacks.gradients.on_before_step)"),
            std::string::npos)
      << outcome.err;
}

TEST_F(Debug, TimersAreInTheLogsAndAtTheEnd) {
  const Outcome outcome = train("timers", "'logger=[csv,html,timer]' trainer.max_steps=3");
  EXPECT_NE(outcome.err.find("times of scopes"), std::string::npos) << outcome.err;
  EXPECT_NE(read_file(at("timers/csv/version_0/metrics.csv")).find("timer/forward/p95_s"),
            std::string::npos);
  EXPECT_NE(read_file(at("timers/report.html")).find("p95 (ms)"), std::string::npos);
  const Outcome predicted =
      test::shell("\"$BIN/predict\" predict.timer=true 'checkpoint.ckpt_path=" +
                  at("timers/checkpoints/last.ckpt") + "' 'data.path=" + at("samples/images") +
                  "' 'paths.output_dir=" + at("masks") +
                  "' 'predict.prometheus=" + at("figures/predict.prom") + "'");
  EXPECT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_NE(predicted.err.find(" is what the others wait for: busy "), std::string::npos)
      << predicted.err;
  const std::string figures = read_file(at("figures/predict.prom"));
  for (const char* stage : {"read", "predict", "write"}) {
    const std::string line =
        std::string("cytra_stage_items_total{program=\"predict\",stage=\"") + stage + "\"} 16\n";
    EXPECT_NE(figures.find(line), std::string::npos) << line << figures;
  }
  EXPECT_NE(figures.find("cytra_images_failed_total{program=\"predict\"} 0\n"), std::string::npos)
      << figures;
  for (const char* stage : {"\nread ", "\npredict ", "\nwrite "})
    EXPECT_NE(predicted.err.find(stage), std::string::npos) << predicted.err;
}

}  // namespace
}  // namespace cytra
