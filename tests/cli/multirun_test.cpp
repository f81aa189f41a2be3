#include "cli/multirun.h"

#include <csignal>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "tests/support/tmp_dir.h"

namespace cytra::cli {
namespace {

using Json = nlohmann::json;

class Multirun : public ::testing::Test {
 protected:
  /// Without a setting: one of its own.
  void add(const std::string& script, const std::string& setting = "") {
    const int number = static_cast<int>(jobs_.size());
    const std::string label = "a=" + std::to_string(number);
    jobs_.push_back({number,
                     {"sh", "-c", script},
                     label,
                     setting.empty() ? label : setting,
                     dir_ / std::to_string(number)});
  }
  int run(int parallel, bool json = true) {
    JobOptions options{parallel, json, program_};
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = run_jobs(jobs_, options);
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    return code;
  }
  Json row(std::size_t i) const { return Json::parse(out_)["jobs"].at(i); }
  std::string log(int i) const { return read_file(dir_ / (std::to_string(i) + ".log")); }

  test::TmpDir dir_;
  std::string program_ = "/bin/sh", out_, err_;
  std::vector<Job> jobs_;
};

TEST_F(Multirun, GathersResults) {
  add("echo working >&2; echo '{\"dice\": 0.5}'");
  add("echo 'no json'");
  EXPECT_EQ(run(1), 0);
  EXPECT_EQ(row(0)["number"], 0);
  EXPECT_EQ(row(0)["overrides"], "a=0");
  EXPECT_EQ(row(0)["exit_code"], 0);
  EXPECT_EQ(row(0)["result"]["dice"], 0.5);
  EXPECT_EQ(row(0)["folder"], dir_ / "0");
  EXPECT_GE(row(0)["seconds"], 0);
  EXPECT_FALSE(row(1).contains("result"));
  EXPECT_EQ(log(0), "working\n{\"dice\": 0.5}\n");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "0.out"));
}

/// What `train` prints with --json, as every job is told to.
std::string result(const std::string& metric, const std::string& score, const std::string& mode) {
  return "echo '" +
         Json{{"best_metric", metric}, {"best_score", std::stod(score)}, {"best_mode", mode}}
             .dump() +
         "'";
}

TEST_F(Multirun, MarksTheBestScore) {
  for (const char* score : {"0.5", "0.75", "0.625"}) add(result("val/dice", score, "max"));
  add("exit 3");
  run(1, false);
  EXPECT_NE(err_.find("  val/dice  exit"), std::string::npos) << err_;
  EXPECT_NE(err_.find("         0.5     0 "), std::string::npos) << err_;
  EXPECT_NE(err_.find("       *0.75     0 "), std::string::npos) << err_;
  EXPECT_NE(err_.find("           -     3 "), std::string::npos) << err_;
  EXPECT_NE(out_.find("\nbest_job: 1\n"), std::string::npos) << out_;
}

TEST_F(Multirun, AMonitorNamesTheScore) {
  for (const char* dice : {"0.5", "0.75", "null"}) {
    add(std::string("echo '{\"dice\": ") + dice +
        ", \"iou\": 1, \"monitor\": \"dice\", \"mode\": \"max\"}'");
  }
  run(1);
  EXPECT_NE(err_.find("        dice  exit"), std::string::npos) << err_;
  EXPECT_NE(err_.find("       *0.75     0 "), std::string::npos) << err_;
  EXPECT_EQ(Json::parse(out_)["best_job"], 1);
}

TEST_F(Multirun, TheLowestIsBestWhereTheModeIsMin) {
  for (const char* score : {"2", "-1", "0"}) add(result("val/loss", score, "min"));
  run(2);
  EXPECT_NE(err_.find(" *-1 "), std::string::npos) << err_;
  EXPECT_EQ(Json::parse(out_)["best_job"], 1);
}

TEST_F(Multirun, ScoresOfDifferentMetricsHaveNoBest) {
  add(result("val/dice", "0.5", "max"));
  add(result("val/loss", "0.25", "min"));
  run(1, false);
  EXPECT_NE(err_.find("       score  exit"), std::string::npos) << err_;
  EXPECT_EQ(err_.find('*'), std::string::npos) << err_;
  EXPECT_EQ(out_.find("best_job"), std::string::npos) << out_;
}

