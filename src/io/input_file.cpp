#include "io/input_file.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strings.h"

namespace cytra::io {

InputFile::InputFile(const std::string& path) : path_(path) {
  if (path.find('\0') != std::string::npos)  // the system would end the name there
    throw DataError(printable(path) + ": a name with a NUL character, expected that of a file");
  // A pipe must not block, and a terminal must not become ours.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor_ < 0 && errno != ENXIO) throw_errno("can't be read", path, errno);  // a socket
  struct stat status {};
  const bool is_file =
      descriptor_ >= 0 && ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  struct statfs system {};
  const bool is_of_kernel = is_file && ::fstatfs(descriptor_, &system) == 0 &&
                            (system.f_type == PROC_SUPER_MAGIC || system.f_type == SYSFS_MAGIC);
  if (!is_file || is_of_kernel) {
    if (descriptor_ >= 0) ::close(descriptor_);
    throw DataError(path +
                    (is_of_kernel ? ": a file of the system (/proc, /sys)"
                                  : ": a folder, pipe, socket or device") +
                    ", expected a regular file");
  }
  bytes_ = static_cast<uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int64_t InputFile::read_at(uint64_t offset, void* into, std::size_t count) const {
  std::size_t done = 0;
  if (offset > INT64_MAX) return 0;
  while (done < count) {
    const ssize_t got = ::pread(descriptor_,
                                static_cast<char*>(into) + done,
                                std::min<std::size_t>(count - done, std::size_t{1} << 30),
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<int64_t>(done);
}

std::string InputFile::begin(std::size_t most) const {
  std::string bytes(most, '\0');
  const int64_t got = read_at(0, bytes.data(), most);
  bytes.resize(static_cast<std::size_t>(std::max<int64_t>(got, 0)));
  return bytes;
}

void InputFile::map() {
  if (bytes_ == 0) throw DataError(path_ + ": an empty file, expected a complete one");
  if (map_ == nullptr) map_ = std::make_unique<MappedFile>(path_, descriptor_, bytes_);
}

void InputFile::check_size() const {
  struct stat status {};  // within its last page there is no fault
  if (::fstat(descriptor_, &status) != 0 || static_cast<uint64_t>(status.st_size) < bytes_)
    throw DataError(path_ + ": became shorter while it was open, expected a file at rest");
}

std::string read_input(const std::string& path, uint64_t most) {
  const InputFile file(path);
  if (file.bytes() > most) {
    throw DataError(path + ": " + format_bytes(static_cast<double>(file.bytes())) +
                    ", expected at most " + format_bytes(static_cast<double>(most)));
  }
  std::string bytes(file.bytes(), '\0');
  const int64_t got = file.read_at(0, bytes.data(), bytes.size());
  if (got < 0) throw_errno("can't be read", path, errno);
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

std::string read_text_input(const std::string& path, uint64_t most) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  std::string text = read_input(path, most);
  if (text.starts_with(kMark)) text.erase(0, kMark.size());
  return text;
}

}  // namespace cytra::io
