// What the programs tell about configurations, and sweeps.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/strings.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using test::Outcome;
using test::shell;

class ConfigTools : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new test::TmpDir();
    const Outcome made = shell("\"$BIN/generate_samples\" --output '" + at("samples") +
                               "' --train 2 --valid 1 --test 1 --size 64");
    ASSERT_EQ(made.code, 0) << made.err;
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }
  static std::string at(const std::string& name) { return *dir_ / name; }
  /// `train` for a step in the test's own folder.
  static std::string train(const std::string& more) {
    return "cd '" + at("") +
           "' && \"$BIN/train\" experiment=im2im/segmentation "
           "trainer.steps_per_epoch=null trainer.accelerator=cpu "
           "trainer.max_steps=1 "
           "patch_shape=[32,32] model.filters=[4,8,8] 'data.path=" +
           at("samples") + "' " + more;
  }
  static std::string field(const std::string& text, const std::string& key) {
    for (const std::string& line : split(text, '\n')) {
      if (line.starts_with(key + ": ")) return line.substr(key.size() + 2);
    }
    return "";
  }
  static test::TmpDir* dir_;
};
test::TmpDir* ConfigTools::dir_ = nullptr;

TEST_F(ConfigTools, ARunKeepsItsConfigurationAndItsCommand) {
  const Outcome first = shell(train("seed=3 +tags=[a] hydra.run.dir=first"));
  ASSERT_EQ(first.code, 0) << first.err;
  const std::string hydra = at("first/.hydra/");
  EXPECT_EQ(read_file(hydra + "overrides.yaml").substr(0, 34),
            "- experiment=im2im/segmentation\n- ");
  EXPECT_NE(read_file(hydra + "config.yaml").find("output_dir: ${hydra:runtime.output_dir}"),
            std::string::npos);
  EXPECT_NE(read_file(hydra + "hydra.yaml").find("output_dir: " + at("first")), std::string::npos);
  EXPECT_EQ(field(first.out, "output_dir"), at("first"));
  // The command starts the same run again, in a folder of its own.
  const Outcome again = shell("cd / && sh '" + hydra + "command.sh'");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(field(again.out, "output_dir"), at("first-1"));
  EXPECT_EQ(field(again.out, "best_score"), field(first.out, "best_score"));
  EXPECT_NE(read_file(at("first-1/.hydra/hydra.yaml")).find("output_dir: " + at("first-1")),
            std::string::npos);
  // So does the configuration itself, and nothing differs.
  const std::string copy = "\"$BIN/train\" --config-path '" + hydra + "' --config-name config ";
  EXPECT_EQ(shell(copy + "--diff '" + at("first") + "'").out, "no difference\n");
  EXPECT_EQ(shell(copy + "--diff '" + at("first") + "' seed=4").out.substr(0, 15),
            "~ seed: 3 -> 4 ");
  const Outcome copied = shell("cd '" + at("") + "' && " + copy + "hydra.run.dir=copied");
  ASSERT_EQ(copied.code, 0) << copied.err;
  EXPECT_EQ(field(copied.out, "best_score"), field(first.out, "best_score"));
}

TEST_F(ConfigTools, ASweepRunsEveryJobAndGoesOnAfterAFailure) {
  const Outcome outcome = shell(
      "unset OMP_NUM_THREADS; " +
      train("--json -m seed=1,2 'data.path=" + at("samples") +
            ",/no/such' hydra.sweep.dir=sweep hydra/launcher=joblib hydra.launcher.n_jobs=2"));
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  ASSERT_NE(outcome.out, "") << outcome.err;
  const auto results = nlohmann::json::parse(outcome.out);
  const auto& jobs = results["jobs"];
  ASSERT_EQ(jobs.size(), 4U) << outcome.out;
  for (int i = 0; i < 4; ++i) {
    const auto& job = jobs[static_cast<std::size_t>(i)];
    EXPECT_EQ(job["number"], i);
    EXPECT_EQ(job["exit_code"], i < 2 ? 0 : 2) << outcome.err;
    EXPECT_EQ(job["folder"], at("sweep/" + std::to_string(i)));
    EXPECT_EQ(fs::exists(at("sweep/" + std::to_string(i) + "/.hydra/config.yaml")), i < 2);
    EXPECT_NE(read_file(at("sweep/" + std::to_string(i) + ".log")), "");
  }
  EXPECT_EQ(jobs[3]["overrides"], "data.path=/no/such seed=2");
  const auto best = results["best_job"].get<std::size_t>();
  ASSERT_LT(best, 2U);
  EXPECT_GE(jobs[best]["result"]["best_score"], jobs[1 - best]["result"]["best_score"]);
  EXPECT_NE(outcome.err.find("  val/dice  exit"), std::string::npos) << outcome.err;
  const unsigned threads = std::max(1U, std::thread::hardware_concurrency() / 2);
  EXPECT_NE(read_file(at("sweep/0.log")).find(", " + std::to_string(threads) + " threads)"),
            std::string::npos)
      << "each of two jobs has half of the cores";
  EXPECT_TRUE(fs::exists(at("sweep/multirun.yaml")));
  EXPECT_NE(outcome.err.find("/no/such: no such"), std::string::npos) << outcome.err;
}

