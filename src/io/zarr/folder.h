#pragma once
// A Zarr folder that appears whole or not at all; for zarr*.cpp only.
#include <string>

#include "base/files.h"

namespace cytra::io {

/// A folder that is written beside `path`, in that of an AtomicFile's temporary; commit() flushes
/// it to the disk and puts it in place of an existing Zarr folder. Without a commit the destructor
/// removes it.
class ZarrFolder {
 public:
  /// Begins the folder. Throws: ConfigError (there is something else at `path`; parent missing or
  /// not writable).
  explicit ZarrFolder(std::string path);
  ~ZarrFolder();
  ZarrFolder(const ZarrFolder&) = delete;
  ZarrFolder& operator=(const ZarrFolder&) = delete;
  const std::string& path() const { return path_; }
  const std::string& temporary() const { return temporary_; }
  /// Writes a new file, making the folders above it. Throws: what AtomicFile throws.
  void write(const std::string& key, const void* data, std::size_t bytes) const;
  void write(const std::string& key, const std::string& text) const {
    write(key, text.data(), text.size());
  }
  void commit();

 private:
  std::string path_;
  AtomicFile mark_;  // never committed: as long as it is locked, nobody takes the folder for stale
  std::string temporary_;
};

}  // namespace cytra::io
