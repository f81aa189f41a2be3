#include "base/progress.h"

#include <chrono>
#include <regex>
#include <thread>

#include <gtest/gtest.h>

namespace cytra {
namespace {

TEST(ProgressLine, SaysWhatIsDoneAndLeft) {
  const ProgressLine line{"training", 50, 200, 12.34, 80, "loss 0.1"};
  EXPECT_EQ(line.text(0), "training 50/200 (25%) 12.3 it/s ETA 1m 20s  loss 0.1");
  EXPECT_EQ(line.text(200),
            "training [=====               ] 50/200 (25%) 12.3 it/s ETA 1m 20s  loss 0.1");
  EXPECT_EQ((ProgressLine{"reading", 7, -1, 0.25, -1, ""}.text(200)), "reading 7 4.0 s/it");
  EXPECT_EQ((ProgressLine{"validation", 200, 100, 0, 0, ""}.text(200)),
            "validation [====================] 200/100 (200%) ETA 0.0s");
}

TEST(ProgressLine, FitsTheTerminal) {
  const ProgressLine line{"training", 50, 200, 12.34, 80, "loss 0.1"};
  const std::size_t whole = line.text(0).size();
  for (std::size_t width = 1; width < 100; ++width) {
    const std::string text = line.text(width);
    EXPECT_LE(text.size(), width);
    EXPECT_EQ(text.find("loss 0.1") != std::string::npos, width >= whole) << width;
  }
  EXPECT_EQ(line.text(whole + 10).find('['), std::string::npos) << "a bar too short to read";
  EXPECT_EQ(line.text(whole + 11).size(), whole + 11) << "a bar of 8, two brackets, a space";
}

TEST(Progress, APartIsNoTimeOfTheWhole) {
  const ProgressStyle before = progress_style();
  progress_style().line_interval_s = 0;
  testing::internal::CaptureStderr();
  {
    Progress progress("predicting", 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    progress.show_part("windows", 1, 2);
    progress.update(1);
  }
  const std::string text = testing::internal::GetCapturedStderr();
  progress_style() = before;
  std::smatch rate;
  ASSERT_TRUE(std::regex_search(text, rate, std::regex("1/2 \\(50%\\) ([0-9.]+) it/s"))) << text;
  EXPECT_LE(std::stod(rate[1]), 5.0);
}

TEST(Spinner, ShowsThatWorkGoesOn) {
  const ProgressStyle before = progress_style();
  progress_style().line_interval_s = 0.02;
  testing::internal::CaptureStderr();
  {
    const Spinner spinner("reading the data");
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  const std::string text = testing::internal::GetCapturedStderr();
  progress_style().line_interval_s = 10;
  testing::internal::CaptureStderr();
  { const Spinner spinner("reading the data"); }
  const std::string none = testing::internal::GetCapturedStderr();
  progress_style() = before;
  const std::size_t first = text.find("reading the data 0.");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_NE(text.find("reading the data 0.", first + 1), std::string::npos) << text;
  EXPECT_EQ(none, "") << "it was over at once";
}

}  // namespace
}  // namespace cytra
