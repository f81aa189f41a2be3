#include "base/append_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/own_files.h"

namespace cytra {

int open_to_append(const std::string& path) {
  // A FIFO would wait for a reader forever
  const int opened =
      ::open(path.c_str(),
             O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
             0666);
  struct stat status {};
  const bool is_other = opened < 0 ? errno == ELOOP || errno == ENXIO
                                   : ::fstat(opened, &status) == 0 && !S_ISREG(status.st_mode);
  if (!is_other) return opened;
  if (opened >= 0) ::close(opened);
  throw ConfigError(path +
                    ": a link, FIFO or device, expected a regular file of an earlier run or no "
                    "file; move it away, or choose another folder (paths.output_dir=...)");
}

AppendFile::AppendFile(std::string path) : path_(std::move(path)) {
  open();
  remove_stale_temporaries(std::filesystem::path(path_).parent_path().string());
}

AppendFile::~AppendFile() {
  ::close(descriptor_);
}

void AppendFile::open() {
  const int opened = open_to_append(path_);
  if (opened < 0) throw_errno("can't be written", path_, errno);
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = opened;
  own_file(path_);
}

void AppendFile::warn(const std::string& why) {
  if (!warned_) log::warn("{}; the run goes on, this log has gaps", why);
  warned_ = true;
}

void AppendFile::append(std::string_view record) {
  struct stat before {};
  const bool has_size = ::fstat(descriptor_, &before) == 0;
  ssize_t written;
  do {
    written = ::write(descriptor_, record.data(), record.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(record.size())) return;
  const int error_number = written < 0 ? errno : ENOSPC;
  // Half a record would make the records after it unreadable.
  if (written > 0 && has_size && ::ftruncate(descriptor_, before.st_size) != 0)
    return warn(path_ + ": can't be cut to whole records");
  warn(path_ + ": can't be written: " + std::strerror(error_number));
}

bool AppendFile::rewrite(std::string_view head, const std::function<bool(std::string&)>& change) {
  try {
    AtomicFile copy(path_);
    copy.write(head);
    std::ifstream lines(path_);
    if (!lines) throw_errno("can't be read", path_, errno);
    for (std::string line; std::getline(lines, line) && !lines.eof();) {
      if (change(line)) copy.write(line + "\n");
    }
    if (lines.bad()) throw_errno("can't be read", path_, EIO);
    copy.commit(/*durable=*/false);
    open();
    return true;
  } catch (const Error& error) {
    warn(error.what());
    return false;
  }
}

}  // namespace cytra
