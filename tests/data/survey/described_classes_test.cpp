#include "data/survey/described_classes.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

data::DatasetDescription described(const std::string& json) {
  const test::TmpDir dir;
  write_file(dir / "dataset.json", json);
  return data::read_description(dir / "dataset.json");
}

std::vector<int64_t> followed(const data::DatasetDescription& description,
                              const std::vector<int64_t>& values,
                              bool& is_ct) {
  std::vector<data::ClassFacts> labels;
  for (const int64_t value : values) labels.push_back({value, 10, 1});
  data::follow(description, labels, is_ct);
  std::vector<int64_t> result;
  for (const data::ClassFacts& label : labels) result.push_back(label.value);
  return result;
}

TEST(PlanLabels, FollowTheDescription) {
  bool is_ct = false;
  const data::DatasetDescription second = described(
      R"({"channel_names": {"0": "CT"}, "labels": {"background": 0, "a": 1, "b": 2, "ignore": 3}})");
  EXPECT_EQ(second.ignored, 3);
  EXPECT_EQ(followed(second, {0, 1, 3}, is_ct), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_TRUE(is_ct);
  EXPECT_THROW(followed(second, {0, 1, 7}, is_ct), ConfigError);
  const data::DatasetDescription first =
      described(R"({"modality": {"0": "MRI"}, "labels": {"0": "background", "1": "a"}})");
  EXPECT_EQ(first.labels.at(1), "a");
  EXPECT_EQ(followed(first, {0, 1}, is_ct), (std::vector<int64_t>{0, 1}));
  EXPECT_FALSE(is_ct) << "named otherwise";
  is_ct = true;
  EXPECT_EQ(followed({}, {0, 5}, is_ct), (std::vector<int64_t>{0, 5}));
  EXPECT_TRUE(is_ct) << "nothing is said";
}

TEST(PlanLabels, RegionsAreRefused) {
  bool is_ct = false;
  const data::DatasetDescription regions =
      described(R"({"channel_names": {"0": "T1"}, "labels": {"background": 0, "whole": [1, 2]}})");
  EXPECT_EQ(regions.regions, std::vector<std::string>{"whole"});
  EXPECT_THROW(followed(regions, {0, 1, 2}, is_ct), ConfigError);
  EXPECT_THROW(described(R"({"labels": {"background": "none"}})"), DataError);
}

}  // namespace
}  // namespace cytra
