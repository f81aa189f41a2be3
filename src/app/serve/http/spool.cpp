#include "app/serve/http/spool.h"

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
#include "base/strings.h"

namespace cytra::app {
namespace fs = std::filesystem;
namespace {

constexpr const char* kMemory = "/dev/shm";
constexpr const char* kSpoolName = "/cytra-serve-";

/// An error of the machine, whatever its number: no request can help it.
[[noreturn]] void fail_spool(const std::string& folder, int error_number) {
  throw IoError(fmt::format("{}: can't make a folder: {}", folder, std::strerror(error_number)));
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
    if (!starts_with(path, parent + kSpoolName) || ::lstat(path.c_str(), &status) != 0 ||
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

Spool::Spool(int64_t bytes) : bytes_(bytes) {
  remove_left(kMemory);
  remove_left(disk_folder());
  open();
}

Spool::~Spool() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void Spool::open() {
  struct statvfs room {};
  const bool fits = ::statvfs(kMemory, &room) == 0 &&
                    static_cast<double>(room.f_bavail) * static_cast<double>(room.f_frsize) >
                        static_cast<double>(bytes_);
  // A server that starts just now may take the folder, without its lock, for one that was left.
  do {
    folder_ = fmt::format("{}{}XXXXXX", fits ? kMemory : disk_folder(), kSpoolName);
    if (::mkdtemp(folder_.data()) == nullptr) {
      folder_ = fmt::format("{}{}XXXXXX", disk_folder(), kSpoolName);
      if (::mkdtemp(folder_.data()) == nullptr) fail_spool(folder_, errno);
    }
    lock_ = Descriptor(
        ::open((folder_ + "/.lock").c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (lock_.get() < 0) fail_spool(folder_, errno);
  } while ((::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) ||
           !is_there(lock_));
}

std::string Spool::folder() const {
  const std::lock_guard lock(mutex_);
  return folder_;
}

std::unique_ptr<Spool::Place> Spool::take() {
  const std::lock_guard lock(mutex_);
  if (!is_there(lock_)) open();
  if (free_.empty()) free_.push_back(made_++);
  const std::string folder = fmt::format("{}/{}", folder_, free_.back());
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) fail_spool(folder, errno);
  auto place = std::make_unique<Place>(*this, free_.back(), folder);
  free_.pop_back();
  return place;
}

Spool::Place::Place(Spool& spool, int64_t number, std::string folder)
    : spool_(spool), number_(number), folder_(std::move(folder)) {}

Spool::Place::~Place() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  const std::lock_guard lock(spool_.mutex_);
  if (!starts_with(folder_,
                   spool_.folder_ + "/"))  // of a folder without a lock: the last one ends it
    fs::remove(fs::path(folder_).parent_path(), ignored);
  spool_.free_.push_back(number_);
}

}  // namespace cytra::app
