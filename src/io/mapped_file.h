#pragma once
// A whole file mapped into memory, and reading it while others may shorten it.
#include <cstddef>
#include <string>

namespace cytra::io {

class MappedFile {
 public:
  /// `bytes` > 0. The descriptor is not kept. Throws: IoError, MemoryError.
  MappedFile(std::string path, int descriptor, std::size_t bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  const unsigned char* data() const;
  std::size_t size() const;

  /// While one lives, on any thread, what the file has lost since it was mapped, or its device
  /// can't give, reads as zeros: elsewhere that is SIGBUS, which ends the process. Sets the
  /// process's handler of SIGBUS when the first one is made; what is not ours goes to the one
  /// before.
  class Reading {
   public:
    /// `bytes`: about how many are touched. When they have become many the process gives them back;
    /// they stay in the system's cache.
    explicit Reading(const MappedFile& file, std::size_t bytes = 0);
    ~Reading();
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    /// Throws: DataError when any of it was lost.
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