TEST_F(Multirun, RepeatsHaveAMeanAndADeviation) {
  for (const char* score : {"0.5", "0.75", "1"}) add(result("val/dice", score, "max"), "lr=1");
  for (const char* score : {"0.25", "0.25"}) add(result("val/dice", score, "max"), "lr=2");
  add("exit 3", "lr=2");
  add(result("val/dice", "0.125", "max"));
  run(2);
  EXPECT_NE(err_.find("lr=1: val/dice: mean 0.75, deviation 0.25 (3 jobs)\n"), std::string::npos)
      << err_;
  const Json means = Json::parse(out_)["means"];
  ASSERT_EQ(means.size(), 2U);
  EXPECT_EQ(means[0]["deviation"], 0.25);
  EXPECT_EQ(means[1]["jobs"], 2);
  EXPECT_EQ(means[1]["deviation"], 0);
  EXPECT_EQ(err_.find("a=6: "), std::string::npos) << "one job has no mean";
}

TEST_F(Multirun, WritesTextWithoutJson) {
  add("echo 'dice: 0.5'");
  add("exit 3");
  EXPECT_EQ(run(1, false), 3);
  EXPECT_NE(out_.find("job: 0\noverrides: a=0\nexit_code: 0\n"), std::string::npos) << out_;
  EXPECT_NE(out_.find("\ndice: 0.5\n\njob: 1\n"), std::string::npos) << out_;
}

TEST_F(Multirun, GoesOnAfterFailures) {
  add("echo 'error: first' >&2; echo 'error: bad width' >&2; exit 2");
  add("kill -9 $$");
  add("echo 1");
  EXPECT_EQ(run(1), 2);
  EXPECT_EQ(row(0)["error"], "bad width");
  EXPECT_EQ(row(1)["exit_code"], 137);
  EXPECT_NE(row(1)["error"].get<std::string>().find("signal 9"), std::string::npos);
  EXPECT_EQ(row(2)["exit_code"], 0);
  EXPECT_NE(err_.find("a=0 "), std::string::npos);
  EXPECT_NE(err_.find("bad width\n"), std::string::npos);
}

TEST_F(Multirun, RunsAsManyAtATimeAsAsked) {
  // Each waits for the other's file: only side by side both end well.
  const auto script = [&](const std::string& own, const std::string& other) {
    return "touch '" + (dir_ / own) + "'; for i in $(seq 100); do [ -e '" + (dir_ / other) +
           "' ] && exit 0; sleep 0.05; done; exit 7";
  };
  add(script("x", "y"));
  add(script("y", "x"));
  EXPECT_EQ(run(2), 0);
  jobs_.clear();  // and never more than asked
  const std::string lock = dir_ / "lock";
  for (int i = 0; i < 3; ++i)
    add("mkdir '" + lock + "' || exit 9; sleep 0.05; rmdir '" + lock + "'");
  EXPECT_EQ(run(1), 0);
}

TEST_F(Multirun, PassesSignalsOn) {
  add("trap 'echo stopped >&2; kill $!; exit 130' INT; sleep 30 & kill -INT $PPID; wait");
  add("echo never");
  EXPECT_EQ(run(1), 130);
  EXPECT_EQ(row(0)["exit_code"], 130);
  EXPECT_EQ(row(0)["error"], "stopped");
  EXPECT_TRUE(row(1)["exit_code"].is_null());
  EXPECT_NE(err_.find("not started"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "1.log"));
  jobs_.resize(1);
  jobs_[0].arguments[2] = "kill -TERM $PPID; sleep 30";
  EXPECT_EQ(run(1), 143);
  EXPECT_EQ(row(0)["exit_code"], 143);
}

TEST_F(Multirun, NamesWhatCantStart) {
  program_ = "/no/such/program";
  add("");
  EXPECT_EQ(run(1), 4);
  EXPECT_NE(row(0)["error"].get<std::string>().find("/no/such/program"), std::string::npos);
  std::ofstream(dir_ / "file") << "x";
  jobs_[0].folder = dir_ / "file/sub";
  EXPECT_THROW(run_jobs(jobs_, {}), ConfigError);
}

TEST_F(Multirun, LeavesTheSignalsOfTheCallerAlone) {
  sigset_t before, after;
  ::sigprocmask(SIG_SETMASK, nullptr, &before);
  add("true");
  EXPECT_EQ(run(1), 0);
  ::sigprocmask(SIG_SETMASK, nullptr, &after);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD})
    EXPECT_EQ(::sigismember(&before, signal), ::sigismember(&after, signal));
}

}  // namespace
}  // namespace cytra::cli
