#include "perf/operator_profile.h"

#include <filesystem>

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/resource.h>

#include "base/error.h"
#include "base/files.h"
#include "tests/support/at_least.h"
#include "tests/support/tmp_dir.h"

namespace cytra::perf {
namespace {
using nlohmann::json;

/// The sequence of tests/golden/make_profile.py. What it makes is in `kept`.
void run(std::vector<at::Tensor>& kept) {
  const at::Tensor image = kept[0], weight = kept[1], matrix = kept[2];
  kept.push_back(at::mm(matrix, matrix.t()));
  kept.push_back(at::add(matrix, matrix));
  kept.push_back(at::relu(matrix));
  kept.push_back(at::ones({5, 7}));
  at::Tensor loss;
  for (int i = 0; i < 2; ++i) {
    {
      RECORD_USER_SCOPE("forward");
      loss = at::relu(at::matmul(image, weight.t())).to(at::kDouble).mean();
    }
    loss.backward(at::ones({}, at::kDouble));
  }
  kept.push_back(at::softmax(matrix, 1));
}

struct OperatorProfile : ::testing::Test {
  OperatorProfile() {
    OperatorProfileOptions options;
    options.profile_memory = true;
    OperatorProfiler profiler(options);
    std::vector<at::Tensor> kept{
        at::ones({2, 3, 8}), at::ones({4, 8}).requires_grad_(), at::ones({16, 32})};
    profiler.start();
    run(kept);
    profiler.stop(rows, dir / "trace.json");
  }
  test::TmpDir dir;
  OperatorRows rows;
  json golden =
      json::parse(read_file(std::string(CYTRA_SOURCE_DIR) + "/tests/golden/profile.json"));
};

TEST_F(OperatorProfile, NamesAndCallsEqualTorch) {
  std::map<std::string, int64_t> calls;
  for (const auto& [name, row] : rows) calls[name] = row.calls;
  EXPECT_EQ(calls, (golden["calls"].get<std::map<std::string, int64_t>>()));
}

TEST_F(OperatorProfile, MemoryEqualsTorch) {
  for (const auto& [name, bytes] : test::at_least(5, golden["cpu_memory"]).items())
    EXPECT_EQ(rows.at(name).cpu_bytes, bytes.get<int64_t>()) << name;
  for (const auto& [name, bytes] : test::at_least(5, golden["self_cpu_memory"]).items())
    EXPECT_EQ(rows.at(name).self_cpu_bytes, bytes.get<int64_t>()) << name;
}

TEST_F(OperatorProfile, SelfTimesAddUpToTheTimeOfTheOutermost) {
  const OperatorRow& outer = rows.at("aten::softmax");
  const OperatorRow& inner = rows.at("aten::_softmax");
  EXPECT_GT(outer.self_cpu_us, 0);
  EXPECT_NEAR(outer.cpu_us, outer.self_cpu_us + inner.cpu_us, 1e-6);
}

TEST_F(OperatorProfile, TheTraceIsAChromeTrace) {
  const json trace = json::parse(read_file(dir / "trace.json"));
  std::map<std::string, int64_t> calls;
  for (const json& event : trace.at("traceEvents")) {
    if (event.value("ph", "") != "X") continue;
    EXPECT_GE(event.at("dur").get<double>(), 0);
    calls[event.at("name")] += 1;
  }
  EXPECT_EQ(calls["aten::mm"], golden["calls"]["aten::mm"].get<int64_t>());
  EXPECT_EQ(calls["forward"], 2);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    (void)entry;
    ++files;
  }
  EXPECT_EQ(files, 1) << "a temporary is left";
}

TEST_F(OperatorProfile, TheTableIsSortedAndEnds) {
  rows.clear();
  rows["first"] = {2, 30, 10};
  rows["second"] = {1, 20, 20};
  rows["third"] = {1, 1, 1};
  const std::string text = to_text(rows, "self_cpu_time_total", 2);
  EXPECT_LT(text.find("second"), text.find("first"));
  EXPECT_EQ(text.find("third"), std::string::npos);
  EXPECT_NE(text.find("... and 1 more"), std::string::npos);
  EXPECT_NE(text.find("15.000us"), std::string::npos) << "the average of two calls\n" << text;
  EXPECT_EQ(text.find("CUDA"), std::string::npos);
}

TEST(OperatorProfiler, ATraceThatDoesNotFitIsAnError) {
  const test::TmpDir dir;
  OperatorProfiler profiler(OperatorProfileOptions{});
  profiler.start();
  at::ones({4}).add(1);
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit little{16, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &little);
  OperatorRows rows;
  EXPECT_THROW(profiler.stop(rows, dir / "trace.json"), IoError);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

}  // namespace
}  // namespace cytra::perf
