#include "base/files.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;

TEST(AtomicFile, AppearsWholeOrNotAtAll) {
  const test::TmpDir dir;
  write_file(dir / "a", "old");
  {
    AtomicFile file(dir / "a");
    file.write("new, but never committed");
  }
  EXPECT_EQ(read_file(dir / "a"), "old");
  write_file(dir / "a", "new");
  EXPECT_EQ(read_file(dir / "a"), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 1)
      << "a temporary is left";
}

TEST(AtomicFile, HonoursTheUmask) {
  const test::TmpDir dir;
  const mode_t old = ::umask(027);
  write_file(dir / "a", "x");
  ::umask(old);
  struct stat status {};
  ASSERT_EQ(::stat((dir / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640U);
}

TEST(AtomicFile, AMissingFolderIsTheUsersMistake) {
  EXPECT_THROW(write_file("/nonexistent/folder/a", "x"), ConfigError);
  EXPECT_THROW(read_file("/nonexistent/a"), ConfigError);
}

TEST(MakeRunFolder, GivesEachCallerItsOwn) {
  const test::TmpDir dir;
  std::vector<std::string> made(20);
  std::vector<std::thread> threads;
  for (auto& folder : made) threads.emplace_back([&] { folder = make_run_folder(dir / "x/run"); });
  for (auto& thread : threads) thread.join();
  std::sort(made.begin(), made.end());
  EXPECT_EQ(std::unique(made.begin(), made.end()), made.end());
}

/// What a process leaves in `folder` that is killed while it writes a file, and a folder.
void write_and_die(const std::string& folder) {
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(folder + "/a.ckpt"), mark(folder + "/b.zarr");
    file.write("half");
    make_folders(mark.temporary_folder() + "/0");
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

std::size_t count_in(const std::string& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(MakeFolders, WhatCannotBeOneIsNamed) {
  const test::TmpDir dir;
  std::filesystem::create_symlink(dir / "loop", dir / "loop");
  for (const std::string& path : {dir / "loop", dir / "loop/x", dir / std::string(300, 'x')})
    EXPECT_THROW(make_folders(path), ConfigError) << path;
}

TEST(RemoveStaleTemporaries, LeavesThoseOfLivingProcesses) {
  const test::TmpDir dir;
  write_file(dir / "a", "x");
  write_and_die(dir.path());
  AtomicFile own(dir / "a"), mark(dir / "c.zarr");
  make_folders(mark.temporary_folder());
  EXPECT_EQ(count_in(dir.path()), 7U);
  remove_stale_temporaries(dir.path());
  EXPECT_EQ(count_in(dir.path()), 4U);
  EXPECT_TRUE(fs::exists(own.temporary()) && fs::exists(mark.temporary()) &&
              fs::exists(mark.temporary_folder()));
  own.write("y");
  own.commit();
  EXPECT_EQ(read_file(dir / "a"), "y");
}

TEST(RemoveStaleTemporaries, LeavesWhatIsNotOurs) {
  const test::TmpDir dir;
  const std::string stamp = boot_id() + "-0123456789abcdef";
  make_folders(dir / ".notes.tmp.2024-10-01");
  make_folders(dir / (".a.tmp." + stamp));
  make_folders(dir / (".b.tmp." + stamp + ".d"));
  for (const std::string& name : {std::string(".notes.tmp.2024-10-01/x"),
                                  std::string(".c.tmp.999999999.0"),
                                  ".c.tmp." + stamp + ".bak",
                                  "c.tmp." + stamp,
                                  ".tmp." + stamp,
                                  ".c.temp." + stamp,
                                  ".c.tmp." + boot_id() + "-0123456789abcdeg",
                                  std::string("target")})
    std::ofstream(dir / name) << "x";
  fs::create_symlink(dir / "target", dir / (".link.tmp." + stamp));
  const std::size_t before = count_in(dir.path());
  remove_stale_temporaries(dir.path());
  EXPECT_EQ(count_in(dir.path()), before);
  EXPECT_TRUE(fs::exists(dir / ".notes.tmp.2024-10-01/x"));
}

TEST(RemoveStaleTemporaries, WaitsWhereAnotherMachineMayWrite) {
  const test::TmpDir dir;
  const std::string path = dir / ".a.tmp.fedcba98-0123456789abcdef";
  ASSERT_NE(boot_id(), "fedcba98");
  std::ofstream(path) << "x";
  remove_stale_temporaries(dir.path());
  EXPECT_TRUE(fs::exists(path));
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(2));
  remove_stale_temporaries(dir.path());
  EXPECT_FALSE(fs::exists(path));
}

TEST(RemoveStaleTemporaries, TakesNoNameThatIsBeingLinked) {
  const test::TmpDir dir;
  write_file(dir / "a", "x");
  std::atomic<bool> is_done{false};
  std::thread sweeper([&] {
    while (!is_done) remove_stale_temporaries(dir.path());
  });
  for (int i = 0; i < 200; ++i) {
    EXPECT_NO_THROW(link_file(dir / "a", dir / "last"));
    EXPECT_NO_THROW(write_file(dir / "a", std::to_string(i)));
  }
  is_done = true;
  sweeper.join();
  EXPECT_EQ(read_file(dir / "a"), "199");
  EXPECT_EQ(count_in(dir.path()), 2U);
}

TEST(AtomicFile, FollowsNoPlantedLink) {
  const test::TmpDir dir;
  write_file(dir / "victim", "untouched");
  const std::string before = dir / (".a.tmp." + std::to_string(::getpid()) + ".");
  for (int i = 0; i < 400; ++i) fs::create_symlink(dir / "victim", before + std::to_string(i));
  write_file(dir / "a", "x");
  EXPECT_EQ(read_file(dir / "a"), "x");
  fs::create_symlink(dir / "victim", dir / "b");
  EXPECT_THROW(write_file(dir / "b", "x"), DataError);
  EXPECT_EQ(read_file(dir / "victim"), "untouched");
  EXPECT_TRUE(fs::is_symlink(dir / "b"));
  const AtomicFile one(dir / "a"), other(dir / "a");
  EXPECT_NE(one.temporary().substr(one.temporary().size() - 16),
            other.temporary().substr(other.temporary().size() - 16));
}

TEST(AtomicFile, TakesTheLongestName) {
  const test::TmpDir dir;
  write_file(dir / std::string(255, 'n'), "x");
  EXPECT_EQ(read_file(dir / std::string(255, 'n')), "x");
  EXPECT_EQ(count_in(dir.path()), 1U);
}

TEST(AtomicFile, WritesIntoDevicesAndFifos) {  // a device was renamed over
  const test::TmpDir dir;
  struct stat status {};
  EXPECT_THROW(write_file("/dev/full", "x"), IoError);
  write_file("/dev/null", "x");
  for (const char* device : {"/dev/full", "/dev/null"}) {
    ASSERT_EQ(::stat(device, &status), 0);
    EXPECT_TRUE(S_ISCHR(status.st_mode)) << device;
  }
  ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
  EXPECT_NE(message_of<ConfigError>([&] { write_file(dir / "fifo", "x"); }).find("nobody reads"),
            std::string::npos);
  std::string read;
  const int open = ::open((dir / "fifo").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(open, 0);
  ::fcntl(open, F_SETFL, 0);                               // waits from here on
  auto file = std::make_unique<AtomicFile>(dir / "fifo");  // before the reader: no writer is an end
  std::thread reader([&, open] {
    char buffer[4096];
    for (ssize_t count; (count = ::read(open, buffer, sizeof buffer)) != 0;)
      if (count > 0) read.append(buffer, static_cast<std::size_t>(count));
    ::close(open);
  });
  file->write(std::string(300000, 'a'));
  file->write_at(0, "b", 1);
  file->commit();
  file.reset();
  reader.join();
  EXPECT_EQ(read, "b" + std::string(299999, 'a'));
  ASSERT_EQ(::lstat((dir / "fifo").c_str(), &status), 0);
  EXPECT_TRUE(S_ISFIFO(status.st_mode));
  EXPECT_EQ(count_in(dir.path()), 1U) << "a temporary is left";
}

TEST(AtomicFile, WritesIntoAnOpenDescriptor) {
  const test::TmpDir dir;
  const int open = ::open((dir / "a").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(open, 0);
  write_file("/dev/fd/" + std::to_string(open), "one ");
  write_file("/proc/self/fd/" + std::to_string(open), "two");
  ::close(open);
  EXPECT_EQ(read_file(dir / "a"), "one two");
}

TEST(AtomicFile, WhatIsNoOutputIsLeftAsItIs) {
  const test::TmpDir dir;
  struct stat status {};
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (dir / "socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(socket);
  EXPECT_THROW(write_file(dir / "socket", "x"), ConfigError);
  ASSERT_EQ(::lstat((dir / "socket").c_str(), &status), 0);
  EXPECT_TRUE(S_ISSOCK(status.st_mode));
  // Elsewhere than in /dev somebody may have planted the link
  for (const char* target : {"/dev/null", "/dev/stdout"}) {
    fs::create_symlink(target, dir / "link");
    EXPECT_THROW(write_file(dir / "link", "x"), DataError) << target;
    EXPECT_TRUE(fs::is_symlink(dir / "link"));
    fs::remove(dir / "link");
  }
  for (const std::string& path : {std::string(), dir / "", std::string("/")})
    EXPECT_THROW(write_file(path, "x"), ConfigError) << path;
}

TEST(ReadFile, WhatIsNoFileIsRefusedAtOnce) {  // a pipe without a writer hung
  const test::TmpDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe.yaml").c_str(), 0666), 0);
  for (const std::string& path : {dir / "pipe.yaml", dir.path(), std::string("/dev/zero")}) {
    const std::string message = message_of<ConfigError>([&] { read_file(path); });
    EXPECT_NE(message.find("expected a regular file"), std::string::npos) << path << message;
  }
}

}  // namespace
}  // namespace cytra
