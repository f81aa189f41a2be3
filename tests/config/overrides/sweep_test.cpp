#include "config/overrides/sweep.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/composer.h"
#include "tests/config/tree.h"

namespace cytra::config {
namespace {

using Jobs = std::vector<std::vector<std::string>>;
using Params = std::vector<std::pair<std::string, std::string>>;

std::vector<std::string> options(const std::string& group) {
  if (group == "model") return {"vnet", "unet", "vit", "1", "deep/other"};
  return {};
}
Jobs jobs(const std::vector<std::string>& texts, const Params& params = {}) {
  std::vector<Override> overrides;
  for (const std::string& text : texts) overrides.push_back(parse_override(text));
  return sweep_jobs(overrides, params, options);
}
std::string sweep_error(const std::vector<std::string>& texts, const Params& params = {}) {
  return message_of<ConfigError>([&] { jobs(texts, params); });
}

TEST(Sweep, LastKeyIsFastest) {
  EXPECT_EQ(jobs({"a=1,2", "~c", "+b=choice('x',[1, 2])"}),
            (Jobs{{"a=1", "~c", "+b='x'"},
                  {"a=1", "~c", "+b=[1, 2]"},
                  {"a=2", "~c", "+b='x'"},
                  {"a=2", "~c", "+b=[1, 2]"}}));
  EXPECT_EQ(jobs({}), Jobs{{}});
  EXPECT_EQ(jobs({"a=1,2", "b=3", "a=4"}), (Jobs{{"a=4", "b=3"}}));
}

TEST(Sweep, CommandLineReplacesParametersInPlace) {
  EXPECT_EQ(jobs({"b=3", "a=x,y"}, {{"a", "1"}, {"c", "5,6"}}),
            (Jobs{{"a=x", "c=5", "b=3"},
                  {"a=x", "c=6", "b=3"},
                  {"a=y", "c=5", "b=3"},
                  {"a=y", "c=6", "b=3"}}));
}

TEST(Sweep, Globs) {
  EXPECT_EQ(jobs({"model=glob(*)"}),
            (Jobs{{"model='1'"}, {"model=unet"}, {"model=vit"}, {"model=vnet"}}));
  EXPECT_EQ(jobs({"+model@x=glob([u*,v*],exclude=vi?)"}),
            (Jobs{{"+model@x=unet"}, {"+model@x=vnet"}}));
}

TEST(Sweep, Patterns) {
  EXPECT_TRUE(matches_pattern("", ""));
  EXPECT_TRUE(matches_pattern("", "**"));
  EXPECT_TRUE(matches_pattern("abcbc", "a*bc"));
  EXPECT_TRUE(matches_pattern("a]c", "a[]x]c"));
  EXPECT_TRUE(matches_pattern("a5", "?[0-9]"));
  EXPECT_TRUE(matches_pattern("ab", "a[!0-9]"));
  EXPECT_TRUE(matches_pattern("a[b", "a[b"));
  EXPECT_FALSE(matches_pattern("a5", "a[!0-9]"));
  EXPECT_FALSE(matches_pattern("Unet", "u*"));
  EXPECT_FALSE(matches_pattern("a", "a?"));
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "*a";
  EXPECT_FALSE(matches_pattern(std::string(2000, 'a'), pattern + "b"));
}

TEST(Sweep, Errors) {
  EXPECT_EQ(sweep_error({"a=interval(0,1)"}),
            "command line 'a=interval(0,1)': interval() has no values to try, expected a,b, "
            "choice() or range()");
  EXPECT_EQ(sweep_error({"hydra.job.name=x,y"}),
            "command line 'hydra.job.name=x,y': values to try for a setting of hydra, expected one "
            "value");
  EXPECT_EQ(sweep_error({"model=glob(unett)"}),
            "command line 'model=glob(unett)': glob() matches no option, expected some of 'model'. "
            "Did you mean 'unet'?");
  EXPECT_EQ(sweep_error({"modle=glob(*)"}),
            "command line 'modle=glob(*)': glob() of 'modle', which is not a group with options, "
            "expected one");
  EXPECT_NE(sweep_error({"model=glob([])"}).find("matches no option"), std::string::npos);
  EXPECT_EQ(sweep_error({"a=range(0)"}),
            "command line 'a=range(0)': no values to try, expected at least one");
  EXPECT_EQ(sweep_error({}, {{"a", "[1"}}),
            "hydra.sweeper.params: 'a=[1':5: the list does not end, expected ',' or ']'");
  EXPECT_EQ(jobs({"a=range(100)", "b=range(100)"}).size(), 10'000U);
  EXPECT_EQ(sweep_error({"a=range(100)", "b=range(101)"}),
            "command line: over 10000 jobs to run, expected fewer values to try");
  EXPECT_NE(sweep_error({"a=range(10000)", "b=" + std::string(100'000, 'x')}).find("256 MB"),
            std::string::npos);
}

TEST(Sweep, NeedsMultirun) {
  Tree tree;
  tree.write("config.yaml", "a: 1\n");
  const auto error = [&](const std::string& text) {
    return message_of<ConfigError>([&] { Composer({tree.folder()}).compose("config", {text}); });
  };
  EXPECT_EQ(error("a=1, 2"),
            "command line 'a=1, 2': 2 values to try, expected one value; --multirun runs a job for "
            "each, [1,2] is a list, quotes make it text");
  EXPECT_EQ(error("a=choice(5)"),
            "command line 'a=choice(5)': 1 value to try, expected one value; --multirun runs a job "
            "for each");
  EXPECT_EQ(error("a=glob(*)"),
            "command line 'a=glob(*)': values to try, expected one value; --multirun runs a job "
            "for each");
  EXPECT_EQ(error("a=sort([2,1])"), "");
}

}  // namespace
}  // namespace cytra::config
