#include "base/own_files.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;

void put_by_others(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

TEST(OwnFiles, NothingOfOthersIsReplaced) {
  const test::TmpDir dir;
  put_by_others(dir / "theirs", "theirs");
  fs::create_symlink("theirs", dir / "link");
  fs::create_hard_link(dir / "theirs", dir / "hard");
  fs::create_directory_symlink(fs::absolute(std::string(dir / "")), dir / "again");
  for (const char* name : {"theirs", "link", "hard", "again/theirs", "./again/./theirs"}) {
    EXPECT_THROW(write_file(dir / name, "ours"), DataError) << name;
    EXPECT_THROW(expect_replaceable(dir / name), DataError) << name;
  }
  write_file(dir / "mine", "1");
  EXPECT_THROW(link_file(dir / "mine", dir / "theirs"), DataError);
  EXPECT_EQ(read_file(dir / "theirs"), "theirs");
  EXPECT_TRUE(fs::is_symlink(dir / "link"));
  write_file(dir / "again/mine", "2");  // the same by another name
  EXPECT_EQ(read_file(dir / "mine"), "2");
  write_file(dir / "theirs", "theirs");  // no other content: nothing to replace
  for (const auto& entry : fs::directory_iterator(std::string(dir / "")))
    EXPECT_EQ(entry.path().string().find(".tmp."), std::string::npos) << entry.path();
}

TEST(OwnFiles, ARecordKnowsThoseOfAnEarlierRun) {
  const test::TmpDir dir;
  fs::create_directory(dir / "run");
  put_by_others(dir / "run/kept", "123");
  put_by_others(dir / "run/edited", "123");
  put_by_others(dir / "run/a\nb", "123");
  std::string record;  // as an earlier process has left it
  for (const char* name : {"kept", "edited"}) {
    struct stat status {};
    ASSERT_EQ(::stat((dir / (std::string("run/") + name)).c_str(), &status), 0);
    record += "3 " + std::to_string(status.st_mtime) + " " + name + "\n";
  }
  put_by_others(dir / "run/.written", record);
  put_by_others(dir / "run/edited", "1234");
  keep_own_files(dir / "run");
  EXPECT_TRUE(may_replace(dir / "run/kept"));
  EXPECT_FALSE(may_replace(dir / "run/edited"));
  EXPECT_FALSE(may_replace(dir / "run/a\nb"));
  EXPECT_TRUE(may_replace(dir / "run/new"));
  write_file(dir / "run/new", "1");
  EXPECT_NE(read_file(dir / "run/.written").find(" new\n"), std::string::npos);
}

}  // namespace
}  // namespace cytra
