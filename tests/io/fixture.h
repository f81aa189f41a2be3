#pragma once
// What the tests of io share: files in a folder of their own, images by formula, a full disk.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "io/reader.h"
#include "io/tiff/ome_tiff.h"
#include "tests/support/message_of.h"

namespace cytra::io {

class Folder {
 public:
  Folder() {
    static int serial = 0;
    path_ = ::testing::TempDir() + "/cytra_io_" + std::to_string(::getpid()) + "_" +
            std::to_string(serial++);
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::size_t files() const {
    const std::filesystem::directory_iterator begin(path_), end;
    return static_cast<std::size_t>(std::distance(begin, end));
  }

 private:
  std::string path_;
};

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
inline void put(const std::string& path, const std::string& bytes) {
  ::unlink(path.c_str());  // ext4 flushes a file that is truncated and written again
  std::ofstream(path, std::ios::binary) << bytes;
}

/// While it lives, no file of this process can grow beyond `bytes`: what a full disk looks like.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(std::size_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

/// Bytes that vary along every axis; no NaN pattern is made for the float types on purpose or
/// avoided.
inline Image make_image(Dtype dtype, std::array<int64_t, 4> shape) {
  Image image;
  image.dtype = dtype;
  image.shape = shape;
  image.pixels.resize(image.bytes());
  uint32_t state = 1;
  for (unsigned char& byte : image.pixels)
    byte = static_cast<unsigned char>((state = state * 1664525 + 1013904223) >> 24);
  return image;
}

inline std::string real_data(const std::string& name) {
  const char* folder = std::getenv("CYTRA_REALDATA");
  return (folder != nullptr ? std::string(folder)
                            : std::string(CYTRA_SOURCE_DIR) + "/../shared/realdata") +
         "/" + name;
}
#define SKIP_WITHOUT_REAL_DATA()                                              \
  if (!std::filesystem::is_directory(real_data(""))) {                        \
    GTEST_SKIP() << "REAL IMAGES NOT TESTED: no folder " << real_data("")     \
                 << "; name it with the environment variable CYTRA_REALDATA"; \
  }

}  // namespace cytra::io
