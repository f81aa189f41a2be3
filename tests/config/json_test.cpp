#include "config/json.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace cytra::config {
namespace {

TEST(Json, ReadsWhatToJsonWrites) {
  const Node node = parse_yaml(
      "{a: 1, b: [1.5, -2, 1e300, true, null, 'a \"b\"'], z: {}, y: [], x: '\\', n: 9e15, \"\\n\": "
      "''}",
      "test");
  EXPECT_TRUE(equal(parse_json(to_json(node), "test"), node)) << to_json(node);
}

TEST(Json, ForOthersHasNullForWhatIsNotFinite) {
  EXPECT_EQ(to_plain_json(parse_yaml("{a: .nan, b: [-.inf, 1.5, {c: .inf}], d: nan}", "test")),
            R"({"a":null,"b":[null,1.5,{"c":null}],"d":"nan"})");
}

TEST(Json, HasNoLimitOfLengths) {
  Node node = Node::make_map();
  for (int i = 0; i < 11'000; ++i)
    node.map.emplace_back(std::to_string(i) + std::string(300, 'k'), Node::make_integer(i));
  EXPECT_TRUE(equal(parse_json(to_json(node), "test"), node));
}

TEST(Json, RefusesWhatIsNone) {
  for (const std::string text : {"", "{", "{a: 1}", "[1,]", "{} {}", "\"\xe4\""})
    EXPECT_THROW(parse_json(text, "test"), DataError) << text;
  EXPECT_THROW(parse_json(std::string(100'000, '['), "test"), DataError);
}

TEST(Json, AnyBytesComeBack) {
  Node node = Node::make_map();
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::vector<std::string> texts{all,
                                       "k\xe4se",
                                       "k\xc3\xa4se",
                                       "\xef\x9f\xa4",
                                       "\xf0\x9f\x94\xac",
                                       "\xed\xa0\x80",
                                       "\xc3",
                                       "\xc2\x80",
                                       ""};
  for (const std::string& text : texts)
    node.map.emplace_back("k" + text.substr(0, 40), Node::make_string(text));
  const Node safe = to_utf8(node);
  EXPECT_EQ(safe.map[2].second.string, texts[2]);
  EXPECT_EQ(safe.map[4].second.string, texts[4]);
  EXPECT_TRUE(equal(from_utf8(parse_json(to_json(safe), "test")), node));
  EXPECT_TRUE(equal(from_utf8(parse_yaml(to_yaml(safe), "test")), node));
}

}  // namespace
}  // namespace cytra::config
