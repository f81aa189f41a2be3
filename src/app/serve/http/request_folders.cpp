#include "app/serve/http/request_folders.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"

namespace cytra::app {
namespace fs = std::filesystem;
namespace {

constexpr const char* kMemory = "/dev/shm";
constexpr const char* kFolderName = "/cytra-serve-";

/// An error of the machine, whatever its number: no request can help it.
[[noreturn]] void fail_folder(const std::string& folder, int error_number) {
  throw IoError("{}: can't make a folder: {}", folder, std::strerror(error_number));
}

std::string disk_folder() {
  std::error_code error;
  const std::string folder = fs::temp_directory_path(error).string();
  return folder.empty() ? "/tmp" : folder;
}

/// Removes what servers of this user that were killed have left: nobody holds its lock.
void remove_left(const std::string& parent) {
  std::error_code ignored;
  for (fs::directory_iterator entry(parent, ignored), last; entry != last;
       entry.increment(ignored)) {
    const std::string path = entry->path().string();
    struct stat status {};
    if (!path.starts_with(parent + kFolderName) || ::lstat(path.c_str(), &status) != 0 ||
        !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid())
      continue;
    const Descriptor lock(::open((path + "/.lock").c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) fs::remove_all(path, ignored);
  }
}

bool is_there(const Descriptor& file) {
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 && status.st_nlink > 0;
}

}  // namespace

RequestFolders::RequestFolders(int64_t bytes) : bytes_(bytes) {
  remove_left(kMemory);
  remove_left(disk_folder());
  open();
}

RequestFolders::~RequestFolders() {
  remove_all_quietly(folder_);
}

void RequestFolders::open() {
  struct statvfs room {};
  const bool fits = ::statvfs(kMemory, &room) == 0 &&
                    static_cast<double>(room.f_bavail) * static_cast<double>(room.f_frsize) >
                        static_cast<double>(bytes_);
  // A server that starts just now may take the folder, without its lock, for one that was left.
  do {
    folder_ = fmt::format("{}{}XXXXXX", fits ? kMemory : disk_folder(), kFolderName);
    if (::mkdtemp(folder_.data()) == nullptr) {
      folder_ = fmt::format("{}{}XXXXXX", disk_folder(), kFolderName);
      if (::mkdtemp(folder_.data()) == nullptr) fail_folder(folder_, errno);
    }
    lock_ = Descriptor(
        ::open((folder_ + "/.lock").c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (lock_.get() < 0) fail_folder(folder_, errno);
  } while ((::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) ||
           !is_there(lock_));
}

std::string RequestFolders::folder() const {
  const std::lock_guard lock(mutex_);
  return folder_;
}

std::unique_ptr<RequestFolders::Folder> RequestFolders::take() {
  const std::lock_guard lock(mutex_);
  if (!is_there(lock_)) open();
  if (free_.empty()) free_.push_back(made_++);
  const std::string folder = fmt::format("{}/{}", folder_, free_.back());
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) fail_folder(folder, errno);
  auto made = std::make_unique<Folder>(*this, free_.back(), folder);
  free_.pop_back();
  return made;
}

RequestFolders::Folder::Folder(RequestFolders& folders, int64_t number, std::string path)
    : folders_(folders), number_(number), path_(std::move(path)) {}

RequestFolders::Folder::~Folder() {
  remove_all_quietly(path_);
  const std::lock_guard lock(folders_.mutex_);
  if (!path_.starts_with(folders_.folder_ + "/"))  // a folder without a lock: the last one ends it
    remove_quietly(fs::path(path_).parent_path());
  folders_.free_.push_back(number_);
}

}  // namespace cytra::app
