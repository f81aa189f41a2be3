#include "base/strings.h"

#include <gtest/gtest.h>

namespace cytra {
namespace {

TEST(InSmallLetters, LeavesAllButLettersOfAscii) {
  EXPECT_EQ(in_small_letters("A.NII.GZ 1@[`{Z"), "a.nii.gz 1@[`{z");
  EXPECT_EQ(in_small_letters("\u00c4\u00e4"), "\u00c4\u00e4");  // bytes of others stay
  EXPECT_EQ(in_small_letters(""), "");
}

}  // namespace
}  // namespace cytra
