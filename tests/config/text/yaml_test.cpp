#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/node.h"
#include "tests/config/tree.h"

namespace cytra::config {
namespace {

std::string yaml_json(const std::string& text) {
  return to_json(parse_yaml(text, "a.yaml"));
}
std::string yaml_error(const std::string& text) {
  return message_of<ConfigError>([&] { parse_yaml(text, "a.yaml"); });
}

TEST(Yaml, TypesScalarsAsOmegaConf) {
  EXPECT_EQ(
      yaml_json(
          "[yes, OFF, y, 010, 0x1F, 0b11, 1_000, 1:30, 1e3, .5, '1', ~, 2020-01-01, inf, 08]"),
      R"([true,false,"y",8,31,3,1000,90,1000.0,0.5,"1",null,"2020-01-01","inf","08"])");
  EXPECT_EQ(parse_yaml("-.inf", "a").real, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(parse_yaml("99999999999999999999", "a").kind, Kind::real);
  EXPECT_EQ(parse_yaml("-9223372036854775808", "a").integer, std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(parse_yaml("a: 'x'", "a").at("a").quoted);
  EXPECT_FALSE(parse_yaml("a: x", "a").at("a").quoted);
}

TEST(Yaml, KeysAreText) {
  EXPECT_EQ(yaml_json("{on: 1, 010: 2, 1e3: 3, 'null': 4}"),
            R"({"on":1,"8":2,"1000.0":3,"null":4})");
}

TEST(Yaml, EmptyIsAMap) {
  EXPECT_EQ(yaml_json(""), "{}");
  EXPECT_EQ(yaml_json("# nothing\n"), "{}");
}

TEST(Yaml, AnchorsAndMergeKeys) {
  EXPECT_EQ(yaml_json("a: &x {p: 1, q: 2}\nb: {q: 3, <<: *x}\nc: {<<: [{p: 8, r: 9}, *x]}\n"),
            R"({"a":{"p":1,"q":2},"b":{"p":1,"q":3},"c":{"p":8,"q":2,"r":9}})");
  EXPECT_EQ(yaml_json("{'<<': 1}"), R"({"<<":1})");
  const Node node = parse_yaml("a: &x {p: 1}\nb: *x\n", "a.yaml");
  EXPECT_EQ(node.at("b.p").origin.text(), "a.yaml:1:11");
}

TEST(Yaml, ErrorsNameThePlace) {
  EXPECT_EQ(yaml_error("a: 1\nb: 2\na: 3\n"),
            "a.yaml:3:1: the key 'a' stands here for the second time, expected it once");
  EXPECT_EQ(yaml_error("a: !thing 1").substr(0, 37), "a.yaml:1:4: unknown tag '!thing', exp");
  EXPECT_EQ(yaml_error("a: [1, 2\nb: 3\n"),
            "a.yaml:1:4: the list that begins here does not end, expected its bracket");
  EXPECT_EQ(yaml_error("a:\n\tb: 3\n"), "a.yaml:2:1: a tab, expected spaces before the key");
  EXPECT_EQ(yaml_error("? [a]\n: 1\n"), "a.yaml:1:3: a list or map can't be a key, expected text");
  EXPECT_EQ(yaml_error("~: 1"), "a.yaml:1:1: null can't be a key, expected text (quote it)");
  EXPECT_EQ(yaml_error("a: 1\n---\nb: 1\n").substr(0, 36), "a.yaml:2:1: a second document begins");
  EXPECT_EQ(yaml_error("a: &x [*x]").substr(0, 34), "a.yaml:1:8: this alias lies inside");
  EXPECT_EQ(yaml_error("<<: 3").substr(0, 32), "a.yaml:1:5: '<<' takes a map or ");
  EXPECT_EQ(yaml_error("a: 1\nb\n"), "a.yaml:2:1: no ':' after 'b', expected key: value");
  EXPECT_EQ(yaml_error("a: # c\nb # c\nc: 1\n").substr(0, 34),
            "a.yaml:2:1: no ':' after this text");
  EXPECT_EQ(yaml_error("a: 'it''s\nb: 2\n").substr(0, 36), "a.yaml:1:4: the quoted text does not");
  EXPECT_EQ(yaml_error("a: [1,,2]\n"), "a.yaml:1:7: nothing before the comma, expected a value");
  EXPECT_EQ(yaml_error("a: x\ty\n"), "a.yaml:1:4: a tab in text without quotes, expected spaces");
  EXPECT_EQ(yaml_error("a: 1\n%b: 2\n").substr(0, 23), "a.yaml:2:1: a directive");
  EXPECT_EQ(yaml_error("\xef\xbb\xbf? a\n: 'b'\n"), "");
}

TEST(Yaml, Limits) {
  EXPECT_EQ(yaml_error(std::string(64, '[') + std::string(64, ']')), "");
  EXPECT_NE(yaml_error(std::string(65, '[') + std::string(65, ']')).find("at most 64 levels"),
            std::string::npos);
  EXPECT_NE(yaml_error(std::string((4 << 20) + 1, ' ')).find("4 MB"), std::string::npos);
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string name = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + name;
    for (int k = 1; k < 10; ++k) bomb += ", " + name;
    bomb += "]\n";
  }
  EXPECT_NE(yaml_error(bomb).find("10,000"), std::string::npos);
  std::string text_bomb = "a: &a '" + std::string(1 << 20, 'x') + "'\nb: [*a";
  for (int i = 0; i < 1000; ++i) text_bomb += ", *a";
  EXPECT_NE(yaml_error(text_bomb + "]").find("16 MB"), std::string::npos);
}

TEST(Yaml, Letters) {
  using namespace std::string_literals;
  EXPECT_EQ(yaml_error("a: 1\nb: x\0y"s),
            "a.yaml:2:5: byte 0x00, expected printable text in UTF-8");
  EXPECT_NE(yaml_error("a: \xff"), "");
  EXPECT_NE(yaml_error("a: \xc3("), "");         // a broken letter
  EXPECT_NE(yaml_error("a: \xc0\xaf"), "");      // a letter in too many bytes
  EXPECT_NE(yaml_error("a: \xed\xa0\x80"), "");  // half a UTF-16 pair
  EXPECT_NE(yaml_error("a: \x1b[0m"), "");       // would colour a terminal
  EXPECT_NE(yaml_error("\ta: 1"), "");           // no indent by tabs
  EXPECT_EQ(yaml_error("\xef\xbb\xbf"
                       "a: 1\r\nb: [é, 𝄞]\r\n"),
            "");
  EXPECT_EQ(parse_yaml("\xef\xbb\xbf"
                       "a: x\r\nb: 2\r\n",
                       "f")
                .get<std::string>("a"),
            "x");
  // A key may be long and odd and is still written so that it reads back.
  const Node odd = parse_yaml(
      "\"" +
          [] {
            std::string key;
            for (int i = 0; i < 200; ++i) key += "\\f";
            return key;
          }() +
          "\": 1",
      "f");
  EXPECT_TRUE(equal(parse_yaml(to_yaml(odd), "again"), odd));
}

TEST(Emit, RoundTrip) {
  const std::string text =
      "a: {b: [], c: {}, d: [[1, 2], {x: 1, y: [z]}]}\n"
      "s: ['1', 'yes', 'y', '~', '', ' x', 'x ', 'a: b', 'a #b', '#a', '- a', '1e3', "
      "\"a\\nb\\t\\u2028\", "
      "'it''s', '[x]', 'x]', 'a:', '---', '\?\?\?', '<<', '=', \"\\e\", '${a}', 'x, y', '@a', '%', "
      "'é']\n"
      "f: [1.0, 1e-5, 0.1, 1e+20, .inf, -.inf, .nan, 123456789012345680.0]\n"
      "? 'a b'\n: 1\n'a: b': 2\n'null': 3\n'': 4\n'[': 5\n";
  const Node node = parse_yaml(text, "a");
  const Node again = parse_yaml(to_yaml(node), "b");
  EXPECT_TRUE(equal(node, again)) << to_yaml(node);
  EXPECT_EQ(to_yaml(again), to_yaml(node));
}

TEST(Emit, Style) {
  EXPECT_EQ(to_yaml(parse_yaml("{a: {b: [1, {c: x, d: '1'}]}, e: [], f: 1e-5, g: n}", "a")),
            "a:\n  b:\n    - 1\n    - c: x\n      d: '1'\ne: []\nf: 1e-05\ng: 'n'\n");
  EXPECT_EQ(to_json(parse_yaml("{a: [1, 1.0, null, \"q\\\"\\n\"]}", "a")),
            R"({"a":[1,1.0,null,"q\"\n"]})");
}

}  // namespace
}  // namespace cytra::config
