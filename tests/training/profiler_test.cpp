#include "training/profiler.h"

#include <filesystem>

#include <nlohmann/json.hpp>
#include <torch/csrc/autograd/anomaly_mode.h>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "tests/support/message_of.h"
#include "tests/support/svg.h"
#include "tests/support/tmp_dir.h"
#include "tests/training/fixture.h"
#include "training/trainer/step.h"

namespace cytra::training {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;
using test::Tiny;

/// The columns of a table's line that begins with `name`, the name left out.
std::vector<std::string> row_of(const std::string& table, const std::string& name) {
  for (const std::string& line : split(table, '\n')) {
    if (!line.starts_with(name + " ")) continue;
    std::vector<std::string> columns;
    for (const std::string& word : split(line.substr(name.size()), ' ')) {
      if (!word.empty()) columns.push_back(word);
    }
    return columns;
  }
  ADD_FAILURE() << "no '" << name << "' in\n" << table;
  return std::vector<std::string>(20);
}

struct Profiler : ::testing::Test {
  std::string listed(const std::string& options) const {
    return "{profiler: {dirpath: '" + dir.path() + "', " + options + "}}";
  }
  std::string table() const { return read_file(dir / "table.txt"); }
  std::vector<std::string> traces() const {
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(dir.path())) {
      const std::string name = entry.path().filename().string();
      if (name.find(".pt.trace.json") != std::string::npos) paths.push_back(entry.path().string());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  test::TmpDir dir;
};

TEST_F(Profiler, SimpleCountsPhasesAndHooks) {
  Tiny tiny("max_epochs: 2", listed("_target_: SimpleProfiler"));
  tiny.fit(10, 2, 3);  // two epochs of 5 batches and 3 to validate; the sanity check comes before
  const auto calls = [&](const std::string& name) { return row_of(table(), name)[1]; };
  EXPECT_EQ(calls("forward"), "10");
  EXPECT_EQ(calls("backward"), "10");
  EXPECT_EQ(calls("optimizer"), "10");
  EXPECT_EQ(calls("validation"), "2");
  EXPECT_EQ(calls("data"), "16");
  EXPECT_EQ(calls("callbacks.recorder.on_step_end"), "10");
  EXPECT_EQ(table().find("aten::"), std::string::npos);
}

TEST_F(Profiler, AdvancedAlsoCountsOperations) {
  Tiny tiny("max_epochs: 2", listed("_target_: AdvancedProfiler"));
  tiny.fit(10, 2, 3);
  EXPECT_EQ(row_of(table(), "aten::conv2d")[1], "16") << "10 batches and 2 times 3";
  EXPECT_EQ(row_of(table(), "ConvolutionBackward0")[1], "10");
}

TEST_F(Profiler, PyTorchRecordsTheStepsOfItsSchedule) {
  Tiny tiny("max_epochs: 2",
            listed("_target_: PyTorchProfiler, row_limit: -1, activities: [cpu],"
                   "schedule: {wait: 1, warmup: 1, active: 2, repeat: 2}"));
  tiny.fit(10, 2, 3);
  std::vector<std::string> steps;
  ASSERT_EQ(traces().size(), 2U);
  for (const std::string& path : traces()) {
    const json trace = json::parse(read_file(path));
    for (const json& event : trace.at("traceEvents")) {
      const std::string name = event.value("name", "");
      if (event.value("ph", "") == "X" && name.starts_with("ProfilerStep#")) steps.push_back(name);
    }
  }
  const std::vector<std::string> expected{
      "ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#6", "ProfilerStep#7"};
  EXPECT_EQ(steps, expected);
  EXPECT_EQ(row_of(table(), "ProfilerStep*").back(), "4");
  EXPECT_EQ(row_of(table(), "forward").back(), "4");
  EXPECT_EQ(row_of(table(), "aten::convolution_backward").back(), "4");
}

TEST_F(Profiler, WhatWasRecordedBeforeAnErrorIsWritten) {
  Tiny tiny("max_epochs: 2",
            listed("_target_: PyTorchProfiler, schedule: {wait: 1, warmup: 0, active: 20}"));
  tiny.task->factor = [](int64_t batch) { return batch < 4 ? 1.0 : INFINITY; };
  EXPECT_THROW(tiny.fit(), DivergedError);
  ASSERT_EQ(traces().size(), 1U);
  EXPECT_NO_THROW(json::parse(read_file(traces()[0])));
  EXPECT_EQ(row_of(table(), "ProfilerStep*").back(), "3");
}

TEST_F(Profiler, ATrainingShorterThanTheScheduleLeavesNoFile) {
  Tiny tiny("max_steps: 2", listed("_target_: PyTorchProfiler, schedule: {wait: 2, warmup: 1}"));
  tiny.fit();
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST_F(Profiler, MemoryBelongsToItsPhase) {
  constexpr int64_t kBytes = 4 << 20;
  Tiny tiny("max_epochs: 1", listed("_target_: MemoryProfiler, steps: 2"));
  tiny.task->factor = [](int64_t batch) {  // in the forward pass
    const at::Tensor taken = at::empty({batch == 2 ? 2 * kBytes : kBytes}, at::kByte);
    return 1.0;
  };
  tiny.fit(10, 2, 3);
  const json memory = json::parse(read_file(dir / "memory.json"));
  const int64_t begin = memory["at_begin_bytes"], small = 64 << 10;
  const auto peak = [](const json& peaks, const char* phase) {
    return peaks.at(phase).get<int64_t>();
  };
  EXPECT_EQ(begin, 4 * 2 * 3 + 4 * 2) << "weight and bias, Adam's two states of each, two counts";
  EXPECT_NEAR(peak(memory["peak_bytes"], "forward"), begin + 2 * kBytes, small);
  EXPECT_LT(peak(memory["peak_bytes"], "backward"), begin + small);
  EXPECT_LT(peak(memory["peak_bytes"], "optimizer"), begin + small);
  EXPECT_LT(peak(memory["peak_bytes"], "validation"), begin + small);
  ASSERT_EQ(memory["steps"].size(), 2U);
  EXPECT_NEAR(peak(memory["steps"][0]["peak_bytes"], "forward"), begin + kBytes, small);
  EXPECT_NEAR(peak(memory["steps"][1]["peak_bytes"], "forward"), begin + 2 * kBytes, small);
  double before = 0;
  for (const json& point : memory["timeline_s_bytes"]) {
    EXPECT_GE(point[0].get<double>(), before);
    before = point[0];
  }
  EXPECT_GT(test::elements_of(read_file(dir / "memory.svg"), "polyline").at(0).points().size(), 5U);
  EXPECT_NE(table().find("forward"), std::string::npos);
}

TEST_F(Profiler, MemoryThatAPhaseLeavesIsItsDelta) {
  constexpr int64_t kBytes = 4 << 20, kSmall = 64 << 10;
  Tiny tiny("max_epochs: 1", listed("_target_: MemoryProfiler, steps: 2"));
  at::Tensor kept;
  tiny.task->factor = [&](int64_t batch) {
    if (batch == 1) kept = at::empty({kBytes}, at::kByte);
    return 1.0;
  };
  tiny.fit(10, 2, 3);
  const json memory = json::parse(read_file(dir / "memory.json"));
  const auto of = [&](const json& where, const char* column, const char* phase) {
    return where.at(column).at(phase).get<int64_t>();
  };
  const int64_t begin = memory["at_begin_bytes"];
  const json &first = memory["steps"][0], &second = memory["steps"][1];
  EXPECT_NEAR(of(first, "delta_bytes", "forward"), kBytes, kSmall);
  EXPECT_NEAR(of(second, "delta_bytes", "forward"), 0, kSmall);
  EXPECT_GT(of(second, "delta_bytes", "forward"), 0) << "what the backward pass needs";
  EXPECT_LT(of(second, "delta_bytes", "backward"), 0);
  EXPECT_NEAR(of(memory, "delta_bytes", "forward"), kBytes, kSmall) << "of all calls";
  EXPECT_NEAR(of(second, "allocated_bytes", "optimizer"), begin + kBytes, kSmall);
  EXPECT_GT(of(second, "reserved_bytes", "forward"), kBytes) << "the resident memory";
  for (const char* column : {"Peak CPU memory", "Allocated", "Delta a call", "Resident"})
    EXPECT_NE(table().find(column), std::string::npos) << column;
}

const char* const kGuard = "{guard: {_target_: TransferProfiler, forbid: ";

/// Reads a value in each forward pass.
double read_one(int64_t /*batch*/) {
  return at::ones({}).item<double>();
}

TEST_F(Profiler, TransfersAreCountedAndPlaced) {
  Tiny tiny("max_epochs: 2, precision: bf16-mixed", listed("_target_: TransferProfiler"));
  tiny.task->factor = read_one;
  tiny.fit(10, 2, 3);
  EXPECT_NE(table().find("mean of 10"), std::string::npos) << table();
  const auto lines = split(table(), '\n');
  const auto line = [&](const std::string& place) {
    for (const std::string& one : lines) {
      if (one.starts_with(place)) return one;
    }
    ADD_FAILURE() << "no '" << place << "' in\n" << table();
    return std::string();
  };
  EXPECT_NE(line("forward: aten::item").find("host read    yes      1    4 B           1"),
            std::string::npos)
      << table();
  EXPECT_NE(line("forward: aten::conv2d of layer conv").find("cast"), std::string::npos) << table();
  EXPECT_NE(line("validation: aten::item").find("0.6"), std::string::npos) << "2 times 3 in 10";
}

TEST(ForbidTransfers, ARunEndsWhereTheHostWaits) {
  Tiny sound("max_epochs: 2", std::string(kGuard) + "error}}");
  EXPECT_NO_THROW(sound.fit());
  Tiny tiny("max_epochs: 2", std::string(kGuard) + "error}}");
  tiny.task->factor = read_one;
  const std::string message = message_of<ConfigError>([&] { tiny.fit(); });
  EXPECT_NE(message.find("step 2 makes the host wait for the device (host read in forward): "
                         "aten::item"),
            std::string::npos)
      << message;
  EXPECT_EQ(tiny.state().step, 2);
}

TEST(ForbidTransfers, WhatHappensOnceIsNoMatter) {
  Tiny tiny("max_epochs: 2", std::string(kGuard) + "error}}");
  tiny.task->factor = [](int64_t batch) { return batch == 1 ? read_one(1) : 1.0; };
  EXPECT_NO_THROW(tiny.fit());
}

TEST(ForbidTransfers, WarnsOncePerPlace) {
  Tiny tiny("max_epochs: 2", std::string(kGuard) + "warn}}");
  tiny.task->factor = read_one;
  testing::internal::CaptureStderr();
  tiny.fit();
  const std::string log = testing::internal::GetCapturedStderr();
  const std::size_t first = log.find("makes the host wait");
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("makes the host wait", first + 1), std::string::npos) << log;
}

TEST(ForbidTransfers, HooksOfAStepCount) {
  Tiny tiny("max_epochs: 2", std::string(kGuard) + "error}}");
  tiny.recorder->each_step = [](Context&) { read_one(1); };
  const std::string message = message_of<ConfigError>([&] { tiny.fit(); });
  EXPECT_NE(message.find("(host read in callbacks.recorder.on_step_end)"), std::string::npos)
      << message;
  Tiny rare("max_epochs: 2", std::string(kGuard) + "error}}");
  rare.recorder->each_validation_batch = [](Context&) { read_one(1); };
  EXPECT_NO_THROW(rare.fit()) << "not in a step";
}

TEST(MakeProfilers, OneComponentWatchesTransfers) {
  const auto count = [](const config::Node& profiler, const char* forbid) {
    return make_profilers(profiler, "folder", forbid).size();
  };
  EXPECT_EQ(count(config::Node::make_string("transfers"), "warn"), 1U);
  EXPECT_EQ(count(config::Node::make_string("simple"), "warn"), 2U);
  EXPECT_EQ(count(config::Node(), "warn"), 1U);
  EXPECT_EQ(count(config::Node(), ""), 0U);
}

TEST(MakeProfilers, TakesLightningsWordsAndComponents) {
  for (const char* given :
       {"simple",
        "advanced",
        "pytorch",
        "transfers",
        "{_target_: lightning.pytorch.profilers.PyTorchProfiler, row_limit: 5}"})
    EXPECT_EQ(make_profilers(config::parse_yaml(given, "test"), "folder").size(), 1U) << given;
  EXPECT_THROW(test::trainer_options("{profiler: xla}"), ConfigError);
  EXPECT_THROW(test::trainer_options("{profiler: 3}"), ConfigError);
  EXPECT_THROW(
      test::trainer_options("{profiler: {_target_: PyTorchProfiler, sort_by_key: cpu_tine}}"),
      ConfigError);
}

/// The gradient of sqrt is infinite at 0; times 0 that is NaN.
at::Tensor loss_with_a_nan_gradient(const at::Tensor& weight) {
  return (weight * at::zeros({2})).sqrt().sum();
}

TEST(Backward, AnomalyDetectionNamesTheOperation) {
  const at::Tensor weight = at::ones({2}).requires_grad_();
  EXPECT_NO_THROW(backward(loss_with_a_nan_gradient(weight), false, 7, {"a", "b"}));
  testing::internal::CaptureStderr();
  try {
    backward(loss_with_a_nan_gradient(weight), true, 7, {"a", "b"});
    ADD_FAILURE() << "no error";
  } catch (const DivergedError& error) {  // the last part is torch's message in Python, too
    EXPECT_STREQ(error.what(),
                 "a gradient is nan at step 7 (samples: a, b): Function 'MulBackward0' returned "
                 "nan values in its 0th output.");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_FALSE(torch::autograd::AnomalyMode::is_enabled());
}

TEST(Backward, AnomalyDetectionOfASoundTrainingChangesNothing) {
  testing::internal::CaptureStderr();
  const std::vector<double> plain = Tiny("max_epochs: 2").fit().weights();
  EXPECT_EQ(Tiny("max_epochs: 2, detect_anomaly: true").fit().weights(), plain);
  EXPECT_EQ(testing::internal::GetCapturedStderr().find("Warning"), std::string::npos);
}

}  // namespace
}  // namespace cytra::training
