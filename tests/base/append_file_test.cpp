#include "base/append_file.h"

#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

/// What is written to stderr while `work` runs, with files of at most `bytes`.
template <class Work>
std::string on_a_full_disk(rlim_t bytes, const Work& work) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  ::testing::internal::CaptureStderr();
  work([&](bool is_full) {
    const rlimit limit{is_full ? bytes : before.rlim_cur, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  });
  return ::testing::internal::GetCapturedStderr();
}

TEST(AppendFile, GrowsByWholeRecords) {
  const test::TmpDir dir;
  {
    AppendFile file(dir / "log");
    file.append("one\n");
    EXPECT_EQ(read_file(dir / "log"), "one\n") << "not buffered";
  }
  AppendFile(dir / "log").append("two\n");
  EXPECT_EQ(read_file(dir / "log"), "one\ntwo\n");
  EXPECT_THROW(AppendFile(dir / "missing/log"), ConfigError);
}

TEST(AppendFile, WhatIsNoFileIsRefusedAtOnce) {  // a FIFO hung, a link was written through
  const test::TmpDir dir;
  write_file(dir / "victim", "untouched\n");
  ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink(dir / "victim", dir / "link");
  std::filesystem::create_symlink(dir / "nothing", dir / "dangling");
  std::filesystem::create_symlink("/dev/null", dir / "device");
  for (const char* name : {"fifo", "link", "dangling", "device"}) {
    EXPECT_THROW(AppendFile(dir / name), ConfigError) << name;
    EXPECT_THROW(log::set_file(dir / name), ConfigError) << name;
  }
  EXPECT_EQ(read_file(dir / "victim"), "untouched\n");
  EXPECT_FALSE(std::filesystem::exists(dir / "nothing"));
  const int reader = ::open((dir / "fifo").c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_THROW(AppendFile(dir / "fifo"), ConfigError) << "one that somebody reads";
  ::close(reader);
}

TEST(AppendFile, RewritesAndGoesOn) {
  const test::TmpDir dir;
  write_file(dir / "log", "head\na\nb\nhalf a rec");
  AppendFile file(dir / "log");
  EXPECT_TRUE(file.rewrite("new\n", [](std::string& line) {
    line += "!";
    return line != "head!";
  }));
  file.append("c\n");
  EXPECT_EQ(read_file(dir / "log"), "new\na!\nb!\nc\n");
}

TEST(AppendFile, LeavesOutWholeWhatDoesNotFit) {
  const test::TmpDir dir;
  AppendFile file(dir / "log");
  const std::string small(500, 'a'), large(4000, 'b');  // room for the warning in its own file
  const std::string said = on_a_full_disk(4096, [&](const auto& set_full) {
    file.append(small + "\n");
    set_full(true);
    file.append(large + "\n");
    file.append(large + "\n");
    EXPECT_FALSE(file.rewrite(large, [](std::string&) { return true; }));
    set_full(false);
    file.append("next\n");
  });
  EXPECT_EQ(read_file(dir / "log"), small + "\nnext\n");
  EXPECT_NE(said.find(dir / "log: can't be written"), std::string::npos) << said;
  EXPECT_EQ(said.find("warning"), said.rfind("warning")) << "one warning: " << said;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
}

TEST(AppendFile, WhatCantBeReadIsNotReplaced) {
  const test::TmpDir dir;
  AppendFile file(dir / "log");
  file.append("a\n");
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const int next = ::open("/dev/null", O_RDONLY);
  ::close(next);
  const rlimit one{static_cast<rlim_t>(next) + 1, before.rlim_max};  // the copy takes the last
  ::setrlimit(RLIMIT_NOFILE, &one);
  const bool is_done = file.rewrite("head\n", [](std::string&) { return true; });
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_FALSE(is_done);
  EXPECT_EQ(read_file(dir / "log"), "a\n");
}

}  // namespace
}  // namespace cytra
