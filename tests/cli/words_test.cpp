#include <gtest/gtest.h>

#include "cli/arguments.h"

namespace cytra::cli {
namespace {

std::vector<std::string> placed(std::vector<std::string> words) {
  Program program{"p", "", "", "p", "p", {}};
  program.flags = {{"--one", "o.one", Flag::Takes::one, ""},
                   {"--none", "o.none", Flag::Takes::nothing, ""}};
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  cytra::cli::Words made(
      program, {"o.in", "o.out"}, static_cast<int>(pointers.size()), pointers.data());
  EXPECT_EQ(made.data()[made.count()], nullptr);
  return {made.data(), made.data() + made.count()};
}
using Line = std::vector<std::string>;

TEST(Words, StandForTheirKeysInOrder) {
  EXPECT_EQ(placed({"p", "a.mp4", "b.mp4"}), (Line{"p", "o.in=a.mp4", "o.out=b.mp4"}));
  EXPECT_EQ(placed({"p", "x=1", "a.mp4", "-v", "b.mp4", "c"}),
            (Line{"p", "x=1", "o.in=a.mp4", "-v", "o.out=b.mp4", "c"}));
}

TEST(Words, ValuesOfFlagsStay) {
  EXPECT_EQ(placed({"p", "--one", "1", "a.mp4", "--none", "b.mp4"}),
            (Line{"p", "--one", "1", "o.in=a.mp4", "--none", "o.out=b.mp4"}));
  EXPECT_EQ(placed({"p", "--one=1", "a.mp4"}), (Line{"p", "--one=1", "o.in=a.mp4"}));
  EXPECT_EQ(placed({"p", "-c", "job", "--describe", "video", "a.mp4"}),
            (Line{"p", "-c", "job", "--describe", "video", "o.in=a.mp4"}));
}

TEST(Words, SignsOfTheGrammarAreQuoted) {
  EXPECT_EQ(placed({"p", "a,b.mp4"}), (Line{"p", "o.in='a,b.mp4'"}));
}

}  // namespace
}  // namespace cytra::cli
