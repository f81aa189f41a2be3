#include "base/run_lock.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using namespace std::chrono_literals;

TEST(RunLock, NamesItsHolder) {
  const test::TmpDir dir;
  EXPECT_EQ(holder_of(dir.path()), "");
  {
    const RunLock lock(dir.path());
    const std::string me = "process " + std::to_string(::getpid()) + " on ";
    EXPECT_EQ(holder_of(dir.path()).substr(0, me.size()), me);
    EXPECT_NE(holder_of(dir.path()).find(", since 20"), std::string::npos);
    const std::string message = message_of<ConfigError>([&] { const RunLock second(dir.path()); });
    EXPECT_NE(message.find(me), std::string::npos) << message;
    EXPECT_NE(holder_of(dir.path()), "") << "the second took it away";
  }
  EXPECT_EQ(holder_of(dir.path()), "");
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(RunLock, OfAKilledProcessIsFree) {
  const test::TmpDir dir;
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(dir.path());
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(fs::exists(dir / ".lock"));
  EXPECT_EQ(holder_of(dir.path()), "");
  const RunLock lock(dir.path());
  EXPECT_NE(holder_of(dir.path()), "");
}

TEST(RunLock, OfAnotherMachineIsHeldAsLongAsItChanges) {
  const test::TmpDir dir;
  const std::string path = dir / ".lock";
  std::ofstream(path) << "fedcba98 process 12 on node3, since 2026-01-31 12:00:00\n";
  EXPECT_EQ(holder_of(dir.path(), 0.2), "");
  std::atomic<bool> is_done{false};
  std::thread beat([&] {
    for (; !is_done; std::this_thread::sleep_for(5ms))
      fs::last_write_time(path, fs::file_time_type::clock::now());
  });
  EXPECT_EQ(holder_of(dir.path(), 5), "process 12 on node3, since 2026-01-31 12:00:00");
  is_done = true;
  beat.join();
  fs::last_write_time(path, fs::file_time_type::clock::now() - 20min);
  EXPECT_EQ(holder_of(dir.path(), 1e6), "") << "for so long, nobody waits";
}

TEST(RunLock, FollowsNoPlantedLink) {
  const test::TmpDir dir;
  write_file(dir / "victim", "untouched");
  fs::create_symlink(dir / "victim", dir / ".lock");
  EXPECT_THROW(const RunLock second(dir.path()), ConfigError);
  EXPECT_EQ(holder_of(dir.path()), "");
  EXPECT_EQ(read_file(dir / "victim"), "untouched");
}

}  // namespace
}  // namespace cytra
