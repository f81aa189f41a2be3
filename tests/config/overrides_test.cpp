#include "config/overrides.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/config/tree.h"

namespace cytra::config {
namespace {

std::string json(const std::string& text) {
  return to_json(parse_value(text, {}));
}
std::string error_of(const std::string& text) {
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
  EXPECT_EQ(json("[1, -5, 1_000, 007, 1., .5, 1e3, true, False, NULL, yes, 0x10, a b, '1', 1x]"),
            R"([1,-5,1000,"007",1.0,0.5,1000.0,true,false,null,"yes","0x10","a b","1","1x"])");
  EXPECT_EQ(json("{a: {b: [x]}, 'c d': 2, a: 3}"), R"({"a":3,"c d":2})");
  EXPECT_EQ(json(""), R"("")");
  EXPECT_EQ(json("  a  b "), R"("a  b")");
  EXPECT_EQ(json(R"('it\'s \n')"), R"("it's \\n")");
  EXPECT_EQ(json(R"(a\,b\ )"), R"("a,b ")");
  EXPECT_TRUE(parse_value("'a'", {}).quoted);
}

TEST(Overrides, LenientWhereHydraIsNot) {
  EXPECT_EQ(json("logs/epoch=3 é #1 (2).ckpt"), R"("logs/epoch=3 é #1 (2).ckpt")");
  EXPECT_EQ(json("it's"), R"("it's")");
  EXPECT_EQ(json("a<b>c&d;e!"), R"("a<b>c&d;e!")");
  EXPECT_EQ(json("run[1]"), R"("run[1]")");
  EXPECT_EQ(json("${a.${b}}"), R"("${a.${b}}")");
  EXPECT_EQ(json("x${oc.env:A,'}'}"), R"("x${oc.env:A,'}'}")");
}

TEST(Overrides, Errors) {
  EXPECT_EQ(error_of("foo"),
            "command line 'foo': no '=', expected key=value, +key=value, ++key=value or ~key");
  EXPECT_EQ(error_of("a b=1"),
            "command line 'a b=1': 'a b' is no key, expected letters, digits, '_', '-', '$' with "
            "'.' or '/' between");
  EXPECT_EQ(error_of("a=[1"),
            "command line 'a=[1': at character 3 of the value: the list does not end, expected ',' "
            "or ']'");
  for (const char* text :
       {"=1",     "-a=1",  "a.=1",   "a..b=1", ".a=1",  "a=[1,]",   "a=[1,,2]",      "a='x",
        "a='x'y", "a={x}", "a={x:1", "a={:1}", "a=${x", "a=[a[1]]", "a=choice(1,2)", "a=1,",
        "a=]x,[", "+=1",   "~",      "",       "a=[}"}) {
    EXPECT_NE(error_of(text), "") << text;
  }
  EXPECT_NE(error_of("a=" + std::string(100, '[')).find("64 levels"), std::string::npos);
}

}  // namespace
}  // namespace cytra::config
