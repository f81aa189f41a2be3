// `optimize` on experiments whose fault is known.
#include <filesystem>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "config/node.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using test::Outcome;
using test::shell;

class OptimizeProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    const Outcome made = shell("\"$BIN/generate_samples\" --output '" + dir_.path() +
                               "/samples' --train 16 --valid 2 --test 0 --size 64 --seed 5");
    ASSERT_EQ(made.code, 0) << made.err;
  }
  std::string optimize(const std::string& more) const {
    return "\"$BIN/optimize\" experiment=im2im/segmentation trainer.accelerator=cpu "
           "'patch_shape=[16,16]' 'model.filters=[4,4,8]' performance.num_threads=1 'data.path=" +
           dir_.path() + "/samples' 'paths.output_dir=" + run_ + "' " + more;
  }
  test::TmpDir dir_;
  std::string run_ = dir_ / "run";
};

TEST_F(OptimizeProgram, NamesTheCallbackThatHoldsATrainingBack) {
  std::string command =
      "--detect-bottlenecks --seconds 1 --json 'patch_shape=[32,32]' data.batch_size=4";
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    command += std::string(" '+callbacks.norms_") + name +
               "={_target_: GradientLogging, grouping_level: -1, every_n_steps: 1, "
               "histogram_every_n_steps: 1}'";
  }
  const Outcome outcome = shell(optimize(command));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const config::Node found = config::parse_yaml(outcome.out, "stdout");
  EXPECT_EQ(found.get<std::string>("bottleneck"), "sync-bound") << outcome.err;
  EXPECT_GT(found.get<double>("images_per_second"), 0);
  double sum = 0;
  for (const char* part : {"data", "sync", "launch", "compute"}) sum += found.get<double>(part);
  EXPECT_NEAR(sum, 1, 1e-3);
  EXPECT_GT(found.get<double>("sync"), 0.2);
  EXPECT_NE(outcome.err.find("tried callbacks.norms_"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("epoch 1"), std::string::npos) << "its trainings are quiet";
  EXPECT_FALSE(fs::exists(run_)) << "nothing is kept";
}

TEST_F(OptimizeProgram, KeepsNothingAfterASignal) {
  const Outcome outcome = shell(
      optimize("--detect-bottlenecks --seconds 300") + " & pid=$!; for i in $(seq 600); do [ -e '" +
      run_ + "' ] && break; sleep 0.1; done; [ -e '" + run_ + "' ] && kill -INT $pid; wait $pid");
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_FALSE(fs::exists(run_)) << outcome.err;
}

TEST_F(OptimizeProgram, WritesWhatATrainingTakes) {
  const std::string mine = dir_ / "mine", file = mine + "/performance/auto_cpu.yaml";
  fs::create_directories(mine);
  const std::string search = optimize("--auto-optimize --json --config-dir '" + mine + "' ");
  const Outcome outcome = shell(search + "--seconds 4");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const config::Node found = config::parse_yaml(outcome.out, "stdout");
  EXPECT_EQ(found.get<std::string>("file"), file);
  EXPECT_GT(found.get<double>("measured_gain"), 0);
  EXPECT_FALSE(fs::exists(run_)) << "the trials are gone";
  const auto value = [&](const char* key) { return found.find_direct(key)->as<int64_t>(); };
  const auto composed = [&](const std::string& more) {
    const Outcome shown =
        shell("\"$BIN/train\" experiment=im2im/segmentation data.path=x --config-dir '" + mine +
              "' performance=auto_cpu --cfg job " + more);
    EXPECT_EQ(shown.code, 0) << shown.err;
    return config::parse_yaml(shown.out, "--cfg");
  };
  const config::Node taken = composed("");
  for (const char* key :
       {"data.num_workers", "data.prefetch_factor", "task.inference_args.sw_batch_size"})
    EXPECT_EQ(taken.get<int64_t>(key), value(key)) << key;
  EXPECT_EQ(taken.get<int64_t>("performance.num_threads"), 1);
  EXPECT_EQ(taken.get<int64_t>("data.batch_size"), 2) << "the experiment's own value";
  EXPECT_EQ(composed("data.num_workers=7").get<int64_t>("data.num_workers"), 7);

  const std::string command = found.get<std::string>("command");
  EXPECT_NE(command.find(" performance=auto_cpu"), std::string::npos) << command;
  const Outcome shown = shell(command + " --cfg job");
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_EQ(config::parse_yaml(shown.out, "--cfg").get<int64_t>("data.batch_size"),
            value("data.batch_size"))
      << command;

  const Outcome stopped = shell(search + "--seconds 9000 & pid=$!; for i in $(seq 600); do [ -e '" +
                                run_ + "/checkpoints' ] || [ -e '" + run_ +
                                "/csv' ] && break; sleep 0.1; done; kill -INT "
                                "$pid; wait $pid");
  EXPECT_EQ(stopped.code, 130) << stopped.err;
  EXPECT_EQ(config::to_json(composed("")), config::to_json(taken)) << "the file is as it was";

  const Outcome again = shell(search + "--seconds 0.2");
  EXPECT_EQ(again.code, 0) << again.err;
  for (const auto& entry : fs::directory_iterator(mine + "/performance"))
    EXPECT_EQ(entry.path().string(), file) << "one file, and nothing half-written";
}

