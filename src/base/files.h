#pragma once
// Files that appear whole or not at all, and folders that belong to one run.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cytra {

/// Writes `.NAME.tmp.BOOT-RANDOM` beside `path`, a new file that it holds a lock (flock) on;
/// commit() flushes it to the disk and renames it over `path`. Without a commit the destructor
/// removes it, so an error leaves the old file as it was.
/// A character device, a FIFO of this user's that somebody reads, and what /dev/stdout and
/// /dev/fd/N stand for are no files to replace: commit() writes the content into them, `temporary`
/// is a file without a name. Throws: ConfigError (folder missing or not writable, no name of a
/// file, a block device, a socket, a FIFO that nobody reads), IoError (disk full, failing device).
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// At a place; write() goes on where it was.
  void write_at(uint64_t offset, const void* data, std::size_t bytes);
  /// For a library that writes by itself (libtiff): the open descriptor, and the temporary's path.
  int descriptor() const { return descriptor_; }
  const std::string& temporary() const { return temporary_; }
  /// For an output of many files: the name of a folder that the caller makes, and removes with
  /// this; of a killed process it goes with the temporary.
  std::string temporary_folder() const { return temporary_ + ".d"; }
  /// `durable`: on the disk when this returns; else a power cut may leave a damaged file.
  void commit(bool durable = true);

 private:
  std::string path_, temporary_;
  int descriptor_ = -1, stream_ = -1;  // stream_: what is written into, if anything
};

/// The whole file. Throws: ConfigError when it can't be read or is larger than `max_bytes`.
std::string read_file(const std::string& path, std::size_t max_bytes = std::size_t{1} << 30);
void write_file(const std::string& path, std::string_view text);  // atomic
/// Gives the file `from` the name `to` as well, over what had it, and flushes that to the disk. A
/// copy where the file system has no links. Throws: as AtomicFile.
void link_file(const std::string& from, const std::string& to);

/// Makes the folder `path` with its parents; when it exists, appends -1, -2, ... Returns the folder
/// made. Two processes never get the same one.
std::string make_run_folder(const std::string& path);
/// mkdir -p. Throws as AtomicFile.
void make_folders(const std::string& path);
/// Removes what killed processes left of AtomicFile in `folder`: this user's own files of exactly
/// such names that nobody holds the lock of. A lock held on another machine may not be seen here:
/// those of another boot (of this machine, or another's) are left for an hour after their last
/// change.
void remove_stale_temporaries(const std::string& folder);
/// Of the running kernel, in all of its containers: 8 hexadecimal digits.
std::string boot_id();

/// The folder of the running program, and the built-in configs beside it (build tree or
/// installation).
std::string program_folder();
std::string config_folder();

}  // namespace cytra
