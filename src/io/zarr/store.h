#pragma once
// Opens the files of a Zarr hierarchy in a folder, and nothing outside of it; for zarr*.cpp only.
#include <cstddef>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "base/descriptor.h"

namespace cytra::io {

using Json = nlohmann::json;

/// Keeps a few blocks of its thread for the next Buffer: the heap would return each to the system,
/// which would zero it again, and that takes longer than decoding.
struct BufferDeleter {
  std::size_t capacity = 0;
  void operator()(unsigned char* data) const;
};
/// A buffer of bytes that are not zeroed.
struct Buffer {
  explicit Buffer(std::size_t count = 0);
  std::unique_ptr<unsigned char[], BufferDeleter> data;
  std::size_t size;
};

/// A regular file open for reading; empty when there is none.
class ZarrFile {
 public:
  ZarrFile() = default;
  ZarrFile(std::string path, int descriptor, std::size_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}
  explicit operator bool() const { return descriptor_.get() >= 0; }
  const std::string& path() const { return path_; }
  std::size_t size() const { return size_; }
  /// Reads bytes. Throws: DataError beyond the end, IoError.
  void read(std::size_t offset, std::size_t count, unsigned char* into) const;

 private:
  std::string path_;
  Descriptor descriptor_;
  std::size_t size_ = 0;
};

/// The files of a hierarchy. Keys are paths below the root, "a/b/c". Thread: all but read_json()
/// may run on several threads.
class ZarrStore {
 public:
  /// Opens the hierarchy. Throws: ConfigError when there is no such folder.
  explicit ZarrStore(const std::string& root);
  /// The path of a key, for messages.
  std::string path_of(const std::string& key) const;
  /// Opens a file. Throws: DataError for a key that leads out of the root (.., absolute, a link)
  /// or to something other than a file; ConfigError, IoError.
  ZarrFile open(const std::string& key) const;
  bool has(const std::string& key) const { return static_cast<bool>(open(key)); }
  /// Reads a JSON file; null when there is no such file. Throws: DataError for damaged JSON, as
  /// open().
  Json read_json(const std::string& key);
  /// Joins `key` to the group `group`, "" for the root. Throws: DataError as open().
  std::string join(const std::string& group, const std::string& key) const;

 private:
  std::string root_, real_root_;  // as given, and without links
  std::size_t metadata_left_;     // bytes of JSON that may still be read
};

}  // namespace cytra::io
