#include "perf/scopes.h"

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/csrc/profiler/stubs/base.h>

namespace cytra::perf {
namespace {

/// NVTX as torch's CUDA libraries have it, which says what it is asked for on stderr.
struct FakeNvtx final : torch::profiler::impl::ProfilerStubs {
  using Event = torch::profiler::impl::ProfilerVoidEventStub;
  void record(c10::DeviceIndex*, Event*, int64_t*) const override {}
  float elapsed(const Event*, const Event*) const override { return 0; }
  void mark(const char*) const override {}
  void rangePush(const char* name) const override { std::fprintf(stderr, "(%s", name); }
  void rangePop() const override { std::fprintf(stderr, ")"); }
  bool enabled() const override { return true; }
  void onEachDevice(std::function<void(int)>) const override {}
  void synchronize() const override {}
};

[[noreturn]] void mark_phases(const char* injection) {
  static FakeNvtx nvtx;
  torch::profiler::impl::registerCUDAMethods(&nvtx);
  if (injection != nullptr) setenv("NVTX_INJECTION64_PATH", injection, 1);
  {
    const Scope step("step");
    const Scope inner([] { return std::string("callbacks.mine"); });
  }
  std::fprintf(stderr, "end");
  std::_Exit(0);
}

TEST(Scope, IsAnNvtxRangeWhereAGpuProfilerIsAttached) {  // asked once in a process
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto done = ::testing::ExitedWithCode(0);
  EXPECT_EXIT(mark_phases("/opt/nsys/libToolsInjection64.so"), done, "^.step.callbacks.mine..end$");
  EXPECT_EXIT(mark_phases(nullptr), done, "^end$");
}

TEST(Scope, TellsListenersAndTimers) {
  struct Recorder final : ScopeListener {
    std::vector<std::string> names;
    void begin(const char* name) override { names.emplace_back(name); }
    void end() override { names.emplace_back("end"); }
  } recorder;
  int asked = 0;
  const auto name = [&] {
    ++asked;
    return std::string("late");
  };
  { const Scope unseen(name); }
  EXPECT_EQ(asked, 0) << "nobody looks";
  {
    const Listening listening(recorder, false);
    const Scope outer("outer");
    const Scope inner(name);
  }
  const std::vector<std::string> expected{"outer", "late", "end", "end"};
  EXPECT_EQ(recorder.names, expected);
  timers::enable();
  { const Scope timed(name); }
  timers::enable(false);
  EXPECT_EQ(timers::statistics().at("late").count, 1);
  timers::clear();
}

}  // namespace
}  // namespace cytra::perf
