#include "base/files.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/open_temporaries.h"
#include "base/output_stream.h"
#include "base/own_files.h"
#include "base/strings.h"

namespace cytra {
namespace fs = std::filesystem;
namespace {

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

/// Repeats a system call as long as a signal interrupts it.
auto retried(auto call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// Makes the names in `folder` durable.
void sync_folder(const std::string& folder) {
  const int descriptor =
      retried([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (descriptor < 0) return;  // the file system has no readable folders: nothing to flush
  const int error_number = retried([&] { return ::fsync(descriptor); }) == 0 ? 0 : errno;
  ::close(descriptor);
  if (error_number == EIO || error_number == ENOSPC || error_number == EDQUOT)
    throw_errno("can't be flushed to the disk", folder, error_number);
}

constexpr std::size_t kStamp = 8 + 1 + 16;      // BOOT-RANDOM
constexpr std::size_t kLongestName = 255 - 40;  // what a file system takes, less the rest
constexpr const char* kMark = ".tmp.";

/// The temporary's name. It is random, so that nobody can put a link there beforehand.
std::string temporary_of(const std::string& path) {
  uint64_t random = 0;
  while (::getrandom(&random, sizeof random, 0) != sizeof random) {
  }
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(random));
  return parent_of(path) + "/." + fs::path(path).filename().string().substr(0, kLongestName) +
         kMark + boot_id() + "-" + digits;
}

/// The boot in a name made by temporary_of(); "" for other names.
std::string boot_of(const std::string& name) {
  const std::size_t before = kStamp + std::string_view(kMark).size();
  if (name.size() <= before + 1 || name[0] != '.') return "";
  const std::string stamp = name.substr(name.size() - kStamp);
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  const bool is_stamp = stamp[8] == '-' && std::all_of(stamp.begin(), stamp.begin() + 8, is_hex) &&
                        std::all_of(stamp.begin() + 9, stamp.end(), is_hex);
  const bool is_marked = name.compare(name.size() - before, before - kStamp, kMark) == 0;
  return is_stamp && is_marked ? stamp.substr(0, 8) : "";
}

bool lock(int descriptor) {
  return retried([&] { return ::flock(descriptor, LOCK_EX | LOCK_NB); }) == 0;
}

/// Locks a new temporary. Returns false where a process that looks for stale ones was faster, and
/// removes it. (A file system without locks is no problem: no file is found to be stale there.)
bool keep(int descriptor, const std::string& temporary) {
  if (!lock(descriptor) && errno == EWOULDBLOCK) return false;
  return ::access(temporary.c_str(), F_OK) == 0 || errno != ENOENT;
}

/// Removes the temporary `path`, and its folder, where its process has ended.
void remove_if_stale(const std::string& path, const std::string& boot) {
  constexpr std::time_t kUntouchedS = 3600;
  const int descriptor =
      retried([&] { return ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC); });
  if (descriptor < 0) return;
  struct stat status {};
  const bool is_ours =
      ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid();
  const bool is_seen = boot == boot_id() || std::time(nullptr) - status.st_mtime > kUntouchedS;
  if (is_ours && is_seen && lock(descriptor)) {
    struct stat inside {};
    const std::string folder = path + ".d";
    if (::lstat(folder.c_str(), &inside) == 0 && S_ISDIR(inside.st_mode) &&
        inside.st_uid == ::geteuid())
      remove_all_quietly(folder);
    ::unlink(path.c_str());
  }
  ::close(descriptor);
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  stream_ = open_output_stream(path_);
  if (stream_ >= 0) {
    descriptor_ = open_nameless(path_);
    temporary_ = "/proc/self/fd/" + std::to_string(descriptor_);
    return;
  }
  do {
    if (descriptor_ >= 0) ::close(descriptor_);
    temporary_ = temporary_of(path_);
    descriptor_ = retried([&] {
      return ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    });
    if (descriptor_ < 0) throw_errno("can't be written", path_, errno);
  } while (!keep(descriptor_, temporary_));
  add_open_temporary(temporary_);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (stream_ >= 0) {
    ::close(stream_);
    return;
  }
  ::unlink(temporary_.c_str());
  drop_open_temporary(temporary_);
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = retried([&] { return ::write(descriptor_, next, bytes); });
    if (written < 0) throw_errno("can't be written", path_, errno);
    next += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::write_at(uint64_t offset, const void* data, std::size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written =
        retried([&] { return ::pwrite(descriptor_, next, bytes, static_cast<off_t>(offset)); });
    if (written < 0) throw_errno("can't be written", path_, errno);
    next += written;
    offset += static_cast<uint64_t>(written);
    bytes -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::commit(bool durable) {
  if (stream_ >= 0) return copy_to_stream(descriptor_, stream_, path_);
  if (durable && retried([&] { return ::fsync(descriptor_); }) != 0)
    throw_errno("can't be flushed to the disk", path_, errno);
  put_in_place(temporary_, path_);
  drop_open_temporary(temporary_);
  ::close(descriptor_);
  descriptor_ = -1;
  if (durable) sync_folder(parent_of(path_));
}

std::string read_file(const std::string& path, std::size_t max_bytes) {
  // A pipe must not block.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0 && errno != ENXIO) throw_errno("can't be read", path, errno);  // a socket
  struct stat status {};
  if (descriptor < 0 || (::fstat(descriptor, &status) == 0 && !S_ISREG(status.st_mode))) {
    if (descriptor >= 0) ::close(descriptor);
    throw ConfigError(path + ": a folder, pipe, socket or device, expected a regular file");
  }
  std::string text;
  char buffer[1 << 16];
  ssize_t count;
  while ((count = ::read(descriptor, buffer, sizeof buffer)) > 0 && text.size() <= max_bytes)
    text.append(buffer, static_cast<std::size_t>(count));
  const int error_number = errno;
  ::close(descriptor);
  if (count < 0) throw_errno("can't be read", path, error_number);
  if (text.size() > max_bytes) {
    throw ConfigError(path + ": larger than the limit of " +
                      format_bytes(static_cast<double>(max_bytes)));
  }
  return text;
}

void write_file(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void link_file(const std::string& from, const std::string& to) {
  const std::string temporary = temporary_of(to);
  // The temporary name belongs to a file that nobody writes any more; the lock protects it. A
  // process that looks for stale ones may hold the lock for a moment.
  const int descriptor = retried([&] { return ::open(from.c_str(), O_RDONLY | O_CLOEXEC); });
  if (descriptor < 0) throw_errno("can't be read", from, errno);
  retried([&] { return ::flock(descriptor, LOCK_EX); });
  const auto end = [&] {
    ::close(descriptor);
    ::unlink(temporary.c_str());  // rename() leaves it when both were the same file already
  };
  if (retried([&] { return ::link(from.c_str(), temporary.c_str()); }) != 0) {
    end();
    write_file(to, read_file(from, std::size_t{1} << 62));
    return;
  }
  try {
    put_in_place(temporary, to);
  } catch (...) {
    end();
    throw;
  }
  end();
  sync_folder(parent_of(to));
}

void make_folders(const std::string& path) {
  std::string made;
  for (const fs::path& part : fs::path(path)) {
    made = made.empty() ? part.string() : (fs::path(made) / part).string();
    if (::mkdir(made.c_str(), 0777) != 0 && errno != EEXIST && errno != EISDIR) {
      const int error_number = errno;
      if (folder_exists(made)) continue;  // a read-only parent that is there already
      throw_errno("can't be made a folder", path, error_number);
    }
  }
  if (!folder_exists(path)) throw_errno("can't be made a folder", path, ENOTDIR);
}

std::string make_run_folder(const std::string& path) {
  make_folders(parent_of(path));
  for (int number = 0;; ++number) {
    std::string candidate = number == 0 ? path : path + "-" + std::to_string(number);
    if (::mkdir(candidate.c_str(), 0777) == 0) return candidate;
    if (errno != EEXIST) throw_errno("can't be made a folder", candidate, errno);
  }
}

void remove_stale_temporaries(const std::string& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string boot = boot_of(entry.path().filename().string());
    if (!boot.empty()) remove_if_stale(entry.path().string(), boot);
  }
}

bool path_exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool folder_exists(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool are_same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
}

void remove_quietly(const std::string& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
}

void remove_all_quietly(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

std::string boot_id() {
  static const std::string id = [] {
    try {
      return read_file("/proc/sys/kernel/random/boot_id", 100).substr(0, 8);
    } catch (const Error&) {  // a sandbox without it: made from the machine's name
    }
    char name[256] = "", digits[9];
    ::gethostname(name, sizeof name - 1);
    std::snprintf(digits, sizeof digits, "%08zx", std::hash<std::string>()(name) & 0xffffffff);
    return std::string(digits);
  }();
  return id;
}

std::string program_folder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? "." : program.parent_path().string();
}

std::string typed_program(const std::string& program) {
  const char* const launcher = std::getenv(kLauncherVariable);
  fs::path path = launcher != nullptr ? fs::path(launcher) : fs::path(program_folder()) / program;
  const char* const found = std::getenv("PATH");
  for (const std::string& folder : split(found == nullptr ? "" : found, ':')) {
    const fs::path candidate = fs::path(folder) / path.filename();
    if (!path_exists(candidate)) continue;
    if (are_same_file(candidate, path)) path = path.filename();
    break;
  }
  std::string text = path.string();
  if (text.find('/') != std::string::npos) {
    std::error_code error;
    const std::string relative = fs::relative(path, error).string();
    if (!error && !relative.starts_with("../..")) text = relative;
    if (text.find('/') == std::string::npos) text = "./" + text;
  }
  return shell_quote(text) + (launcher != nullptr ? " " + program : "");
}

std::string config_folder() {
  const fs::path program = program_folder();
  for (const char* relative :
       {"../share/cytra/configs", "../../../configs"}) {  // installed, build/PRESET/bin
    const fs::path folder = (program / relative).lexically_normal();
    if (folder_exists(folder)) return folder.string();
  }
  throw ConfigError("no configs/ beside the program " + program.string() +
                    "; name one with --config-path");
}

}  // namespace cytra
