#include "app/benchmark/rows.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "app/benchmark/report.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra::app {
namespace {

using config::Node;

Variant with_precision(const std::string& precision) {
  Variant variant;
  variant.precision = precision;
  return variant;
}

Measured measured(double ms, double result) {
  Measured made;
  made.times.ms = {ms, ms, ms, ms, ms, ms};
  made.peak_bytes = 2'000'000;
  made.results = {at::full({3}, result)};
  return made;
}

/// Nothing is prepared.
Prepare at_once(std::function<Measured(const Variant&, int64_t, const perf::Repeats&)> measure) {
  return [measure](const Variant& variant, int64_t batch) -> Ready {
    return [=](const perf::Repeats& repeats) { return measure(variant, batch, repeats); };
  };
}

const std::vector<Variant> kThree{{}, with_precision("bf16-mixed"), with_precision("16-mixed")};

TEST(BenchmarkRows, HaveFiguresAgainstTheFirst) {
  Costs costs;
  costs.image = {400'000'000, 600'000'000, 1'000'000};
  costs.roofline.flops_per_s = {{"fp32", 1e12}, {"bf16", 4e12}};
  const Node rows = measure_rows(
      kThree, false, 4, {}, costs, at_once([](const Variant& variant, int64_t batch, auto&) {
        EXPECT_EQ(batch, 4);
        return variant.is_usual() ? measured(20, 1) : measured(10, 1.5);
      }));
  ASSERT_EQ(rows.keys(), (std::vector<std::string>{"fp32", "bf16", "fp16"}));
  EXPECT_EQ(rows.get<double>("fp32.images_per_s"), 200);
  EXPECT_EQ(rows.get<double>("fp32.max_difference"), 0);
  EXPECT_EQ(rows.get<double>("fp32.peak_memory_mb"), 2);
  EXPECT_EQ(rows.get<double>("bf16.speedup"), 2);
  EXPECT_EQ(rows.get<double>("bf16.max_difference"), 0.5);
  EXPECT_EQ(rows.get<double>("bf16.median_low_ms"), 10);
  EXPECT_DOUBLE_EQ(rows.get<double>("bf16.flops_per_s"), 4e11);
  EXPECT_DOUBLE_EQ(rows.get<double>("bf16.share_of_peak"), 0.1);
  EXPECT_DOUBLE_EQ(rows.get<double>("fp32.flops_per_byte"), 100);
  EXPECT_DOUBLE_EQ(rows.get<double>("bf16.flops_per_byte"), 200);
  EXPECT_FALSE(rows.has("fp16.share_of_peak")) << "its peak is not known";
}

TEST(BenchmarkRows, IdenticalWorkOnABusyMachineIsNoSpeedup) {
  int runs = 0;
  test::TmpDir dir;
  write_file(dir / "log", "");
  log::set_file(dir / "log");
  const auto slowing = [&](const Variant&, int64_t, const perf::Repeats&) {
    const double ms = ++runs < 4 ? 48 : 211;  // others came while the first was measured again
    return measured(ms, 0);
  };
  const Node rows =
      measure_rows({{}, with_precision("bf16-mixed")}, true, 1, {}, {}, at_once(slowing));
  log::set_file("");
  EXPECT_EQ(rows.get<double>("bf16.speedup_low"), 1);
  EXPECT_GT(rows.get<double>("bf16.speedup_high"), 4);
  EXPECT_EQ(rows.keys().size(), 2U) << "nothing is put together from noise";
  const std::string told = read_file(dir / "log");
  EXPECT_NE(told.find("took 48 ms, and 211 ms when it was measured again"), std::string::npos)
      << told;
}

TEST(BenchmarkRows, OneThatRunsOutOfMemoryIsARowAndTheOthersAreMeasured) {
  const auto work = [](const Variant& variant, int64_t, const perf::Repeats&) {
    if (variant.arithmetic() == "bf16")
      TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate 2 GiB");
    if (variant.arithmetic() == "fp16") TORCH_CHECK(false, "no such kernel\nmore of it");
    return measured(1, 0);
  };
  std::vector<Variant> variants = kThree;
  variants.emplace_back().channels_last = true;
  const Node rows = measure_rows(variants, false, 1, {}, {}, at_once(work));
  EXPECT_EQ(rows.get<std::string>("bf16.error"), "out of memory");
  EXPECT_TRUE(rows.get<bool>("bf16.is_out_of_memory"));
  EXPECT_EQ(rows.get<std::string>("fp16.error"), "no such kernel");
  EXPECT_FALSE(rows.get<bool>("fp16.is_out_of_memory"));
  EXPECT_EQ(rows.get<double>("channels_last.speedup"), 1);

  Node report = Node::make_map();
  report.set("inference", Node::make_map()).set("1", rows);
  const std::string table = table_of(report);
  EXPECT_NE(table.find("1  bf16: out of memory\n"), std::string::npos) << table;
  EXPECT_NE(table.find("1  channels_last"), std::string::npos) << table;
}

TEST(BenchmarkRows, TheFirstMayRunOutOfMemoryButNotFail) {
  const auto first = [](const std::function<void()>& fail) {
    return at_once([fail](const Variant& variant, int64_t, const perf::Repeats&) {
      if (variant.is_usual()) fail();
      return measured(1, 0);
    });
  };
  const Node rows = measure_rows(kThree, true, 1, {}, {}, first([] { throw std::bad_alloc(); }));
  EXPECT_TRUE(rows.get<bool>("fp32.is_out_of_memory"));
  EXPECT_TRUE(rows.at("bf16.speedup").is_null()) << "of nothing";
  EXPECT_GT(rows.get<double>("bf16.images_per_s"), 0);
  EXPECT_THROW(measure_rows(kThree, false, 1, {}, {}, first([] { TORCH_CHECK(false, "a bug"); })),
               c10::Error);
}

TEST(BenchmarkRows, AreComparedWithFloat32ThatIsNoRow) {
  std::vector<std::string> measured_names;
  const auto work = [&](const Variant& variant, int64_t, const perf::Repeats& repeats) {
    measured_names.push_back(variant.name());
    EXPECT_EQ(repeats.timed, variant.is_usual() ? 1 : 10);
    return measured(1, variant.is_usual() ? 1 : 1.25);
  };
  const Node rows = measure_rows({with_precision("bf16-mixed")}, false, 1, {}, {}, at_once(work));
  EXPECT_EQ(measured_names, (std::vector<std::string>{"fp32", "bf16"}));
  EXPECT_EQ(rows.keys(), std::vector<std::string>{"bf16"});
  EXPECT_EQ(rows.get<double>("bf16.max_difference"), 0.25);
}

TEST(BenchmarkRows, TheFirstIsPreparedOnceWhereThereIsRoom) {
  for (const bool keeps : {true, false}) {
    int prepared = 0, runs = 0;
    Costs costs;
    costs.keeps_first = keeps;
    measure_rows(kThree, false, 1, {}, costs, [&](const Variant& variant, int64_t) -> Ready {
      prepared += variant.is_usual();
      return [&, variant](const perf::Repeats&) {
        runs += variant.is_usual();
        return measured(1, 0);
      };
    });
    EXPECT_EQ(prepared, keeps ? 1 : 3);
    EXPECT_EQ(runs, 3) << "it is measured before and behind each other one";
  }
}

TEST(BenchmarkRows, WhatIsHopelesslySlowIsRunAFewTimes) {
  std::map<std::string, int64_t> runs;
  const auto work = [&](const Variant& variant, int64_t, const perf::Repeats& repeats) {
    runs[variant.name()] += repeats.warmup + repeats.timed;
    return measured(variant.arithmetic() == "fp16" ? 50 : 10, 0);
  };
  const Node rows = measure_rows(kThree, false, 1, {3, 10}, {}, at_once(work));
  EXPECT_EQ(runs.at("bf16"), 13);
  EXPECT_EQ(runs.at("fp16"), 5);
  EXPECT_EQ(rows.get<double>("fp16.speedup"), 0.2);
  // One that was slow once is not
  int calls = 0;
  const Node once =
      measure_rows(kThree,
                   false,
                   1,
                   {3, 10},
                   {},
                   at_once([&](const Variant& variant, int64_t, const perf::Repeats&) {
                     return measured(variant.arithmetic() == "fp16" && ++calls == 1 ? 50 : 10, 0);
                   }));
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(once.get<double>("fp16.speedup"), 1);
  runs.clear();
  measure_rows(kThree, false, 1, {0, 3}, {}, at_once(work));
  EXPECT_EQ(runs.at("fp16"), 3) << "there is nothing to save";
}

TEST(BenchmarkRows, TheFastestOfEachKindComeTogether) {
  std::vector<Variant> variants = kThree;
  variants.emplace_back().channels_last = true;
  variants.emplace_back().channels_last = false;
  variants.emplace_back().fused = true;
  variants.emplace_back().gradient_checkpointing = true;
  const std::map<std::string, double> ms{{"fp32", 10},
                                         {"bf16", 6},
                                         {"fp16", 7},
                                         {"channels_last", 9},
                                         {"channels_first", 11},
                                         {"fused", 12},
                                         {"checkpointing", 1},
                                         {"bf16+channels_last", 4}};
  const auto work = [&](const Variant& variant, int64_t, const perf::Repeats&) {
    return measured(ms.at(variant.name()), 0);
  };
  const Node rows = measure_rows(variants, true, 1, {}, {}, at_once(work));
  EXPECT_EQ(rows.keys().back(), "bf16+channels_last");
  EXPECT_EQ(rows.get<double>("bf16+channels_last.speedup"), 2.5);
}

TEST(BenchmarkVariants, HaveNamesOfTheirOwn) {
  for (const auto& variants : {inference_variants(), training_variants()}) {
    std::set<std::string> names;
    for (const Variant& variant : variants)
      EXPECT_TRUE(names.insert(variant.name()).second) << variant.name();
    EXPECT_TRUE(variants.front().is_usual());
    for (const char* name :
         {"tf32", "bf16", "fp16", "channels_last", "channels_first", "bf16+channels_first"})
      EXPECT_EQ(names.count(name), 1U) << name;
  }
  EXPECT_EQ(with_precision("bf16-true").name(), "bf16-true");
  EXPECT_EQ(with_precision("64-true").name(), "fp64");
  EXPECT_EQ(with_precision("16").name(), "fp16");
}

}  // namespace
}  // namespace cytra::app
