#include <cstdlib>

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/composer.h"
#include "tests/config/tree.h"

namespace cytra::config {
namespace {

std::string json(const std::string& text) {
  Node node = parse_yaml(text, "a.yaml");
  resolve(node);
  return to_json(node);
}
std::string error_of(const std::string& text) {
  return message_of<ConfigError>([&] { json(text); });
}

TEST(Interpolate, KeepsTypesAndCopies) {
  EXPECT_EQ(json("a: {x: [1, 2.0]}\nb: ${a}\nc: ${a.x.0}\nd: ${a[x][1]}\ne: v${a.x.0}\n"),
            R"({"a":{"x":[1,2.0]},"b":{"x":[1,2.0]},"c":1,"d":2.0,"e":"v1"})");
  EXPECT_EQ(json("a: {b: {c: '${..d}', e: '${.c}', f: '${...g}'}, d: 4}\ng: 5\n"),
            R"({"a":{"b":{"c":4,"e":4,"f":5},"d":4},"g":5})");
  EXPECT_EQ(json("k: b\na: {b: 1}\nc: ${a.${k}}\n"), R"({"k":"b","a":{"b":1},"c":1})");
}

TEST(Interpolate, TextShowsYaml) {
  EXPECT_EQ(json("t: true\nn: null\nf: 1e-5\ns: '${t} ${n} ${f}'\n"),
            R"({"t":true,"n":null,"f":1e-05,"s":"true null 1e-05"})");
}

TEST(Interpolate, Escapes) {
  EXPECT_EQ(
      json("a: 1\nb: \\${a}\nc: \\\\${a}\nd: x\\y${a}\ne: ${b}\nf: {g: '${h}'}\nh: {i: "
           "'\\${a}'}\nj: ${f.g.i}\n"),
      R"({"a":1,"b":"${a}","c":"\\1","d":"x\\y1","e":"${a}","f":{"g":{"i":"${a}"}},"h":{"i":"${a}"},"j":"${a}"})");
}

TEST(Interpolate, Functions) {
  ::setenv("CYTRA_TEST_VALUE", "5", 1);
  ::unsetenv("CYTRA_TEST_NONE");
  EXPECT_EQ(json("a: ${oc.env:CYTRA_TEST_VALUE}\nb: ${oc.env:CYTRA_TEST_NONE,'x, ${a}'}\nc: "
                 "${oc.select:q.r,7}\nd: ${oc.decode:'[1]'}\n"),
            R"({"a":"5","b":"x, 5","c":7,"d":[1]})");
  EXPECT_EQ(json("a: ${now:%Y}").size(), std::string(R"({"a":"2024"})").size());
  EXPECT_EQ(error_of("a: ${oc.env:CYTRA_TEST_NONE}").substr(0, 66),
            "a.yaml:1:4: a: the environment variable 'CYTRA_TEST_NONE' is not s");
  EXPECT_EQ(error_of("a: ${hydra:runtime.cwd}"),
            "a.yaml:1:4: a: ${hydra:...} names a value only Hydra has, expected a key of this "
            "configuration");
  EXPECT_EQ(error_of("a: ${oc.enw:X}"),
            "a.yaml:1:4: a: unknown function 'oc.enw' in ${oc.enw:...}, expected a known one. Did "
            "you mean 'oc.env'?");
}

TEST(Interpolate, Errors) {
  EXPECT_EQ(error_of("model: {rois: 3}\ndata:\n  roi: ${model.roi}\n"),
            "a.yaml:3:8: data.roi: ${model.roi} refers to 'model.roi', which does not exist. Did "
            "you mean 'model.rois'?");
  EXPECT_EQ(error_of("a: ${b.c}\nb: {c: '${a}'}\n"),
            "a.yaml:1:4: a: a cycle: a -> b.c -> a, expected a value at its end");
  EXPECT_EQ(error_of("a: {c: '${a}'}\n"),
            "a.yaml:1:8: a.c: a cycle: a.c -> a.c, expected a value at its end");
  EXPECT_EQ(error_of("a: ???\nb: ${a}\n"),
            "a.yaml:2:4: b: ${a} refers to 'a', which is ???, expected a value (a=...)");
  EXPECT_EQ(error_of("a: ${....b}\n"),
            "a.yaml:1:4: a: ${....b} has too many dots, expected a container that far up");
  for (const char* text : {"a: ${b", "a: ${}", "a: '${oc.env:a,b,c}'", "a: '${oc.dict.keys:x}'"})
    EXPECT_NE(error_of(text), "") << text;
}

TEST(Interpolate, Limits) {
  std::string text = "a0: '" + std::string(1000, 'x') + "'\n", lists = "a0: [1, 2]\n",
              chain = "a0: 1\n";
  for (int i = 1; i < 60; ++i) {
    const std::string name = "a" + std::to_string(i), last = "${a" + std::to_string(i - 1) + "}";
    text += name + ": " + last + last + "\n";
    lists += name + ": ['" + last + "', '" + last + "']\n";
  }
  for (int i = 2000; i > 0; --i)
    chain += "a" + std::to_string(i) + ": ${a" + std::to_string(i - 1) + "}\n";
  EXPECT_NE(error_of(text), "");
  EXPECT_NE(error_of(lists), "");
  EXPECT_NE(error_of(chain).find("at most 100"), std::string::npos);
  std::string nested = "1";
  for (int i = 0; i < 1000; ++i) nested = "${" + nested + "}";
  EXPECT_NE(error_of("a: " + nested), "");
}

TEST(Interpolate, RequireCompleteListsAll) {
  Node node = parse_yaml("a: ???\nb:\n  - 1\n  - ???\n", "a.yaml");
  set_paths(node);
  EXPECT_EQ(message_of<ConfigError>([&] { require_complete(node); }),
            "values that must be set are still ???: a (a.yaml:1:4), b[1] (a.yaml:4:5), expected "
            "key=value for each");
}

}  // namespace
}  // namespace cytra::config
