#pragma once
// A whole file mapped into memory, which can be read safely while others may shorten it.
#include <cstddef>
#include <string>

namespace cytra::io {

class MappedFile {
 public:
  /// Maps a file. `bytes` > 0. The descriptor is not kept. Throws: IoError, MemoryError.
  MappedFile(std::string path, int descriptor, std::size_t bytes);
  ~MappedFile();
  MappedFile& operator=(MappedFile&&) = delete;
  const unsigned char* data() const;
  std::size_t size() const;

  /// Marks a time of reading. While one lives, on any thread, parts that the file has lost since
  /// it was mapped, or that its device can't read, are zeros; at other times they cause SIGBUS,
  /// which ends the process. The first one sets the process's handler of SIGBUS; other signals go
  /// to the earlier handler.
  class Reading {
   public:
    /// `bytes`: about how many are read. When they have become many, the process releases them;
    /// they stay in the system's cache.
    explicit Reading(const MappedFile& file, std::size_t bytes = 0);
    ~Reading();
    Reading& operator=(Reading&&) = delete;
    /// Checks the file. Throws: DataError when a part of it was lost.
    void check() const;

   private:
    const MappedFile& file_;
    std::size_t bytes_;
  };

 private:
  struct Range;
  std::string path_;
  Range* range_;
};

}  // namespace cytra::io
