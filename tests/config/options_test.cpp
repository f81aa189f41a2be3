#include "config/options.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/composer.h"
#include "tests/config/tree.h"

namespace cytra::config {
namespace {

struct Inner {
  double rate = 0.5;
  void visit(auto& v) { v("rate", rate, "rate", 0, 1); }
};

struct Options {
  int64_t width = 8;
  std::string mode = "same";
  std::optional<double> scale;
  std::optional<int64_t> bounded;
  std::vector<Inner> parts;
  std::vector<int64_t> sizes = {1};
  Inner inner;
  Node free;
  void visit(auto& v) {
    v("width", width, "features", 1, 64);
    v("mode", mode, "border", {"same", "valid"});
    v("scale", scale, "factor");
    v("bounded", bounded, "number", 1, 3);
    v("parts", parts, "parts");
    v("sizes", sizes, "sizes", 1, 9);
    v("inner", inner, "inner");
    v("free", free, "anything");
  }
};

Options read_from(const std::string& text) {
  Node node = parse_yaml(text, "a.yaml");
  set_paths(node, "model");
  return parse<Options>(node);
}
std::string option_error(const std::string& text) {
  return message_of<ConfigError>([&] { read_from(text); });
}

TEST(Options, Reads) {
  EXPECT_EQ(read_from("").width, 8);
  const Options options = read_from(
      "_target_: X\n_convert_: all\nwidth: 4\nmode: valid\nscale: 2\nparts: [{rate: 1}, {}]\n"
      "sizes: [3, 4]\ninner: {rate: 0}\nfree: {a: 1}\n");
  EXPECT_EQ(options.width, 4);
  EXPECT_EQ(options.mode, "valid");
  EXPECT_EQ(options.scale, 2.0);
  EXPECT_EQ(options.parts.size(), 2U);
  EXPECT_EQ(options.sizes, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(options.inner.rate, 0);
  EXPECT_EQ(options.free.get<int64_t>("a"), 1);
  EXPECT_EQ(read_from("sizes: 7").sizes, (std::vector<int64_t>{7}));
  EXPECT_FALSE(read_from("scale: null").scale.has_value());
}

TEST(Options, Errors) {
  EXPECT_EQ(option_error("widht: 1"),
            "a.yaml:1:1: model.widht: unknown key 'widht', expected one this part has. Did you "
            "mean 'width'?");
  EXPECT_EQ(option_error("colour: 1"),
            "a.yaml:1:1: model.colour: unknown key 'colour', expected one this part has. Choices: "
            "width, mode, scale, bounded, parts, sizes, inner, free.");
  EXPECT_EQ(option_error("widths: 1"),
            "a.yaml:1:1: model.widths: unknown key 'widths', expected one this part has. Did you "
            "mean 'width'?");
  EXPECT_EQ(option_error("width: 65"),
            "a.yaml:1:8: model.width: expected a value from 1 to 64, got 65");
  EXPECT_EQ(option_error("width: ten"), "a.yaml:1:8: model.width: expected an integer, got 'ten'");
  EXPECT_EQ(
      option_error("mode: vald"),
      "a.yaml:1:7: model.mode: expected one of same, valid, got 'vald'. Did you mean 'valid'?");
  EXPECT_EQ(option_error("inner: {rate: 1.5}"),
            "a.yaml:1:15: model.inner.rate: expected a value from 0 to 1, got 1.5");
  EXPECT_EQ(option_error("inner: {rate: .nan}"),
            "a.yaml:1:15: model.inner.rate: expected a value from 0 to 1, got nan");
  EXPECT_EQ(option_error("inner: 3"), "a.yaml:1:8: model.inner: expected a map of options, got 3");
  EXPECT_EQ(option_error("parts: [3]"),
            "a.yaml:1:9: model.parts[0]: expected a map of options, got 3");
  EXPECT_EQ(option_error("bounded: 4"),
            "a.yaml:1:10: model.bounded: expected a value from 1 to 3, got 4");
  EXPECT_EQ(option_error("sizes: [10]"),
            "a.yaml:1:8: model.sizes: expected a value from 1 to 9, got 10");
}

TEST(Options, CollectsEveryProblem) {
  EXPECT_EQ(
      option_error("width: 65\nmode: vald\ninner: {rate: 2, rat: 1}\nparts: [{rate: x}, 3]\n"
                   "sizes: [a, b]\nwidht: 1\nscale: ???\n"),
      "a.yaml:1:8: model.width: expected a value from 1 to 64, got 65\n"
      "a.yaml:2:7: model.mode: expected one of same, valid, got 'vald'. Did you mean "
      "'valid'?\n"
      "a.yaml:7:8: model.scale: expected a number, got ??? (it must be set)\n"
      "a.yaml:4:16: model.parts[0].rate: expected a number, got 'x'\n"
      "a.yaml:4:20: model.parts[1]: expected a map of options, got 3\n"
      "a.yaml:5:9: model.sizes[0]: expected an integer, got 'a'\n"
      "a.yaml:5:12: model.sizes[1]: expected an integer, got 'b'\n"
      "a.yaml:3:15: model.inner.rate: expected a value from 0 to 1, got 2\n"
      "a.yaml:3:18: model.inner.rat: unknown key 'rat', expected one this part has. Did you "
      "mean 'rate'?\n"
      "a.yaml:6:1: model.widht: unknown key 'widht', expected one this part has. Did you mean "
      "'width'?");
}

TEST(Options, KeysOfHydraAndOfTheUser) {
  EXPECT_EQ(option_error("_partial_: true\n_recursive_: false\n_convert_: all\n_aux: {a: 1}"), "");
  EXPECT_EQ(option_error("_args_: [1]"),
            "a.yaml:1:9: model._args_: arguments by position are not supported, name them");
  EXPECT_EQ(option_error("_targett_: X"),
            "a.yaml:1:1: model._targett_: unknown key '_targett_', expected one this part has. "
            "Did you mean '_target_'?");
  Node node = parse_yaml("{free_one: 1, inner: {free_two: 2, three: 3}}", "a.yaml");
  set_paths(node);
  Problems problems;
  read_options<Options>(node, problems, {"free_one", "inner.free_two", "three"});
  EXPECT_EQ(message_of<ConfigError>([&] { problems.throw_if_any(); }),
            "a.yaml:1:36: inner.three: unknown key 'three', expected one this part has. Choices: "
            "rate.");
}

struct Strict {
  std::vector<std::string> keys;
  int64_t low = 0, high = 1;
  void visit(auto& v) {
    v("keys", keys, "what", required);
    v("low", low, "from");
    v("high", high, "to");
    v("test", Unused{{"false"}}, "not done");
    v("tags", Unused{}, "kept");
  }
  void check() {
    if (low > high) throw ConfigError("low is above high");
    if (low < 0) throw ConfigError("low=" + std::to_string(low) + ": below 0");
    high += 10;
  }
};

TEST(Options, RequiredAndChecked) {
  const auto error = [](const std::string& text) {
    return message_of<ConfigError>([&] { parse<Strict>(parse_yaml(text, "a.yaml")); });
  };
  EXPECT_EQ(error("low: 1"), "a.yaml:1:1: 'keys' is missing, expected a value.");
  EXPECT_EQ(error("keys: []"), "a.yaml:1:1: 'keys' is missing, expected a value.");
  EXPECT_EQ(error("keys: null"), "a.yaml:1:1: 'keys' is missing, expected a value.");
  EXPECT_EQ(error("{keys: a, low: 5}"), "a.yaml:1:1: low is above high");
  EXPECT_EQ(error("{keys: a, low: -1}"), "a.yaml:1:16: low=-1: below 0");
  Node node = parse_yaml("{keys: a, low: -1}", "a.yaml");
  set_paths(node);
  EXPECT_EQ(message_of<ConfigError>([&] { parse<Strict>(node); }), "a.yaml:1:16: low: below 0");
  EXPECT_EQ(parse<Strict>(parse_yaml("{keys: a, high: 5}", "a.yaml")).high, 15);
}

TEST(Options, SettingsWithoutEffectAreNoted) {
  Node node = parse_yaml("{keys: a, test: true, tags: [x]}", "a.yaml");
  set_paths(node);
  Problems problems;
  read_options<Strict>(node, problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(problems.notes(),
            (std::vector<std::string>{"test: true has no effect here (not done)"}));
  Problems quiet;
  read_options<Strict>(parse_yaml("{keys: a, test: false, tags: null}", "a.yaml"), quiet);
  EXPECT_TRUE(quiet.notes().empty());
}

TEST(Options, AValueThatWasCopiedIsWrongOnce) {
  Node node = parse_yaml("{model: {width: 65}, copy: {width: 65}}", "a.yaml");
  node.find("copy.width")->origin = node.find("model.width")->origin;
  set_paths(node);
  Problems problems;
  read_options<Options>(node.at("model"), problems);
  read_options<Options>(node.at("copy"), problems);
  EXPECT_EQ(message_of<ConfigError>([&] { problems.throw_if_any(); }),
            "a.yaml:1:17: model.width: expected a value from 1 to 64, got 65");
}

TEST(Options, ABrokenFileEndsSoon) {
  Node node = Node::make_map();
  for (int i = 0; i < 100000; ++i)
    node.map.emplace_back("key_" + std::string(1000, 'x') + std::to_string(i), Node());
  set_paths(node);
  const std::string error = message_of<ConfigError>([&] { parse<Options>(node); });
  EXPECT_LT(error.size(), 100000U);
  EXPECT_NE(error.find("... and more"), std::string::npos);
  Node list = parse_yaml("sizes: []", "a.yaml");
  list.find("sizes")->list.resize(100000);
  set_paths(list);
  EXPECT_NE(message_of<ConfigError>([&] { parse<Options>(list); }).find("... and more"),
            std::string::npos);
}

}  // namespace
}  // namespace cytra::config
