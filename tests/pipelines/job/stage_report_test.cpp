#include "pipelines/job/stage_report.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

namespace cytra::pipelines {
namespace {

TEST(StageReport, NamesTheStageThatTheOthersWaitFor) {
  StageReport report("test");
  EXPECT_EQ(report.bottleneck(), "");
  StageReport::Stage &fast = report.add("reading"), &slow = report.add("inference", 2);
  {
    const StageWork a(fast), b(slow, 4), c(slow, 4);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  {
    const StageWork b(slow), c(slow);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  report.finish();
  EXPECT_EQ(report.bottleneck().rfind("inference is what the others wait for: busy ", 0), 0U);
  const auto figures = report.figures();
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[0].items, 1);
  EXPECT_EQ(figures[1].items, 10);
  EXPECT_GE(figures[1].busy_s, 0.08);
  EXPECT_LE(figures[1].busy_share, 1.0);
  EXPECT_GT(figures[1].busy_share, figures[0].busy_share);
  EXPECT_NE(report.table().find("inference"), std::string::npos);
}

TEST(StageReport, WhatAStageWaitsIsNoWork) {
  StageReport report("test");
  StageReport::Stage& stage = report.add("predict");
  {
    const StageWork work(stage);
    const StagePause pause(stage);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_LT(report.figures()[0].busy_s, 0.04);
  EXPECT_EQ(report.figures()[0].items, 1);
}

TEST(StageReport, IsPrometheusText) {
  StageReport report("process_video");
  { const StageWork work(report.add("decode"), 3); }
  report.count("frames_dropped", "Frames that live mode left out.");
  report.count("frames_dropped", "Frames that live mode left out.", 4);
  report.finish();
  const std::string path =
      (std::filesystem::temp_directory_path() / "cytra_stage_report.prom").string();
  report.write_prometheus(path);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  const std::string got = text.str();
  for (const char* line :
       {"# TYPE cytra_stage_items_total counter\n",
        "cytra_stage_items_total{program=\"process_video\",stage=\"decode\"} 3\n",
        "cytra_frames_dropped_total{program=\"process_video\"} 5\n",
        "# HELP cytra_frames_dropped_total Frames that live mode left out.\n"})
    EXPECT_NE(got.find(line), std::string::npos) << line << got;
  EXPECT_THROW(report.write_prometheus("/no/such/folder/x.prom"), std::exception);
}

}  // namespace
}  // namespace cytra::pipelines
