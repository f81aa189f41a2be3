#include "base/own_files.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

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

TEST(OwnFiles, KnowsWhetherAResultIsAsItWasWritten) {
  const test::TmpDir dir;
  fs::create_directory(dir / "run");
  keep_own_files(dir / "run");
  const auto written = [&](const char* name) {
    write_file(dir / (std::string("run/") + name), "12345");
    return dir / (std::string("run/") + name);
  };
  const std::string whole = written("whole"), cut = written("cut"), gone = written("gone"),
                    folder = written("folder"), link = written("link"), fifo = written("fifo");
  fs::create_directory(dir / "new.tmp");
  put_by_others(dir / "new.tmp/chunk", "123");
  put_in_place(dir / "new.tmp", dir / "run/a.zarr");
  put_by_others(dir / "run/other", "12345");
  EXPECT_TRUE(is_as_written(dir / "run/a.zarr"));
  put_by_others(dir / "run/a.zarr/chunk", "12");
  fs::resize_file(cut, 2);
  fs::remove(gone);
  for (const std::string& path : {folder, link, fifo}) fs::remove(path);
  fs::create_directory(folder);
  fs::create_symlink(whole, link);
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_TRUE(is_as_written(whole));
  for (const std::string& path :
       {cut, gone, folder, link, fifo, dir / "run/a.zarr", dir / "run/other", dir / "run/."})
    EXPECT_FALSE(is_as_written(path)) << path;
}

TEST(OwnFiles, AResultThatWasCutIsMadeAnewAndOneThatWasCorrectedIsNot) {
  const test::TmpDir dir;
  const auto at = [&](const std::string& name) { return dir / ("run/" + name); };
  fs::create_directories(at("folder"));
  fs::create_directory(at("full"));
  put_by_others(dir / "victim", "untouched");
  put_by_others(at("cut"), "123");
  put_by_others(at("emptied"), "");
  fs::create_symlink(dir / "victim", at("link"));
  put_by_others(at("corrected"), "12a");
  put_by_others(at("longer"), "1234567");
  put_by_others(at("not_ours"), "123");
  put_by_others(at("full/theirs"), "x");
  std::string record;  // of an earlier process: 6 bytes each
  for (const char* name : {"cut", "emptied", "folder", "link", "corrected", "longer", "full"})
    record += std::string("6 1 ") + name + "\n";
  put_by_others(at(".written"), record);
  keep_own_files(dir / "run");
  for (const char* name : {"cut", "emptied", "folder", "link"}) {
    EXPECT_FALSE(is_as_written(at(name))) << name;
    expect_replaceable(at(name));
    write_file(at(name), "123456");
    EXPECT_EQ(read_file(at(name)), "123456") << name;
    EXPECT_TRUE(is_as_written(at(name))) << name;
  }
  for (const char* name : {"corrected", "longer", "not_ours", "full"}) {
    EXPECT_FALSE(is_as_written(at(name))) << name;
    EXPECT_THROW(write_file(at(name), "123456"), DataError) << name;
  }
  EXPECT_EQ(read_file(dir / "victim"), "untouched");
  EXPECT_EQ(read_file(at("corrected")), "12a");
  EXPECT_TRUE(fs::exists(at("full/theirs")));
}

TEST(OwnFiles, ARecordOfOthersVouchesForTheirFilesAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root: files of two users";
  const test::TmpDir dir;
  for (const char* run : {"theirs", "anybodys"}) {
    const std::string folder = dir / run;
    fs::create_directory(folder);
    std::string record;
    for (const char* name : {"mine", "of_owner"}) {
      put_by_others(folder + "/" + name, "123");
      struct stat status {};
      ASSERT_EQ(::stat((folder + "/" + name).c_str(), &status), 0);
      record += "3 " + std::to_string(status.st_mtime) + " " + name + "\n";
    }
    put_by_others(folder + "/.written", record);
  }
  ASSERT_EQ(::chown((dir / "theirs/.written").c_str(), 12345, 12345), 0);
  ASSERT_EQ(::chown((dir / "theirs/of_owner").c_str(), 12345, 12345), 0);
  ASSERT_EQ(::chmod((dir / "anybodys/.written").c_str(), 0666), 0);
  keep_own_files(dir / "theirs");
  keep_own_files(dir / "anybodys");
  EXPECT_FALSE(may_replace(dir / "theirs/mine"));
  EXPECT_FALSE(is_as_written(dir / "theirs/mine"));
  EXPECT_TRUE(may_replace(dir / "theirs/of_owner"));
  EXPECT_FALSE(may_replace(dir / "anybodys/mine"));
  write_file(dir / "theirs/new", "1");
  EXPECT_EQ(read_file(dir / "theirs/.written").find(" new\n"), std::string::npos);
  EXPECT_NE(read_file(dir / "theirs/.written-0").find(" new\n"), std::string::npos);
}

TEST(OwnFiles, ARecordThatIsNoFileIsRefusedAtOnce) {
  const test::TmpDir dir;
  for (const char* run : {"link", "fifo"}) fs::create_directory(dir / run);
  put_by_others(dir / "victim", "");
  fs::create_symlink(dir / "victim", dir / "link/.written");
  ASSERT_EQ(::mkfifo((dir / "fifo/.written").c_str(), 0600), 0);
  for (const char* run : {"link", "fifo"}) EXPECT_THROW(keep_own_files(dir / run), ConfigError);
}

}  // namespace
}  // namespace cytra
