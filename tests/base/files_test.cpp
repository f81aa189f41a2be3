#include "base/files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
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

TEST(RemoveStaleTemporaries, LeavesThoseOfLivingProcesses) {
  const test::TmpDir dir;
  const std::string own = dir / (".a.tmp." + std::to_string(::getpid()) + ".0"),
                    dead = dir / ".a.tmp.999999999.0";
  for (const std::string& name : {own, dead, dir / "a"}) std::ofstream(name) << "x";
  const std::string folder = dir / ".b.zarr.tmp.999999999.1";
  fs::create_directories(folder + "/0");
  remove_stale_temporaries(dir.path());
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_TRUE(fs::exists(own));
  EXPECT_TRUE(fs::exists(dir / "a"));
  EXPECT_FALSE(fs::exists(dead));
}

}  // namespace
}  // namespace cytra
