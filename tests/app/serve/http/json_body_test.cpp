#include "app/serve/http/json_body.h"

#include <gtest/gtest.h>

#include "config/json_limits.h"

namespace cytra::app {
namespace {

int status_of_body(const std::string& text, std::size_t most = kMostWords) {
  try {
    parse_body(text, most);
    return 200;
  } catch (const HttpError& error) {
    return error.status;
  }
}

std::string keys_of_json(int count, const std::string& between = "") {
  std::string text = "{";
  for (int i = 0; i < count; ++i)
    text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + between + "\":1";
  return text + "}";
}

TEST(JsonBody, HasLimits) {
  EXPECT_EQ(status_of_body(keys_of_json(1000)), 200);
  EXPECT_EQ(status_of_body(keys_of_json(1001)), 400);
  EXPECT_EQ(status_of_body("[" + keys_of_json(600) + "," + keys_of_json(600) + "]"), 400);
  EXPECT_EQ(status_of_body(std::string(32, '[') + std::string(32, ']')), 200);
  EXPECT_EQ(status_of_body(std::string(33, '[') + std::string(33, ']')), 400);
  EXPECT_EQ(status_of_body(std::string(kMostWords + 1, ' ')), 413);
  for (const char* text : {"", "{", "[1,]", "{\"a\" 1}", "\"\xff\"", "1e999", "nul"})
    EXPECT_EQ(status_of_body(text), 400) << text;
}

// What takes time by the square of its size does not come to its end here.
TEST(JsonBody, IsReadInATimeThatGrowsAsItsLength) {
  EXPECT_EQ(status_of_body(keys_of_json(1'200'000), kMostTensor), 400);
  EXPECT_EQ(status_of_body(keys_of_json(1000, std::string(15'000, 'a')), kMostTensor), 200);
  std::string objects = "[{}";
  for (int i = 1; i < 3'000'000; ++i) objects += ",{}";
  EXPECT_EQ(status_of_body(objects + "]", kMostTensor), 200);
  EXPECT_EQ(config::json_beyond(keys_of_json(300'000), 8, SIZE_MAX), "");
}

TEST(JsonBody, TakesNoFractionForAWholeNumber) {
  const Json json = parse_body(
      R"({"a": 64, "b": 64.0, "c": 64.9, "d": -1, "e": 18446744073709551615, "f": 1e300, "g": true,
          "h": "1", "i": [1, 2], "j": [1, 2.5], "k": [[1]], "l": null, "m": 9223372036854775807})");
  const auto whole = [&](const char* name) { return json_member<int64_t>(json, name, "one"); };
  EXPECT_EQ(whole("a"), 64);
  EXPECT_EQ(whole("b"), 64);
  EXPECT_EQ(whole("d"), -1);
  EXPECT_EQ(whole("m"), INT64_MAX);
  for (const char* name : {"c", "e", "f", "g", "h", "i", "l", "nothing"})
    EXPECT_THROW(whole(name), HttpError) << name;
  EXPECT_EQ(json_member<std::vector<int64_t>>(json, "i", "a list").size(), 2);
  for (const char* name : {"a", "j", "k"})
    EXPECT_THROW(json_member<std::vector<int64_t>>(json, name, "a list"), HttpError) << name;
}

}  // namespace
}  // namespace cytra::app
