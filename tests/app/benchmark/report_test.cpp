#include "app/benchmark/report.h"

#include <gtest/gtest.h>

#include "app/benchmark/baseline.h"
#include "base/error.h"
#include "base/files.h"
#include "tests/support/message_of.h"
#include "tests/support/svg.h"
#include "tests/support/tmp_dir.h"

namespace cytra::app {
namespace {

using config::Node;

/// A row whose runs took `low` to `high` ms.
std::string row(double low, double high) {
  return fmt::format(
      "{{median_ms: {0}, median_low_ms: {1}, median_high_ms: {2}, p95_ms: {2}, min_ms: {1}, "
      "max_ms: {2}, cpu_ms: 1.0, images_per_s: {3}, peak_memory_mb: 10.0, max_difference: 0.0, "
      "arithmetic: fp32, flops_per_s: 4.0e10, flops_per_byte: 20.0, share_of_peak: 0.4, speedup: "
      "1.0}}",
      (low + high) / 2,
      low,
      high,
      2000 / (low + high));
}

Node report_with(const std::string& one, const std::string& two, const std::string& more = "") {
  return config::parse_yaml(
      "{device: cpu (x), input_shape: [1, 1, 8, 8], model: {_target_: Net<b>, width: 8}, "
      "roofline: {product_flops_per_s: {fp32: 1.0e11, bf16: 4.0e11}, copy_bytes_per_s: 1.0e10}, "
      "inference: {1: {fp32: " +
          row(10, 12) + ", bf16: " + one + "}, 4: {fp32: " + two + "}}" + more + "}",
      "report");
}

const char* const kFailed = "{error: out of memory, is_out_of_memory: true}";

TEST(BenchmarkReport, TheTableHasEveryRow) {
  const std::string table = table_of(report_with(kFailed, row(20, 21)));
  for (const char* part : {"1  fp32",
                           "11.00",
                           "10.00-12.00",
                           "90.91",
                           "40.0",
                           "40 %",
                           "1  bf16: out of memory",
                           "4  fp32"})
    EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
  EXPECT_EQ(table.find("change"), std::string::npos) << "there is no baseline";
}

TEST(BenchmarkReport, ThePageStandsAloneAndItsPlotsAreXml) {
  const std::string page = html_of(report_with(kFailed, row(20, 21)));
  for (const char* outside : {"http:", "https:", "src=", "<link", "<script"})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  for (const char* part :
       {"Net&lt;b&gt;", "By batch size", "Roofline", "Batch 4", "out of memory", "10.0 GB/s"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  std::size_t plots = 0, lines = 0;
  for (std::size_t at = page.find("<svg"); at != std::string::npos;
       at = page.find("<svg", at + 1)) {
    ++plots;
    for (const auto& element : test::parse_svg(page.substr(at, page.find("</svg>", at) + 6 - at)))
      lines += element.name == "polyline" ? 1 : 0;
  }
  EXPECT_EQ(plots, 2U);
  EXPECT_EQ(lines, 3U) << "fp32 over two batch sizes, and two roofs";
}

struct Baseline : ::testing::Test {
  std::vector<std::string> against(const Node& before, Node& now, std::optional<double> threshold) {
    write_file(path, config::to_json(before));
    return compare(read_baseline(path, now), threshold, now);
  }
  std::string refusal(const std::string& from, const std::string& to) {
    std::string text = config::to_json(report_with(row(5, 6), row(20, 21)));
    text.replace(text.find(from), from.size(), to);
    write_file(path, text);
    return message_of<ConfigError>(
        [&] { read_baseline(path, report_with(row(5, 6), row(20, 21))); });
  }
  test::TmpDir dir;
  const std::string path = dir.path() + "/old.json";
};

TEST_F(Baseline, MarksWhatChangedBeyondTheNoise) {
  Node now = report_with(row(7, 8), row(19, 22));
  EXPECT_TRUE(against(report_with(row(5, 6), row(20, 21)), now, std::nullopt).empty());
  EXPECT_EQ(now.get<std::string>("inference.1.bf16.verdict"), "slower");
  EXPECT_NEAR(now.get<double>("inference.1.bf16.change"), 7.5 / 5.5 - 1, 1e-12);
  EXPECT_EQ(now.get<std::string>("inference.4.fp32.verdict"), "same");
  EXPECT_NE(table_of(now).find("+36 % slower"), std::string::npos) << table_of(now);
  Node faster = report_with(row(4, 4.5), row(20, 21));
  against(report_with(row(5, 6), row(20, 21)), faster, 0);
  EXPECT_EQ(faster.get<std::string>("inference.1.bf16.verdict"), "faster");
}

TEST_F(Baseline, FailsBeyondTheThresholdAndTheNoise) {
  const Node before = report_with(row(5, 6), row(20, 21));
  Node now = report_with(row(7, 8), row(20, 23));  // 36 %; 4.9 %, but within the noise
  const std::vector<std::string> slower = against(before, now, 4);
  ASSERT_EQ(slower.size(), 1U);
  EXPECT_EQ(slower[0], "inference, batch 1, bf16: 7.50 ms, 5.50 before (+36.4 %)");
  EXPECT_TRUE(against(before, now, 40).empty());
}

TEST_F(Baseline, FailsWhereThereIsNoFigureAnyMore) {
  const Node before = report_with(row(5, 6), row(20, 21));
  Node now = report_with(kFailed, row(20, 21));
  EXPECT_EQ(against(before, now, 5),
            std::vector<std::string>{"inference, batch 1, bf16: out of memory"});
  EXPECT_TRUE(against(now, now, 5).empty()) << "it had none before";
}

TEST_F(Baseline, OfFewRunsTakesAllTimes) {
  const auto few = [](double low, double high) {
    std::string text = row(low, high);
    for (const char* key : {"median_low_ms: ", "median_high_ms: "}) {
      const std::size_t at = text.find(key) + std::string(key).size();
      text.replace(at, text.find(',', at) - at, "null");
    }
    return text;
  };
  Node now = report_with(few(7, 8), row(20, 21));
  against(report_with(few(5, 6), row(20, 21)), now, std::nullopt);
  EXPECT_EQ(now.get<std::string>("inference.1.bf16.verdict"), "slower");
  against(report_with(few(5, 7.5), row(20, 21)), now, std::nullopt);
  EXPECT_EQ(now.get<std::string>("inference.1.bf16.verdict"), "same");
}

TEST_F(Baseline, IsRefusedWhereItIsOfSomethingElse) {
  EXPECT_NE(refusal("cpu (x)", "cpu (y)").find("device=\"cpu (x)\" here, \"cpu (y)\""),
            std::string::npos);
  EXPECT_NE(refusal("\"width\":8", "\"width\":9").find("model.width=8 here, 9 there"),
            std::string::npos);
  EXPECT_NE(refusal("[1,1,8,8]", "[1,1,8,9]").find("input_shape=[1,1,8,8] here, [1,1,8,9] there"),
            std::string::npos);
  EXPECT_EQ(refusal("\"speedup\":1", "\"speedup\":2"), "");
  write_file(path, "{\"a\": 1}");
  EXPECT_NE(message_of<DataError>([&] { read_baseline(path, {}); }).find("not a report"),
            std::string::npos);
}

}  // namespace
}  // namespace cytra::app
