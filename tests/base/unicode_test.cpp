#include "base/unicode.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/escape.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

const std::string kWhole = "K\u00fcn\u1e69\uac01\u304c.tif",
                  kParted = "Ku\u0308ns\u0323\u0307\u1100\u1161\u11a8\u304b\u3099.tif";

TEST(Unicode, FormsOfANameAreOne) {
  EXPECT_EQ(decomposed(kWhole), kParted);
  EXPECT_EQ(decomposed(kParted), kParted);
  EXPECT_EQ(decomposed("\u212b"), "A\u030a");  // the unit is the letter
  EXPECT_EQ(decomposed("a.tif"), "a.tif");
  EXPECT_EQ(decomposed("\xE4\xFF"), "\xE4\xFF");  // no UTF-8 stays
  EXPECT_EQ(decomposed("\U0001F600\u00e4"), "\U0001F600a\u0308");
}

TEST(Unicode, Encodings) {
  EXPECT_TRUE(is_utf8(kWhole));
  for (const char* wrong : {"\xE4", "\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80", "a\xC3"})
    EXPECT_FALSE(is_utf8(wrong)) << wrong;
  EXPECT_EQ(from_utf16(std::string("\xFF\xFE\x3D\xD8\x00\xDE\xE4\x00", 8)), "\U0001F600\u00e4");
  EXPECT_EQ(from_utf16(std::string("\xFE\xFF\xD8\x3D\xDE\x00\xD8\x3D", 8)), "\U0001F600\uFFFD");
  EXPECT_EQ(from_windows_1252("\x80\xFC"), "\u20ac\u00fc");
}

TEST(Unicode, PathsAreFoundWhateverTheirForm) {
  const test::TmpDir dir;
  for (const auto& [stored, asked] : {std::pair{kParted, kWhole}, {kWhole, kParted}}) {
    const std::string folder = dir / ("of" + std::to_string(stored.size())) + "/" + stored;
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/" + stored) << "x";
    const std::string path =
        dir / ("of" + std::to_string(stored.size())) + "/" + asked + "/" + asked;
    EXPECT_EQ(path_as_stored(path), folder + "/" + stored);
    EXPECT_EQ(path_as_stored(folder + "/" + stored), folder + "/" + stored);
    EXPECT_EQ(path_as_stored(path + "x"), path + "x");
  }
  std::ofstream(dir / "\u00fc.tif") << "x";
  EXPECT_EQ(path_as_stored(dir / "\xFC.tif"), dir / "\u00fc.tif");  // of a table in Windows-1252
  EXPECT_EQ(path_as_stored(""), "");
}

}  // namespace
}  // namespace cytra
