#include "app/serve/http/request_folders.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"

namespace cytra::app {
namespace {

namespace fs = std::filesystem;

TEST(RequestFolders, IsMadeAnewWhereSomebodyRemovesIt) {
  RequestFolders folders(0);
  for (int turn = 0; turn < 3; ++turn) {
    const std::string before = folders.folder();
    const auto lost = folders.take();
    fs::remove_all(before);
    const auto place = folders.take();
    write_file(place->path() + "/a", "image");
    EXPECT_NE(folders.folder(), before);
    EXPECT_NE(place->path(), lost->path());
  }
  fs::remove(folders.folder() + "/.lock");  // as cleaners of /tmp do
  const std::string before = folders.folder();
  auto place = folders.take();
  EXPECT_NE(folders.folder(), before);
  place = nullptr;
  fs::remove_all(before);
}

TEST(RequestFolders, OfAKilledServerIsRemovedByTheNextOne) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    RequestFolders folders(0);
    const auto place = folders.take();
    write_file(place->path() + "/patient.npy", "image");
    const std::string folder = folders.folder();
    if (::write(ends[1], folder.data(), folder.size()) < 0) ::_exit(1);
    ::_exit(0);
  }
  std::string left(4096, '\0');
  const ssize_t size = ::read(ends[0], left.data(), left.size());
  ASSERT_GT(size, 0);
  left.resize(static_cast<std::size_t>(size));
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_TRUE(fs::exists(left));
  const RequestFolders other(0), next(0);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(other.folder()));  // of a server that runs
}

}  // namespace
}  // namespace cytra::app
