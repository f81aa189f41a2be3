// Part of io/zarr/array_write.h: a Zarr folder that appears whole or not at all.
#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/own_files.h"
#include "io/zarr/array_write.h"

namespace cytra::io {
namespace fs = std::filesystem;

namespace {

std::string replaceable(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  expect_replaceable(path);
  return path;
}

}  // namespace

ZarrFolder::ZarrFolder(std::string path)
    : path_(replaceable(std::move(path))), mark_(path_), temporary_(mark_.temporary_folder()) {
  if (::mkdir(temporary_.c_str(), 0777) != 0) throw_errno("can't be written", path_, errno);
}

ZarrFolder::~ZarrFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void ZarrFolder::write(const std::string& key, const void* data, std::size_t bytes) const {
  const std::string file = temporary_ + "/" + key;
  const auto open_new = [&] {
    return ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  };
  int descriptor = open_new();
  if (descriptor < 0 && errno == ENOENT) {
    make_folders(fs::path(file).parent_path().string());
    descriptor = open_new();
  }
  if (descriptor < 0) throw_errno("can't be written", path_, errno);
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor, next, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error_number = errno;
      ::close(descriptor);
      throw_errno("can't be written", path_, error_number);
    }
    next += written;
    bytes -= static_cast<std::size_t>(written);
  }
  if (::close(descriptor) != 0) throw_errno("can't be written", path_, errno);
}

void ZarrFolder::commit() {
  const int descriptor = ::open(temporary_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {  // thousands of files: one flush for all
    const int failed = ::syncfs(descriptor);
    const int error_number = errno;
    ::close(descriptor);
    if (failed != 0) throw_errno("can't be flushed to the disk", path_, error_number);
  }
  put_in_place(temporary_, path_);  // the destructor removes what it replaces
}

}  // namespace cytra::io
