#pragma once
// A file that is open for reading at any place, by several threads; for the formats alone.
#include <cstddef>
#include <cstdint>
#include <string>

namespace cytra::io {

class InputFile {
 public:
  /// Throws: ConfigError (missing, not readable), DataError (a pipe, a device, a folder).
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  uint64_t bytes() const { return bytes_; }
  int descriptor() const { return descriptor_; }
  /// Up to `count` bytes; fewer at the end of the file, -1 with errno when the device fails.
  int64_t read_at(uint64_t offset, void* into, std::size_t count) const;
  /// The whole file in memory, mapped at the first call of map() (not thread-safe), which must
  /// come before any mapped(). Throws: IoError, MemoryError.
  void map();
  /// Throws: DataError when the file has become shorter since.
  const unsigned char* mapped() const;

 private:
  std::string path_;
  int descriptor_ = -1;
  uint64_t bytes_ = 0;
  void* data_ = nullptr;
};

/// A whole regular file. Throws: as InputFile; DataError when it is larger than `most`; IoError.
std::string read_input(const std::string& path, uint64_t most = uint64_t{1} << 30);

}  // namespace cytra::io
