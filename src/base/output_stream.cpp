#include "base/output_stream.h"

#include <cerrno>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace cytra {
namespace fs = std::filesystem;
namespace {

std::string folder_of(const fs::path& path) {
  std::error_code ignored;
  return fs::canonical(fs::absolute(path, ignored).parent_path(), ignored).string();
}

/// The descriptor of this process that the link `path` stands for: /dev/fd/5 directly, /dev/stdout
/// by its target. -1: none.
int own_descriptor(const fs::path& path) {
  std::error_code ignored;
  const std::string fds = "/proc/" + std::to_string(::getpid()) + "/fd";
  for (const fs::path& link : {path, fs::read_symlink(path, ignored)}) {
    const std::string name = link.filename().string();
    const bool is_number = !name.empty() && name.size() < 7 &&
                           name.find_first_not_of("0123456789") == std::string::npos;
    if (is_number && folder_of(link) == fds) return std::stoi(name);
  }
  return -1;
}

}  // namespace

int open_output_stream(const std::string& path) {
  if (path.empty() || path.back() == '/')
    throw ConfigError("\"" + path + "\": not the name of a file, expected a file to write to");
  struct stat named {
  }, status{};
  if (::lstat(path.c_str(), &named) != 0 || ::stat(path.c_str(), &status) != 0) return -1;
  if (S_ISLNK(named.st_mode)) {
    if (folder_of(path) != "/dev" && !folder_of(path).starts_with("/proc/"))
      return -1;  // put_in_place() refuses the path
    const int number = own_descriptor(path);
    const int copy = number < 0 ? -1 : ::fcntl(number, F_DUPFD_CLOEXEC, 3);
    if (copy >= 0) return copy;
  }
  if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return -1;
  if (S_ISBLK(status.st_mode) || S_ISSOCK(status.st_mode))
    throw ConfigError(path + ": a disk or socket, expected a file, FIFO or character device");
  const bool is_fifo = S_ISFIFO(status.st_mode);
  if (is_fifo && status.st_uid != ::geteuid())
    throw ConfigError(path + ": a FIFO of another user; choose another place for the output");
  const int stream = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (stream < 0 && errno == ENXIO && is_fifo)
    throw ConfigError(path + ": a FIFO that nobody reads; start its reader first");
  if (stream < 0) throw_errno("can't be written", path, errno);
  ::fcntl(stream, F_SETFL, ::fcntl(stream, F_GETFL) & ~O_NONBLOCK);
  return stream;
}

int open_nameless(const std::string& path) {
  std::error_code error;
  const std::string folder = fs::temp_directory_path(error).string();
  int descriptor = error ? -1 : ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor < 0) descriptor = ::memfd_create("output", MFD_CLOEXEC);  // in memory, then
  if (descriptor < 0) throw_errno("can't be written", path, errno);
  return descriptor;
}

void copy_to_stream(int from, int stream, const std::string& path) {
  std::vector<char> buffer(std::size_t{1} << 20);
  for (off_t place = 0;;) {
    const ssize_t count = ::pread(from, buffer.data(), buffer.size(), place);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno("can't be read back", path, errno);
    if (count == 0) return;
    place += count;
    for (ssize_t done = 0; done < count;) {
      const ssize_t put =
          ::write(stream, buffer.data() + done, static_cast<std::size_t>(count - done));
      if (put < 0 && errno != EINTR) throw_errno("can't be written", path, errno);
      if (put > 0) done += put;
    }
  }
}

}  // namespace cytra