TEST_F(ConfigTools, ASweepIsCheckedBeforeItStarts) {
  const Outcome wrong = shell(train("-m seed=1,2,x hydra.sweep.dir=unborn"));
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("expected an integer, got 'x'"), std::string::npos) << wrong.err;
  EXPECT_NE(wrong.err.find("job 2"), std::string::npos) << wrong.err;
  EXPECT_FALSE(fs::exists(at("unborn/0")));
  const Outcome checked =
      shell(train("--check -m 'seed=range(2)' optimizer=adam,sgd hydra.sweep.dir=unborn"));
  EXPECT_EQ(checked.out,
            "0: seed=0 optimizer=adam\n1: seed=0 optimizer=sgd\n2: seed=1 optimizer=adam\n"
            "3: seed=1 optimizer=sgd\nok\n");
  EXPECT_FALSE(fs::exists(at("unborn")));
}

TEST_F(ConfigTools, CheckLoadsAndMakesNothing) {
  const Outcome outcome = shell(train("--check data.path=/no/such/folder hydra.run.dir=checked"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "ok\n");
  EXPECT_FALSE(fs::exists(at("checked")));
}

TEST_F(ConfigTools, DescribesAndWritesSchemas) {
  const Outcome net = shell("\"$BIN/train\" --describe monai.networks.nets.DynUNet");
  EXPECT_EQ(net.code, 0) << net.err;
  EXPECT_NE(net.out.find("filters"), std::string::npos) << net.out;
  EXPECT_NE(shell("\"$BIN/train\" --describe optimizer").out.find("AdamW"), std::string::npos);
  const Outcome wrong = shell("\"$BIN/train\" --describe DynUnet3");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("DynUNet"), std::string::npos);
  for (const char* what : {"", "model", "experiment"}) {
    const Outcome schema = shell("\"$BIN/train\" --schema " + std::string(what));
    EXPECT_EQ(nlohmann::json::parse(schema.out)["$schema"],
              "http://json-schema.org/draft-07/schema#");
  }
}

TEST_F(ConfigTools, CompletesInTheShell) {
  const std::string query =
      "COMP_LINE='train experiment=im2im/segmentation optimizer=' COMP_POINT=47 \"$BIN/train\" -sc "
      "query=bash";
  EXPECT_EQ(
      shell(query).out,
      "optimizer=adadelta\noptimizer=adagrad\noptimizer=adam\noptimizer=adamax\noptimizer=adamw\n"
      "optimizer=adamw_finetune\noptimizer=adamw_fused\noptimizer=adamw_mae\noptimizer=lion\n"
      "optimizer=nadam\noptimizer=novograd\noptimizer=radam\noptimizer=rmsprop\noptimizer=sgd\n");
  // As the function does it that bash calls at a TAB.
  const Outcome bash = shell(
      "PATH=\"$BIN:$PATH\"; eval \"$(train -sc install=bash)\"; COMP_LINE='train optimizer=ad' "
      "COMP_POINT=18 "
      "COMP_WORDS=(train optimizer = ad) COMP_CWORD=3; _cytra_train 2>/dev/null; echo "
      "\"${COMPREPLY[@]}\"");
  EXPECT_EQ(bash.out, "adadelta adagrad adam adamax adamw adamw_finetune adamw_fused adamw_mae\n")
      << bash.err;
}

TEST_F(ConfigTools, HostileFilesEndSoonAndSmall) {
  fs::create_directories(at("hostile"));
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(at("hostile/" + name + ".yaml")) << text;
  };
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string name = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + name;
    for (int k = 1; k < 10; ++k) bomb.append(", ").append(name);
    bomb += "]\n";
  }
  write("bomb", bomb);
  write("deep", "a: " + std::string(10000, '['));
  write("blocks", [] {
    std::string text;
    for (int i = 0; i < 10000; ++i) text += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
    return text.substr(0, 4 << 20);
  }());
  write("huge", std::string(100 << 20, '#'));
  write("nul", std::string("a: x\0y\n", 7));
  write("latin", "a: \xe9\n");
  write("twice", "a: 1\na: 2\n");
  write("tab", "a:\n\tb: 1\n");
  write("cycle", "a: &a [*a]\n");
  write("self", "defaults: [self]\n");
  write("loop", "a: ${b}\nb: ${a}\n");
  for (const auto& entry : fs::directory_iterator(at("hostile"))) {
    const std::string name = entry.path().stem();
    SCOPED_TRACE(name);
    // All its memory, libraries included, stays below 50 MB.
    const Outcome outcome =
        shell("ulimit -v 50000; \"$BIN/train\" --config-path '" + at("hostile") +
              "' --config-name " + name + " --cfg job --resolve");
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    const std::size_t place = outcome.err.find("hostile/" + name + ".yaml");
    EXPECT_NE(place, std::string::npos) << outcome.err;
    EXPECT_LT(outcome.err.size(), 2000U);
  }
}

}  // namespace
}  // namespace cytra
