#include "config/overrides/overrides.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/config/tree.h"

namespace cytra::config {
namespace {

std::string value_json(const std::string& text) {
  return to_json(parse_value(text, {}));
}
std::string override_error(const std::string& text) {
  return message_of<ConfigError>([&] { parse_override(text); });
}

TEST(Overrides, Forms) {
  EXPECT_EQ(parse_override("a.b=1").action, Override::Action::change);
  EXPECT_EQ(parse_override("+a=1").action, Override::Action::add);
  EXPECT_EQ(parse_override("++a=1").action, Override::Action::force);
  EXPECT_EQ(parse_override("~a").action, Override::Action::remove);
  EXPECT_TRUE(parse_override("~a").values.empty());
  const Override group = parse_override("hydra/model@teacher.x=unet");
  EXPECT_EQ(group.key, "hydra/model");
  EXPECT_EQ(group.package, "teacher.x");
  EXPECT_EQ(group.full_key(), "hydra/model@teacher.x");
  EXPECT_EQ(group.values.at(0).origin.text(), "command line 'hydra/model@teacher.x=unet'");
  EXPECT_EQ(parse_override("a=1,b,[2]").values.size(), 3U);
}

TEST(Overrides, TypesValues) {
  EXPECT_EQ(
      value_json("[1, -5, 1_000, 007, 1., .5, 1e3, true, False, NULL, yes, 0x10, a b, '1', 1x]"),
      R"([1,-5,1000,"007",1.0,0.5,1000.0,true,false,null,"yes","0x10","a b","1","1x"])");
  EXPECT_EQ(value_json("{a: {b: [x]}, 'c d': 2, a: 3}"), R"({"a":3,"c d":2})");
  EXPECT_EQ(value_json(""), R"("")");
  EXPECT_EQ(value_json("  a  b "), R"("a  b")");
  EXPECT_EQ(value_json(R"('it\'s \n')"), R"("it's \\n")");
  EXPECT_EQ(value_json(R"(a\,b\ )"), R"("a,b ")");
  EXPECT_TRUE(parse_value("'a'", {}).quoted);
}

TEST(Overrides, LenientWhereHydraIsNot) {
  EXPECT_EQ(value_json("logs/epoch=3 é #1 (2).ckpt"), R"("logs/epoch=3 é #1 (2).ckpt")");
  EXPECT_EQ(value_json("a<b>c&d;e!"), R"("a<b>c&d;e!")");
  EXPECT_EQ(value_json("${a.${b}}"), R"("${a.${b}}")");
  EXPECT_EQ(value_json("x${oc.env:A,'}'}"), R"("x${oc.env:A,'}'}")");
}

TEST(Overrides, CallsFunctions) {
  const auto value = [](const std::string& text) {
    return to_json(parse_override("a=" + text).values.at(0));
  };
  EXPECT_EQ(value("int(3.7)"), "3");
  EXPECT_EQ(value("[int('4'), {b: str(1.50)}]"), R"([4,{"b":"1.5"}])");
  EXPECT_EQ(value("sort([b, C, a], reverse=true)"), R"(["b","a","C"])");
  EXPECT_EQ(value("shuffle([1, 2, 3, 4])"), value("shuffle([1, 2, 3, 4])"));
  EXPECT_EQ(parse_override("a=int(3)").sweep, Override::Sweep::none);
  EXPECT_EQ(parse_override("a=int(3)").values[0].origin.text(), "command line 'a=int(3)'");
  // Parentheses elsewhere are text, and values that are no override call nothing.
  for (const char* text :
       {"/data/img (1).tif", "img (1)", "glob (1).tif", "f(1", "x f(1)", "f(1)x"})
    EXPECT_EQ(value(text), '"' + std::string(text) + '"');
  EXPECT_EQ(value("'f(1)'"), "\"f(1)\"");
  EXPECT_EQ(value_json("int(3)"), "\"int(3)\"");
}

TEST(Overrides, ReadsSweeps) {
  using Sweep = Override::Sweep;
  const Override simple = parse_override("a=1e-3, 'x' ,[1, 2],b\\ ");
  EXPECT_EQ(simple.sweep, Sweep::simple);
  EXPECT_EQ(simple.texts, (std::vector<std::string>{"1e-3", "'x'", "[1, 2]", "b\\ "}));
  const Override choice = parse_override("a=choice(/data/img (1).tif, y/x=1.ckpt, '1')");
  EXPECT_EQ(choice.sweep, Sweep::choice);
  EXPECT_EQ(choice.texts, (std::vector<std::string>{"/data/img (1).tif", "y/x=1.ckpt", "'1'"}));
  EXPECT_EQ(parse_override("a=str(1, x y)").texts, (std::vector<std::string>{"'1'", "'x y'"}));
  EXPECT_EQ(parse_override("a=range(0,1,0.5)").texts, (std::vector<std::string>{"0.0", "0.5"}));
  EXPECT_EQ(parse_override("a=glob([x*,'[ab]'],exclude=y)").include.at(1), "[ab]");
  EXPECT_EQ(parse_override("a=interval(0,1)").sweep, Sweep::interval);
  EXPECT_EQ(parse_override("a=range(10000)").values.size(), 10'000U);
  std::vector<std::string> shuffled = parse_override("a=shuffle(range(100))").texts;
  EXPECT_NE(shuffled, parse_override("a=range(100)").texts);
  std::sort(shuffled.begin(), shuffled.end(), [](const auto& a, const auto& b) {
    return std::stoi(a) < std::stoi(b);
  });
  EXPECT_EQ(shuffled, parse_override("a=range(100)").texts);
}

TEST(Overrides, WritesWhatReadsBack) {
  for (const char* text : {"1",
                           "1e-05",
                           "nan",
                           "null",
                           "true",
                           "'1'",
                           "''",
                           "a b",
                           "'it\\'s'",
                           R"('a\\')",
                           R"('a\\\'b')",
                           "'a\\b'",
                           "[a, '[b]', {c: ' d', '{e}': [1.0]}]",
                           "{}",
                           "logs/é=3 (1).ckpt",
                           "${a.b}",
                           "f \\(1\\)",
                           "x\\,y"}) {
    const Node node = parse_override("a=" + std::string(text)).values.at(0);
    const std::string written = override_text(node);
    const Override back = parse_override("a=" + written);
    ASSERT_EQ(back.values.size(), 1U) << written;
    EXPECT_TRUE(equal(back.values[0], node)) << text << " became " << written;
  }
}

TEST(Overrides, Errors) {
  EXPECT_EQ(override_error("foo"),
            "command line 'foo': no '=', expected key=value, +key=value, ++key=value or ~key");
  EXPECT_EQ(override_error("a b=1"),
            "command line 'a b=1':2: 'a b' is no key, expected letters, digits, '_', '-' or '$', "
            "with '.' or '/' between words");
  EXPECT_EQ(override_error("+a@b:c=d"),
            "command line '+a@b:c=d':5: group@package:other renamed a package in Hydra 1.0, "
            "expected group@package=option");
  EXPECT_EQ(override_error("a=[1"),
            "command line 'a=[1':5: the list does not end, expected ',' or ']'");
  EXPECT_EQ(override_error("a=[int(x)]"),
            "command line 'a=[int(x)]':4: 'x' is no integer, expected a number");
  EXPECT_EQ(override_error("a=choise(1,2)"),
            "command line 'a=choise(1,2)':3: unknown function 'choise', expected a known one or "
            "quotes, which make it text. Did you mean 'choice'?");
  EXPECT_EQ(override_error("a=sort(1,revers=true)"),
            "command line 'a=sort(1,revers=true)':3: sort() has no argument 'revers', expected a "
            "known one or quotes, which make it text. Did you mean 'reverse'?");
  EXPECT_EQ(override_error("a=range(10001)"),
            "command line 'a=range(10001)':3: a range of over 10000 values, expected fewer");
  EXPECT_EQ(override_error("a=range(0,1,0)"),
            "command line 'a=range(0,1,0)':3: range() with a step of 0, expected another step");
  EXPECT_NE(override_error("a[0]=1").find("a.0 is the first element"), std::string::npos);
  for (const char* text : {"=1",
                           "-a=1",
                           "a.=1",
                           "a..b=1",
                           ".a=1",
                           "a=[1,]",
                           "a=[1,,2]",
                           "a='x",
                           "a='x'y",
                           "a={x}",
                           "a={x:1",
                           "a={:1}",
                           "a=${x",
                           "a=[a[1]]",
                           "a=1,",
                           "a=]x,[",
                           "+=1",
                           "~",
                           "",
                           "a=[}",
                           "a=]",
                           "a=it's",
                           "a=run[1]",
                           "a=x}",
                           "a=x\"",
                           "a/b.c=1",
                           "a/=1",
                           "a@b/c=1",
                           "a=choice(1",
                           "a=int(1)x",
                           "a=[range(3)]",
                           "a=range(3),1",
                           "a=f(1),f(2)",
                           "a=range(inf)",
                           "a=int(1e400)",
                           "a=range(0,1e300)",
                           "a=sort([nan,1])"}) {
    const std::string error = override_error(text);
    EXPECT_NE(error, "") << text;
  }
  EXPECT_NE(override_error("a=" + std::string(100, '[')).find("64 levels"), std::string::npos);
}

TEST(Overrides, RefusesHugeTextsQuickly) {
  const auto repeated = [](const std::string& part, int count) {
    std::string text = "a=";
    for (int i = 0; i < count; ++i) text += part;
    return text;
  };
  EXPECT_NE(override_error(repeated("int(", 50'000)).find("64 levels"), std::string::npos);
  EXPECT_EQ(parse_override(repeated("f(,", 50'000) + "x").values.size(), 50'001U);
  EXPECT_NE(override_error(repeated("'(", 50'000)), "");
  EXPECT_NE(override_error("a=range(-9223372036854775807,9223372036854775807)"), "");
  EXPECT_EQ(parse_override("a=range(9223372036854775800,9223372036854775807,5)").values.size(), 2U);
  EXPECT_EQ(parse_override("a=range(1e308,1.7e308,1e307)").values.size(), 7U);
}

}  // namespace
}  // namespace cytra::config
