#include "base/files.h"

#include <atomic>
#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strings.h"

namespace cytra {
namespace fs = std::filesystem;
namespace {

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

/// A system call again as long as a signal interrupts it.
template <class Call>
auto retried(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// Makes the names in `folder` durable.
void sync_folder(const std::string& folder) {
  const int descriptor =
      retried([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (descriptor < 0) return;  // a file system without readable folders: nothing to flush
  const int error_number = retried([&] { return ::fsync(descriptor); }) == 0 ? 0 : errno;
  ::close(descriptor);
  if (error_number == EIO || error_number == ENOSPC || error_number == EDQUOT)
    throw_errno("can't be flushed to the disk", folder, error_number);
}

std::string temporary_of(const std::string& path) {
  static std::atomic<unsigned> serial{0};
  return parent_of(path) + "/." + fs::path(path).filename().string() + ".tmp." +
         std::to_string(::getpid()) + "." + std::to_string(serial++);
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), temporary_(temporary_of(path_)) {
  descriptor_ = retried(
      [&] { return ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666); });
  if (descriptor_ < 0) throw_errno("can't be written", path_, errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
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

void AtomicFile::commit(bool durable) {
  if (durable && retried([&] { return ::fsync(descriptor_); }) != 0)
    throw_errno("can't be flushed to the disk", path_, errno);
  if (retried([&] { return ::rename(temporary_.c_str(), path_.c_str()); }) != 0)
    throw_errno("can't be put in place", path_, errno);
  ::close(descriptor_);
  descriptor_ = -1;
  if (durable) sync_folder(parent_of(path_));
}

std::string read_file(const std::string& path, std::size_t max_bytes) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw_errno("can't be read", path, errno);
  std::string text;
  char buffer[1 << 16];
  ssize_t count;
  while ((count = ::read(descriptor, buffer, sizeof buffer)) > 0 && text.size() <= max_bytes) {
    text.append(buffer, static_cast<std::size_t>(count));
  }
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
  if (retried([&] { return ::link(from.c_str(), temporary.c_str()); }) != 0) {
    write_file(to, read_file(from, std::size_t{1} << 62));
    return;
  }
  if (retried([&] { return ::rename(temporary.c_str(), to.c_str()); }) != 0) {
    const int error_number = errno;
    ::unlink(temporary.c_str());
    throw_errno("can't be put in place", to, error_number);
  }
  ::unlink(temporary.c_str());  // rename() leaves it when both were the same file already
  sync_folder(parent_of(to));
}

void make_folders(const std::string& path) {
  std::string made;
  for (const fs::path& part : fs::path(path)) {
    made = made.empty() ? part.string() : (fs::path(made) / part).string();
    if (::mkdir(made.c_str(), 0777) != 0 && errno != EEXIST && errno != EISDIR) {
      const int error_number = errno;
      if (fs::is_directory(made)) continue;  // a read-only parent that is there already
      throw_errno("can't be made a folder", path, error_number);
    }
  }
  if (!fs::is_directory(path)) throw_errno("can't be made a folder", path, ENOTDIR);
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
    const std::string name = entry.path().filename().string();
    const std::size_t mark = name.rfind(".tmp.");
    if (name.empty() || name[0] != '.' || mark == std::string::npos) continue;
    const int process = std::atoi(name.c_str() + mark + 5);
    if (process > 0 && ::kill(process, 0) != 0 && errno == ESRCH)
      fs::remove_all(entry.path(), ignored);
  }
}

std::string program_folder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? "." : program.parent_path().string();
}

std::string config_folder() {
  const fs::path program = program_folder();
  for (const char* relative :
       {"../share/cytra/configs", "../../../configs"}) {  // installed, build/PRESET/bin
    const fs::path folder = (program / relative).lexically_normal();
    if (fs::is_directory(folder)) return folder.string();
  }
  throw ConfigError("no configs/ beside the program " + program.string() +
                    "; name one with --config-path");
}

}  // namespace cytra
