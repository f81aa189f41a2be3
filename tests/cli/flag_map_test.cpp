#include "cli/flag_map.h"

#include <gtest/gtest.h>

namespace cytra::cli {
namespace {

std::vector<std::string> mapped(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  FlagMap map("--detector",
              "detector.path",
              "detector.views",
              static_cast<int>(pointers.size()),
              pointers.data());
  EXPECT_EQ(map.data()[map.count()], nullptr);
  return {map.data(), map.data() + map.count()};
}
using WordList = std::vector<std::string>;

TEST(FlagMap, AValueOrOneForEachName) {
  EXPECT_EQ(mapped({"p", "data", "--detector", "a.ckpt", "x.y=1"}),
            (WordList{"p", "data", "detector.path=a.ckpt", "x.y=1"}));
  EXPECT_EQ(mapped({"p", "--detector=a.ckpt", "data"}),
            (WordList{"p", "detector.path=a.ckpt", "data"}));
  EXPECT_EQ(
      mapped({"p", "--detector", "front=a.ckpt", "left=b.ckpt", "x.y=1", "z=2"}),
      (WordList{
          "p", "++detector.views.front=a.ckpt", "++detector.views.left=b.ckpt", "x.y=1", "z=2"}));
  EXPECT_EQ(mapped({"p", "x=1", "--mode", "naive"}), (WordList{"p", "x=1", "--mode", "naive"}));
}

TEST(FlagMap, SignsOfTheGrammarAreQuoted) {
  EXPECT_EQ(mapped({"p", "--detector", "logs/epoch=3,a.ckpt"}).at(1),
            "detector.path='logs/epoch=3,a.ckpt'");
  EXPECT_EQ(mapped({"p", "--detector"}), (WordList{"p", "--detector"}));  // told as without it
}

}  // namespace
}  // namespace cytra::cli
