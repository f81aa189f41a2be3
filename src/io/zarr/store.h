#pragma once
// The files of a Zarr hierarchy in a folder, and nothing outside of it; for zarr*.cpp alone.
#include <cstddef>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

namespace cytra::io {

using Json = nlohmann::json;

/// Keeps a few blocks of its thread for the next Buffer: the heap would return each to the system
/// and have it zeroed again, which takes longer than decoding.
struct BufferDeleter {
  std::size_t capacity = 0;
  void operator()(unsigned char* data) const;
};
/// Bytes that are not zeroed first.
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
  ~ZarrFile();
  ZarrFile(ZarrFile&& other) noexcept;
  ZarrFile& operator=(ZarrFile&&) = delete;
  explicit operator bool() const { return descriptor_ >= 0; }
  const std::string& path() const { return path_; }
  std::size_t size() const { return size_; }
  /// Throws: DataError beyond the end, IoError.
  void read(std::size_t offset, std::size_t count, unsigned char* into) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::size_t size_ = 0;
};

/// Keys are paths below the root, "a/b/c". Thread: all but read_json() may run on several threads.
class ZarrStore {
 public:
  /// Throws: ConfigError when there is no such folder.
  explicit ZarrStore(const std::string& root);
  /// For messages.
  std::string path_of(const std::string& key) const;
  /// Throws: DataError for a key that leads out of the root (.., absolute, a link) or to something
  /// else than a file; ConfigError, IoError.
  ZarrFile open(const std::string& key) const;
  bool has(const std::string& key) const { return static_cast<bool>(open(key)); }
  /// null when there is no such file. Throws: DataError for damaged JSON, as open().
  Json read_json(const std::string& key);
  /// `key` below the group `group`, "" for the root. Throws: DataError as open().
  std::string join(const std::string& group, const std::string& key) const;

 private:
  std::string root_, real_root_;  // as given, and without links
  std::size_t metadata_left_;     // bytes of JSON that may still be read
};

}  // namespace cytra::io
