#pragma once
// A file that is open for reading at any place, by several threads; for the formats only.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "io/mapped_file.h"

namespace cytra::io {

class InputFile {
 public:
  /// Opens a file. Throws: ConfigError (missing, not readable), DataError (a pipe, a device, a
  /// folder).
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile& operator=(InputFile&&) = delete;
  uint64_t bytes() const { return bytes_; }
  int descriptor() const { return descriptor_; }
  /// Reads up to `count` bytes; fewer at the end of the file, -1 with errno when the device fails.
  int64_t read_at(uint64_t offset, void* into, std::size_t count) const;
  /// The first bytes, `most` or all; "" where they can't be read.
  std::string begin(std::size_t most) const;
  /// Maps the file, which must not be empty, into memory at the first call (not thread-safe), which
  /// must come before mapped(). Throws: IoError, MemoryError, DataError when it is empty.
  void map();
  const MappedFile& mapped() const { return *map_; }
  /// Returns the result of `action` on the file in memory, of which it touches about `bytes`.
  /// Throws: DataError when the file has become shorter since it was opened.
  auto read_mapped(const auto& action, std::size_t bytes = 0) const {
    check_size();
    const MappedFile::Reading reading(*map_, bytes);
    auto result = action(map_->data());
    reading.check();
    check_size();
    return result;
  }

 private:
  void check_size() const;
  std::string path_;
  int descriptor_ = -1;
  uint64_t bytes_ = 0;
  std::unique_ptr<MappedFile> map_;
};

/// Reads a whole regular file. Throws: what InputFile throws; DataError when it is larger than
/// `most`; IoError.
std::string read_input(const std::string& path, uint64_t most = uint64_t{1} << 30);
/// Reads a text without the byte order mark that editors put in front of UTF-8. Throws: as
/// read_input().
std::string read_text_input(const std::string& path, uint64_t most);

}  // namespace cytra::io
