#include "base/log.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

TEST(Log, ForeignNamesMakeNoMessagesOfTheirOwn) {
  const test::TmpDir dir;
  log::set_file(dir / "a.log");
  log::warn("left out: {}", "a\nerror: all is lost\033[2J.tif");
  log::info("a table:\nx  y\n");
  log::set_file("");
  const std::string text = read_file(dir / "a.log");
  EXPECT_NE(text.find("warning: left out: a\n  error: all is lost\\x1b[2J.tif\n"), text.npos)
      << text;
  EXPECT_NE(text.find("a table:\nx  y\n"), text.npos) << text;
}

}  // namespace
}  // namespace cytra
