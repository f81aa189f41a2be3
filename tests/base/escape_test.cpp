#include "base/escape.h"

#include <gtest/gtest.h>

namespace cytra {
namespace {

TEST(Escape, KeepsLettersAndNothingThatATerminalObeys) {
  EXPECT_EQ(escaped("cells/07 größe 細胞 🔬 \\ \".tif"), "cells/07 größe 細胞 🔬 \\ \".tif");
  EXPECT_EQ(escaped("a\nbest_checkpoint: /evil\r\t"), "a\\nbest_checkpoint: /evil\\r\\t");
  EXPECT_EQ(escaped("\033[2J\a\x7f"), "\\x1b[2J\\x07\\x7f");
  EXPECT_EQ(escaped(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(escaped("\u009b31m"), "\\x9b31m") << "C1: as ESC [";
  EXPECT_EQ(escaped("\u202egnp.exe\u2028x"), "\\u202egnp.exe\\u2028x");
  EXPECT_EQ(escaped_lines("a\n\tb\033"), "a\n\tb\\x1b");
}

TEST(Escape, TellsWhatIsNoUtf8) {
  for (const char* bad :
       {"\xe4", "a\xff", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82"}) {
    EXPECT_FALSE(is_utf8(bad));
    for (const char c : escaped(bad)) EXPECT_LT(static_cast<unsigned char>(c), 0x80);
  }
  EXPECT_EQ(escaped("gr\xf6\xdf"), "gr\\xf6\\xdf");
  EXPECT_TRUE(is_utf8("größe 🔬\n"));
}

}  // namespace
}  // namespace cytra
