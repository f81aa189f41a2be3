#include "io/input_file.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace cytra::io {

InputFile::InputFile(const std::string& path) : path_(path) {
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not block
  if (descriptor_ < 0) throw_errno("can't be read", path, errno);
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0) bytes_ = static_cast<uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
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

void InputFile::map() {
  if (data_ != nullptr || bytes_ == 0) return;
  void* data = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, descriptor_, 0);
  if (data == MAP_FAILED) throw_errno("can't be mapped into memory", path_, errno);
  data_ = data;
}

const unsigned char* InputFile::mapped() const {
  struct stat status {};  // beyond the end of a mapped file lies SIGBUS
  if (::fstat(descriptor_, &status) != 0 || static_cast<uint64_t>(status.st_size) < bytes_)
    throw DataError(path_ + ": became shorter while it was open, expected a file at rest");
  return static_cast<const unsigned char*>(data_);
}

}  // namespace cytra::io
