#include "base/run_lock.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/own_files.h"
#include "base/strings.h"

namespace cytra {
namespace {

using namespace std::chrono_literals;
constexpr const char* kName = "/.lock";
constexpr std::size_t kMostBytes = 1000;
constexpr double kSurelyDeadS = 600;  // clocks of machines may differ by less

std::string own_line() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return boot_id() + " process " + std::to_string(::getpid()) + " on " + host + ", since " +
         format_time("%Y-%m-%d %H:%M:%S") + "\n";
}

struct LockState {
  bool is_there = false, is_locked = false, is_free = false;
  std::string boot, holder;
  timespec changed{};
};

/// Reads the lock's state. The file is opened anew each time, as only then NFS asks for the
/// present state.
LockState look(const std::string& path) {
  LockState seen;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return seen;
  struct stat status {};
  char text[kMostBytes];
  const ssize_t count = ::read(descriptor, text, sizeof text);
  seen.is_there = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  seen.is_free = ::flock(descriptor, LOCK_SH | LOCK_NB) == 0;
  seen.is_locked = !seen.is_free && errno == EWOULDBLOCK;
  ::close(descriptor);
  seen.changed = status.st_mtim;
  const std::string line = trim(std::string(text, count > 0 ? static_cast<std::size_t>(count) : 0));
  const std::size_t space = line.find(' ');
  seen.boot = line.substr(0, space);
  seen.holder = space == std::string::npos ? "another process" : printable(line.substr(space + 1));
  return seen;
}

}  // namespace

RunLock::RunLock(const std::string& folder) : path_(folder + kName) {
  keep_own_files(folder);
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw_errno("can't be written", path_, errno);
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor_);
    throw ConfigError(folder + ": " + look(path_).holder +
                      " is at work there; choose another folder (paths.output_dir=...)");
  }
  const std::string line = own_line();
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::write(descriptor_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    const int error_number = errno;
    ::close(descriptor_);
    throw_errno("can't be written", path_, error_number);
  }
  thread_ = std::thread([this] { beat(); });
}

RunLock::~RunLock() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  ending_.notify_all();
  thread_.join();
  ::unlink(path_.c_str());
  ::close(descriptor_);
}

void RunLock::beat() {
  std::unique_lock lock(mutex_);
  while (!ending_.wait_for(lock, 10s, [this] { return is_ending_; }))
    ::futimens(descriptor_, nullptr);
}

std::string holder_of(const std::string& folder, double patience_s) {
  const std::string path = folder + kName;
  const LockState first = look(path);
  if (!first.is_there) return "";
  const bool is_here = first.boot == boot_id(),
             is_old = std::difftime(std::time(nullptr), first.changed.tv_sec) > kSurelyDeadS;
  // A server may still hold the lock of a machine that has gone.
  if (first.is_locked && (is_here || !is_old)) return first.holder;
  if (is_old || (is_here && first.is_free)) return "";
  log::info("{}: {}: waiting {:.0f} s for a sign of life", folder, first.holder, patience_s);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience_s);
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::min<std::chrono::duration<double>>(
        1s, std::chrono::duration<double>(patience_s / 10)));
    const LockState now = look(path);
    if (!now.is_there) return "";
    if (now.is_locked || now.changed.tv_sec != first.changed.tv_sec ||
        now.changed.tv_nsec != first.changed.tv_nsec)
      return now.holder;
  }
  return "";
}

}  // namespace cytra
