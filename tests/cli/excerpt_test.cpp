#include "cli/excerpt.h"

#include <gtest/gtest.h>

#include "tests/config/tree.h"

namespace cytra::cli {
namespace {

TEST(Excerpt, ShowsTheLineAndTheWord) {
  const config::Tree tree;
  tree.write("a.yaml", "x: 1\n  filtres: [8]\ngrüße: bad\n");
  const std::string file = tree.folder() + "/a.yaml";
  EXPECT_EQ(with_source(file + ":2:3: model.filtres: unknown key"),
            file + ":2:3: model.filtres: unknown key\n    2 |   filtres: [8]\n          ^~~~~~~");
  // The caret counts letters, not bytes.
  EXPECT_EQ(with_source(file + ":3:10: x"),
            file + ":3:10: x\n    3 | grüße: bad\n               ^~~");
}

TEST(Excerpt, PointsIntoOverrides) {
  EXPECT_EQ(with_source("command line 'a=[1':4: the list does not end"),
            "command line 'a=[1':4: the list does not end\n    a=[1\n       ^");
  EXPECT_EQ(with_source("command line 'a=1': no key"), "command line 'a=1': no key");
}

TEST(Excerpt, EveryErrorItsOwn) {
  const config::Tree tree;
  tree.write("a.yaml", "x: 1\ny: 2\n");
  const std::string file = tree.folder() + "/a.yaml";
  EXPECT_EQ(
      with_source(file + ":1:1: one\n" + file + ":2:1: two"),
      file + ":1:1: one\n    1 | x: 1\n        ^\n" + file + ":2:1: two\n    2 | y: 2\n        ^");
}

TEST(Excerpt, LeavesOtherMessagesAlone) {
  for (const char* text : {"",
                           "plain",
                           "/nope/a.yaml:1:1: gone",
                           "a.yaml:x:1: y",
                           "a.yaml:0:0: z",
                           "a.yaml:99999999999999999999:1: z",
                           "command line '",
                           "image.tif: broken"})
    EXPECT_EQ(with_source(text), text);
  const config::Tree tree;
  tree.write("a.yaml", "x");
  const std::string file = tree.folder() + "/a.yaml";
  EXPECT_EQ(with_source(file + ":7:1: below the end"), file + ":7:1: below the end");
  EXPECT_EQ(with_source(file + ":1:99: y"), file + ":1:99: y\n    1 | x\n         ^");
}

TEST(Excerpt, ShortensLongLines) {
  const config::Tree tree;
  tree.write("a.yaml", std::string(5000, 'a') + ": bad");
  const std::string text = with_source(tree.folder() + "/a.yaml:1:4000: z");
  EXPECT_LT(text.size(), 600U);
}

}  // namespace
}  // namespace cytra::cli
