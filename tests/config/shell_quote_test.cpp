#include <array>
#include <cstdio>

#include <gtest/gtest.h>

#include "base/escape.h"
#include "base/files.h"
#include "config/overrides/overrides.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

/// What bash makes of a word that is pasted.
std::string pasted(const std::string& word) {
  const test::TmpDir dir;
  write_file(dir / "pasted.sh", "printf %s " + word);
  FILE* const pipe = ::popen(("bash '" + (dir / "pasted.sh") + "'").c_str(), "r");
  std::string text;
  std::array<char, 256> buffer{};
  for (std::size_t count; (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    text.append(buffer.data(), count);
  ::pclose(pipe);
  return text;
}

constexpr const char* kPaths[] = {"plain/path.ckpt",
                                  "it's $(touch pwned)`id`;x",
                                  "it's; it is (so)",
                                  "two\nlines",
                                  "tab\tand \x1b[31m",
                                  "*?[a]{b,c}",
                                  "not UTF-8 \xff\xfe \xe9t\xe9",
                                  "back\\slash' and \"",
                                  "\u20ac \u202e turned",
                                  "a=b,c",
                                  "~/x"};

TEST(ShellQuote, APastedWordIsTheSame) {
  for (const char* path : kPaths) EXPECT_EQ(pasted(shell_quote(path)), path);
  for (const char* path : kPaths) {
    for (const unsigned char letter : shell_quote(path))
      EXPECT_TRUE(letter >= ' ' && letter != 0x7f) << path << ": a log would change it";
  }
}

TEST(ShellQuote, AnOverrideIsReadBackAsTheSame) {
  for (const char* path : kPaths) {
    const config::Override read =
        config::parse_override(pasted(shell_quote(config::override_word("key", path))));
    ASSERT_EQ(read.values.size(), 1U) << path;
    EXPECT_EQ(read.values[0].string, path);
  }
  EXPECT_EQ(config::override_word("a.b", "logs/epoch=3.ckpt"), "a.b=logs/epoch=3.ckpt");
}

}  // namespace
}  // namespace cytra
