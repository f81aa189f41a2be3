#include "tests/reliability/faults.h"

#include <cerrno>
#include <cstdarg>
#include <map>
#include <mutex>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cytra::test {
namespace {

struct Watch {
  std::mutex mutex;
  std::string folder;  // "": nothing is watched
  Fault fault = Fault::none;
  int at = 0, calls = 0, files = 0;
  struct Open {
    std::string name;
    int number;
  };
  std::map<int, Open> open;  // by descriptor; the folder itself has the name ""
  std::vector<Event> events;
};
Watch& watch() {
  static Watch& all = *new Watch;  // outlives every other static object
  return all;
}

bool is_watched(const std::string& path) {
  const std::string& folder = watch().folder;
  return !folder.empty() && (path == folder || path.starts_with(folder + "/"));
}
std::string name_of(const std::string& path) {
  return path == watch().folder ? "" : path.substr(watch().folder.size() + 1);
}

/// True when the call is to fail, with errno set.
bool fails(bool is_write = false) {
  Watch& w = watch();
  if (++w.calls != w.at) return false;
  switch (w.fault) {
    case Fault::eio:
      errno = EIO;
      return true;
    case Fault::enospc:
      errno = ENOSPC;
      return true;
    case Fault::eintr:
      errno = EINTR;
      return true;
    case Fault::exit_before:
      ::_exit(99);
    case Fault::exit_half:
      if (!is_write) ::_exit(99);
      return false;
    default:
      return false;
  }
}

}  // namespace

void watch_calls(const std::string& folder, Fault fault, int at) {
  Watch& w = watch();
  const std::lock_guard lock(w.mutex);
  w.folder = folder;
  w.fault = fault;
  w.at = at;
  w.calls = w.files = 0;
  w.open.clear();
  w.events.clear();
}

int end_watching() {
  Watch& w = watch();
  const std::lock_guard lock(w.mutex);
  w.folder.clear();
  return w.calls;
}

std::vector<Event>& events() {
  return watch().events;
}

}  // namespace cytra::test

using cytra::test::Event;
using cytra::test::Fault;
using namespace cytra::test;

#pragma GCC visibility push(default)
extern "C" {

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(list, int) : 0;
  va_end(list);
  Watch& w = watch();
  const std::lock_guard lock(w.mutex);
  const bool watched = is_watched(path);
  if (watched && fails()) return -1;
  const auto descriptor = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
  if (!watched || descriptor < 0) return descriptor;
  w.open[descriptor] = {name_of(path), ++w.files};
  if ((flags & O_CREAT) != 0)
    w.events.push_back({Event::Op::create, name_of(path), "", w.files, ""});
  return descriptor;
}
int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(list, int) : 0;
  va_end(list);
  return open(path, flags, mode);
}

ssize_t write(int descriptor, const void* data, size_t bytes) {
  Watch& w = watch();
  const std::lock_guard lock(w.mutex);
  const auto found = w.open.find(descriptor);
  if (w.folder.empty() || found == w.open.end())
    return ::syscall(SYS_write, descriptor, data, bytes);
  if (fails(true)) return -1;
  const bool is_hit = w.calls == w.at;
  if (is_hit && (w.fault == Fault::short_write || w.fault == Fault::exit_half))
    bytes = (bytes + 1) / 2;
  const ssize_t written = ::syscall(SYS_write, descriptor, data, bytes);
  if (is_hit && w.fault == Fault::exit_half) ::_exit(99);
  if (written > 0) {
    w.events.push_back({Event::Op::write,
                        found->second.name,
                        "",
                        found->second.number,
                        std::string(static_cast<const char*>(data), static_cast<size_t>(written))});
  }
  return written;
}

int fsync(int descriptor) {
  Watch& w = watch();
  const std::lock_guard lock(w.mutex);
  const auto found = w.open.find(descriptor);
  const bool watched = !w.folder.empty() && found != w.open.end();
  if (watched && fails()) return -1;
  const auto result = static_cast<int>(::syscall(SYS_fsync, descriptor));
  if (watched) {
    w.events.push_back({found->second.name.empty() ? Event::Op::sync_folder : Event::Op::sync,
                        found->second.name,
                        "",
                        found->second.number,
                        ""});
  }
  return result;
}

int close(int descriptor) {
  Watch& w = watch();
  const std::lock_guard lock(w.mutex);
  bool failed = false;
  if (!w.folder.empty() && w.open.count(descriptor) > 0) {
    w.open.erase(descriptor);
    failed = fails();
  }
  const int error_number = errno;
  const auto result = static_cast<int>(::syscall(SYS_close, descriptor));  // Linux closes anyway
  if (failed) errno = error_number;
  return failed ? -1 : result;
}

int rename(const char* from, const char* to) noexcept {
  Watch& w = watch();
  const std::lock_guard lock(w.mutex);
  const bool watched = is_watched(to);
  if (watched && fails()) return -1;
  const auto result = static_cast<int>(::syscall(SYS_rename, from, to));
  if (watched && result == 0)
    w.events.push_back({Event::Op::rename, name_of(from), name_of(to), 0, ""});
  return result;
}

int renameat2(int, const char* from, int, const char* to, unsigned flags) noexcept {
  Watch& w = watch();
  const std::lock_guard lock(w.mutex);
  const bool watched = is_watched(to);
  if (watched && fails()) return -1;
  const auto result =
      static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags));
  if (watched && result == 0)
    w.events.push_back({Event::Op::rename, name_of(from), name_of(to), 0, ""});
  return result;
}

int link(const char* from, const char* to) noexcept {
  Watch& w = watch();
  const std::lock_guard lock(w.mutex);
  const bool watched = is_watched(to);
  if (watched && fails()) return -1;
  const auto result = static_cast<int>(::syscall(SYS_link, from, to));
  if (watched && result == 0)
    w.events.push_back({Event::Op::link, name_of(from), name_of(to), 0, ""});
  return result;
}

int unlink(const char* path) noexcept {
  Watch& w = watch();
  const std::lock_guard lock(w.mutex);
  const bool watched = is_watched(path);
  if (watched && fails()) return -1;
  const auto result = static_cast<int>(::syscall(SYS_unlink, path));
  if (watched && result == 0) w.events.push_back({Event::Op::unlink, name_of(path), "", 0, ""});
  return result;
}

/// std::filesystem::remove() calls it.
int remove(const char* path) noexcept {
  const int result = unlink(path);
  return result != 0 && errno == EISDIR ? ::rmdir(path) : result;
}

}  // extern "C"
#pragma GCC visibility pop
