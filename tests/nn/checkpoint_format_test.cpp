#include "nn/checkpoint_format.h"

#include <cstdlib>

#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include "base/error.h"
#include "config/json.h"
#include "nn/weights.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

std::string refused(const std::string& number) {
  return message_of<DataError>([&] {
    nn::format_of({{nn::kFormatKey, number}, {"cytra_version", "9.9"}}, "a.ckpt");
  });
}

TEST(CheckpointFormat, WhatIsTooNewIsRefusedByName) {
  EXPECT_EQ(nn::format_of({}, "a.ckpt"), 1);
  EXPECT_EQ(nn::format_of({{nn::kFormatKey, "1"}}, "a.ckpt"), 1);
  const std::string next = std::to_string(nn::kCheckpointFormat + 1);
  EXPECT_EQ(refused(next).find("a.ckpt: a checkpoint of format " + next +
                               " by Cytra 9.9, expected at most "),
            0U)
      << refused(next);
  for (const char* text : {"", "0", "-1", "1.0", " 1", "99999999999999999999", "one"})
    EXPECT_NE(refused(text).find("expected a number from 1 to"), std::string::npos) << text;
}

TEST(CheckpointFormat, EveryReaderLooksAtIt) {
  const test::TmpDir dir;
  const std::string path = dir / "later.ckpt";
  io::write_safetensors(path, {}, {{nn::kFormatKey, "99"}, {"config", "{}"}, {"state", "{}"}});
  torch::nn::Module none;
  EXPECT_NE(message_of<DataError>([&] { nn::checkpoint_config(path); }).find("of format 99"),
            std::string::npos);
  EXPECT_NE(message_of<DataError>([&] { nn::load_weights(path, none); }).find("of format 99"),
            std::string::npos);
  EXPECT_NE(message_of<DataError>([&] {
              nn::checkpoint_text(io::SafetensorsFile(path), path, "state", "");
            }).find("of format 99"),
            std::string::npos);
}

TEST(CheckpointFormat, KeysThatMovedAreCarriedOver) {
  config::Node config =
      config::parse_json(R"({"a": {"b": 1, "c": 2}, "d": 3, "e": {"f": 4}})", "a.ckpt");
  const std::vector<nn::MovedSince> moved{
      {2, "a.b", "x.y"}, {2, "d", "a.d"}, {1, "a.c", "c"}, {3, "x.y", "x.z"}, {2, "e.f", "e.g"}};
  nn::carry_over(config, 1, moved);
  EXPECT_EQ(config::to_json(config),
            config::to_json(config::parse_json(
                R"({"a": {"c": 2, "d": 3}, "e": {"g": 4}, "x": {"z": 1}})", "expected")));
}

TEST(CheckpointFormat, TheEnvironmentIsNotReadForAStrangersConfiguration) {
  const test::TmpDir dir;
  const std::string path = dir / "strange.ckpt";
  setenv("CYTRA_TEST_SECRET", "s3cret", 1);
  io::write_safetensors(
      path,
      {},
      {{"state", "{}"},
       {"config",
        "{a: '${oc.env:CYTRA_TEST_SECRET}', b: [{c: 'x${oc.env:CYTRA_TEST_SECRET,y}z'}], "
        "d: '${oc.decode:${oc.env:CYTRA_TEST_SECRET}}'}"}});
  EXPECT_EQ(config::to_json(nn::checkpoint_config(path)).find("s3cret"), std::string::npos);
  EXPECT_EQ(nn::checkpoint_config(path).get<std::string>("a"), "${oc.env:CYTRA_TEST_SECRET}");
  unsetenv("CYTRA_TEST_SECRET");
}

}  // namespace
}  // namespace cytra
