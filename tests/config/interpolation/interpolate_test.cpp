#include "config/interpolation/interpolate.h"

#include <chrono>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/composer.h"
#include "tests/config/tree.h"

namespace cytra::config {
namespace {

std::string resolved(const std::string& text) {
  Node node = parse_yaml(text, "a.yaml");
  resolve(node);
  return to_json(node);
}
std::string resolve_error(const std::string& text) {
  return message_of<ConfigError>([&] { resolved(text); });
}

TEST(Interpolate, KeepsTypesAndCopies) {
  EXPECT_EQ(resolved("a: {x: [1, 2.0]}\nb: ${a}\nc: ${a.x.0}\nd: ${a[x][1]}\ne: v${a.x.0}\n"),
            R"({"a":{"x":[1,2.0]},"b":{"x":[1,2.0]},"c":1,"d":2.0,"e":"v1"})");
  EXPECT_EQ(resolved("a: {b: {c: '${..d}', e: '${.c}', f: '${...g}'}, d: 4}\ng: 5\n"),
            R"({"a":{"b":{"c":4,"e":4,"f":5},"d":4},"g":5})");
}

TEST(Interpolate, TextShowsPython) {
  EXPECT_EQ(resolved("t: true\nn: null\nf: 1e-5\nl: [a, it's, 1]\ns: '${t} ${n} ${f} ${l}'\n"),
            R"({"t":true,"n":null,"f":1e-05,"l":["a","it's",1],)"
            R"("s":"True None 1e-05 ['a', \"it's\", 1]"})");
}

TEST(Interpolate, FollowsReferencesByPlace) {
  EXPECT_EQ(resolved("a: ${b}\nb: {x: 1, y: '${a.x}'}\n"),
            R"({"a":{"x":1,"y":1},"b":{"x":1,"y":1}})");
  // ${.q} counts from where it is written, not from where it is read.
  EXPECT_EQ(resolved("x: {r: '${.q}', q: 1}\ny: {z: '${x}', q: 7}\n"),
            R"({"x":{"r":1,"q":1},"y":{"z":{"r":1,"q":1},"q":7}})");
}

TEST(Interpolate, KeepsTheOriginOfEachValue) {
  Node node = parse_yaml("a: {x: 1}\nb: ${a}\nc: ${a.x}\n", "a.yaml");
  resolve(node);
  EXPECT_EQ(node.at("b").where(), "a.yaml:2:4: b");
  EXPECT_EQ(node.at("b.x").where(), "a.yaml:1:8: b.x");
  EXPECT_EQ(node.at("c").where(), "a.yaml:3:4: c");
}

TEST(Interpolate, NowIsOneMomentOfTheRun) {
  const std::string first = resolved("a: ${now:%H-%M-%S-%f}");
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(2)) {
  }
  EXPECT_EQ(resolved("a: ${now:%H-%M-%S-%f}"), first);
  EXPECT_EQ(first.size(), std::string(R"({"a":"01-02-03-000000"})").size());
  EXPECT_EQ(resolved("a: ${now:''}\nb: x${now:%z%Z%%}"), R"({"a":"","b":"x%"})");
}

TEST(Interpolate, DeprecatedWarnsOnce) {
  testing::internal::CaptureStderr();
  const std::string text = "old_key: ${oc.deprecated:new_key}\nnew_key: 3\nb: ${old_key}\n";
  EXPECT_EQ(resolved(text), R"({"old_key":3,"new_key":3,"b":3})");
  resolved(text);
  const std::string told = testing::internal::GetCapturedStderr();
  const std::string line = "'old_key' is deprecated. Change your code and config to use 'new_key'";
  EXPECT_NE(told.find(line), std::string::npos);
  EXPECT_EQ(told.find(line), told.rfind(line));
}

TEST(Interpolate, EvaluatesOneKey) {
  const std::string text =
      "a:\n  x: ${..b}\n  sizes: ???\nb: [1, '${c}']\nc: 2\nd: ${a}\ne: ${nope}\n";
  const Node node = parse_yaml(text, "a.yaml");
  EXPECT_EQ(to_json(evaluate(node, "a")), R"({"x":[1,2],"sizes":"???"})");
  EXPECT_EQ(to_json(evaluate(node, "d.x.1")), "2");
  EXPECT_EQ(evaluate(node, "d.x").path, "d.x");
  EXPECT_TRUE(equal(node, parse_yaml(text, "a.yaml")));
  EXPECT_EQ(
      message_of<ConfigError>([&] { evaluate(node, "d.size"); }),
      "a.yaml:1:1: 'd.size' refers to 'd.size', which does not exist. Did you mean 'a.sizes'?");
  EXPECT_NE(message_of<ConfigError>([&] { evaluate(node, "a.sizes"); }).find("is ???"),
            std::string::npos);
  // Bad syntax is told even where nothing reads it.
  EXPECT_EQ(
      message_of<ConfigError>([&] { evaluate(parse_yaml("a: 1\nb: '${a'\n", "a.yaml"), "a"); }),
      "a.yaml:2:4: '${a' at character 4: the end, expected '}'");
}

TEST(Interpolate, ErrorsNamePlaceKeyAndNearest) {
  EXPECT_EQ(resolve_error("model: {rois: 3}\ndata:\n  roi: ${model.roi}\n"),
            "a.yaml:3:8: data.roi: '${model.roi}' refers to 'model.roi', which does not exist. Did "
            "you mean 'model.rois'?");
  EXPECT_EQ(resolve_error("a: ${b}\nb: ${c.x}\nc: {y: 1}\n"),
            "a.yaml:2:4: b: '${c.x}' refers to 'c.x', which does not exist. Did you mean 'c.y'? "
            "(read by a -> b)");
  EXPECT_EQ(resolve_error("a: ${b.c}\nb: {c: '${a}'}\n"),
            "a.yaml:1:4: a: a cycle: a -> b.c -> a, expected a value at its end");
  EXPECT_EQ(resolve_error("a: {x: '${b}'}\nb: {y: '${a}'}\n"),
            "a.yaml:2:8: b.y: a cycle: a.x -> b.y -> a, expected a value at its end");
  EXPECT_EQ(resolve_error("a: {c: '${a}'}\n"),
            "a.yaml:1:8: a.c: '${a}' is a cycle: 'a' holds this value itself, expected one that "
            "stands elsewhere");
  EXPECT_EQ(resolve_error("a: ???\nb: ${a}\n"),
            "a.yaml:2:4: b: '${a}' refers to 'a', which is ???, expected a value (a=...)");
  EXPECT_EQ(resolve_error("a: ${....b}\n"),
            "a.yaml:1:4: a: '${....b}' has too many dots, expected a container that far up");
  EXPECT_EQ(
      resolve_error("a: {b: 1}\nc: ${a.b.d}\n"),
      "a.yaml:2:4: c: '${a.b.d}' refers to 'a.b.d', but 'a.b' holds an integer, expected a map "
      "or list with a key in it");
  EXPECT_EQ(
      resolve_error("a: 1\nb: {1: x}\nc: ${b.${a}}\n"),
      "a.yaml:3:4: c: ${a} is an integer in '${b.${a}}', expected text there (a number in quotes)");
}

TEST(Interpolate, ErrorsOfFunctions) {
  ::unsetenv("CYTRA_TEST_NONE");
  EXPECT_EQ(resolve_error("a: ${oc.env:CYTRA_TEST_NONE}"),
            "a.yaml:1:4: a: in '${oc.env:CYTRA_TEST_NONE}': the environment variable "
            "'CYTRA_TEST_NONE' is not set, expected a value or a default: ${oc.env:NAME,default}");
  EXPECT_EQ(resolve_error("a: ${oc.enw:X}"),
            "a.yaml:1:4: a: unknown function 'oc.enw' in '${oc.enw:X}', expected a known one. Did "
            "you mean 'oc.env'?");
  EXPECT_EQ(resolve_error("a: ${oc.env:A,b,c}"),
            "a.yaml:1:4: a: '${oc.env:A,b,c}' has 3 arguments, expected 1 or 2");
  EXPECT_EQ(resolve_error("a: ${python_version:major}"),
            "a.yaml:1:4: a: in '${python_version:major}': python_version: there is no Python here, "
            "expected a fixed text");
  EXPECT_EQ(resolve_error("a: ${oc.create:'[1'}").substr(0, 47),
            "a.yaml:1:4: a: in '${oc.create:'[1'}': the text");
  EXPECT_EQ(resolve_error("a: \"${eval:'1 + x'}\""),
            "a.yaml:1:4: a: the expression '1 + x' at character 5: unknown name 'x', expected a "
            "value (text stands in quotes)");
}

TEST(Interpolate, ErrorsOfSyntax) {
  EXPECT_EQ(resolve_error("a: '${b c}'\n"),
            "a.yaml:1:4: a: '${b c}' at character 4: ' ', expected a key, '.', '[', ':' or '}'");
  EXPECT_EQ(resolve_error("a: '${oc.env:b=c}'\n"),
            "a.yaml:1:4: a: '${oc.env:b=c}' at character 11: '=' stands without quotes, expected "
            "'...' round it");
  EXPECT_EQ(resolve_error("a: \"${oc.env:'b}\"\n"),
            "a.yaml:1:4: a: '${oc.env:'b}' at character 10: a quote opens, expected its end");
}

TEST(Interpolate, Limits) {
  const auto repeat = [](const std::string& text, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += text;
    return out;
  };
  std::string text = "a0: '" + std::string(1000, 'x') + "'\n", lists = "a0: [1, 2]\n",
              empty = "a0: ''\n", deep = "", reprs = "a0: [1]\n";
  for (int i = 1; i < 60; ++i) {
    const std::string name = "a" + std::to_string(i), last = "${a" + std::to_string(i - 1) + "}";
    text += name + ": " + last + last + "\n";
    empty += name + ": " + last + last + "\n";
    lists += name + ": ['" + last + "', '" + last + "']\n";
    reprs += name + ": ['x" + last + "', 'x" + last + "']\n";
  }
  EXPECT_NE(resolve_error(text).find("at most 1 MB"), std::string::npos);
  EXPECT_NE(resolve_error(lists).find("copy too much"), std::string::npos);
  EXPECT_EQ(resolve_error(empty), "");  // each text is evaluated once: no 2^60 steps
  EXPECT_EQ(resolve_error(reprs), "");  // the text of a list shows ${...} as written
  std::string chain = "a0: 1\n";
  for (int i = 2000; i > 0; --i)
    chain += "a" + std::to_string(i) + ": ${a" + std::to_string(i - 1) + "}\n";
  EXPECT_NE(resolve_error(chain).find("at most 100"), std::string::npos);
  for (int i = 0; i < 1000; ++i)
    deep += "a" + std::to_string(i) + ": {x: '${a" + std::to_string(i + 1) + "}'}\n";
  EXPECT_NE(resolve_error(deep + "a1000: 1\n").find("at most 200 levels"), std::string::npos);
  for (const char* open : {"${", "${a.", "${oc.select:"})
    EXPECT_NE(resolve_error("a: '" + repeat(open, 1000) + "b" + repeat("}", 1000) + "'")
                  .find("at most 64"),
              std::string::npos);
  EXPECT_NE(
      resolve_error("a: '${oc.create:" + std::string(1000, '[') + std::string(1000, ']') + "}'")
          .find("at most 64"),
      std::string::npos);
  EXPECT_NE(resolve_error("k: '" + std::string(5000, '[') + "'\na: ${${k}}\n").find("at most 2000"),
            std::string::npos);
}

TEST(Interpolate, LargeTreesAreQuick) {
  std::string many = "a0: 1\n", parsed = "t: '" + std::string(900'000, '1') + "'\n";
  for (int i = 1; i < 9'000; ++i)
    many += "a" + std::to_string(i) + ": ${a" + std::to_string(i - 1) + "}\n";
  for (int i = 0; i < 9'000; ++i) parsed += "a" + std::to_string(i) + ": ${oc.decode:${t}}\n";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(resolve_error(many), "");
  EXPECT_NE(resolve_error(parsed).find("copy too much"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - start,
            std::chrono::seconds(20));  // quadratic: minutes
}

TEST(Interpolate, FindsTheContainerOfAReference) {
  const Node node = parse_yaml(
      "m: {p: '${.q}', q: 1}\na.b: ${m}\nx: {y: '${..m}', z: 't${m}'}\nl: ['${m.p}', "
      "'${oc.create:[1]}']\n",
      "a");
  EXPECT_EQ(to_json(referenced_container(node, "x.y").value()), R"({"p":"${.q}","q":1})");
  EXPECT_EQ(to_json(referenced_container(node, "a.b").value()), R"({"p":"${.q}","q":1})");
  EXPECT_EQ(to_json(referenced_container(node, "l.1").value()), "[1]");
  for (const char* path : {"x.z", "l.0", "nope", "", "m.q"})
    EXPECT_FALSE(referenced_container(node, path).has_value()) << path;
}

TEST(Interpolate, FindsContainersOfTheTree) {
  Node node = parse_yaml("m: {p: {q: 1}}\nr: ${m}\nl: ['${r.p}']\nc: '${oc.create:{a: 1}}'\n", "a");
  EXPECT_EQ(container_at(node, "r.p"), node.find("m.p"));
  EXPECT_EQ(container_at(node, "l.0"), node.find("m.p"));
  for (const char* key : {"m.p.q", "m.x", "c", "m.p.q.r"})
    EXPECT_EQ(container_at(node, key), nullptr) << key;
}

}  // namespace
}  // namespace cytra::config