TEST_F(OptimizeProgram, WritesOverNothingOfTheUsers) {
  const std::string mine = dir_ / "mine";
  fs::create_directories(mine + "/performance");
  const std::string file = mine + "/performance/auto_cpu.yaml", text = "num_threads: 3\n";
  write_file(file, text);
  const std::string search = optimize("--auto-optimize --config-dir '" + mine + "'");
  const Outcome outcome = shell(search);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("was not written by --auto-optimize"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(read_file(file), text);

  fs::remove_all(mine + "/performance");
  write_file(mine + "/performance", "");  // no folder can be there
  const Outcome closed = shell(search);
  EXPECT_EQ(closed.code, 2);
  EXPECT_NE(closed.err.find("--config-dir"), std::string::npos) << closed.err;
  EXPECT_FALSE(fs::exists(run_));
}

TEST_F(OptimizeProgram, AloneTakesTheNewestTraining) {
  const std::string in_folder = "cd '" + dir_.path() + "' && ";
  for (const char* width : {"4", "6"}) {
    const Outcome trained =
        shell(in_folder +
              "\"$BIN/train\" experiment=im2im/segmentation data.path=samples logger=none "
              "trainer.accelerator=cpu 'patch_shape=[16,16]' trainer.fast_dev_run=false "
              "trainer.max_steps=1 trainer.limit_val_batches=1 'model.filters=[4,4," +
              width + "]'");
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  const Outcome newest = shell(in_folder + "\"$BIN/optimize\" --seconds 1 --check");
  EXPECT_EQ(newest.code, 0) << newest.err;
  EXPECT_NE(newest.err.find("model.filters=[4,4,6]"), std::string::npos) << newest.err;
  fs::create_directories(dir_ / "local/experiment");
  write_file(dir_ / "local/experiment/mine.yaml", "# @package _global_\ndefaults:\n  - nowhere\n");
  const Outcome planned = shell(in_folder + "\"$BIN/optimize\" --check");
  EXPECT_EQ(planned.code, 2);
  EXPECT_NE(planned.err.find("local/experiment/mine.yaml"), std::string::npos) << planned.err;
}

TEST_F(OptimizeProgram, SaysWhatIsMissing) {
  const Outcome none = shell("cd '" + dir_.path() + "' && \"$BIN/optimize\"");
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("there is no run below logs/train"), std::string::npos) << none.err;
  const Outcome wrong = shell(optimize("--detect-bottlenecks --seconds soon"));
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("optimize.seconds"), std::string::npos) << wrong.err;
  EXPECT_FALSE(fs::exists(run_));
}

}  // namespace
}  // namespace cytra
