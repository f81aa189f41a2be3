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
/// A character device, this user's FIFO with a reader, and what /dev/stdout and /dev/fd/N stand
/// for are not replaced: commit() writes the content into them, and the temporary is a file
/// without a name. Throws: ConfigError (folder missing or not writable, a path that names no file,
/// a block device, a socket, a FIFO without a reader), IoError (disk full, failing device).
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile& operator=(AtomicFile&&) = delete;
  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Writes at an offset; write() continues where it was.
  void write_at(uint64_t offset, const void* data, std::size_t bytes);
  /// The open descriptor and the temporary's path, for a library that writes by itself (libtiff).
  int descriptor() const { return descriptor_; }
  const std::string& temporary() const { return temporary_; }
  /// The name of a folder for an output of many files. The caller makes and removes it; where the
  /// process is killed, it is removed with the temporary.
  std::string temporary_folder() const { return temporary_ + ".d"; }
  /// Puts the file in its place. `durable`: it is on the disk when this returns; else a power
  /// failure may leave a damaged file.
  void commit(bool durable = true);

 private:
  std::string path_, temporary_;
  int descriptor_ = -1, stream_ = -1;  // stream_: what is written into, if anything
};

/// Reads the whole file. Throws: ConfigError when it can't be read or is larger than `max_bytes`.
std::string read_file(const std::string& path, std::size_t max_bytes = std::size_t{1} << 30);
void write_file(const std::string& path, std::string_view text);  // atomic
/// Gives the file `from` the second name `to`, replacing what had it, and flushes that to the
/// disk. Makes a copy where the file system has no links. Throws: what AtomicFile throws.
void link_file(const std::string& from, const std::string& to);

/// Makes the folder `path` with its parents; when it exists, appends -1, -2, ... Returns the folder
/// made. Two processes never get the same one.
std::string make_run_folder(const std::string& path);
/// Makes a folder and its parents, like mkdir -p. Throws: what AtomicFile throws.
void make_folders(const std::string& path);
/// Removes the temporaries that AtomicFile of killed processes left in `folder`: this user's own
/// files with exactly such names whose lock nobody holds. A lock held on another machine may not
/// be visible here: files of another boot (of this machine or another one) are kept for an hour
/// after their last change.
void remove_stale_temporaries(const std::string& folder);
/// What is at a path: anything; a regular file, or a link to one; a folder, or a link to one. Also
/// whether two paths lead to the same file. What the system refuses to show (a loop of links, a
/// name that is too long) is not there.
bool path_exists(const std::string& path);
bool file_exists(const std::string& path);
bool folder_exists(const std::string& path);
bool are_same_file(const std::string& a, const std::string& b);
/// Removes a file or an empty folder; or a folder with all that is in it. What can't be removed
/// stays, without an error.
void remove_quietly(const std::string& path);
void remove_all_quietly(const std::string& path);
/// The identity of the running kernel's boot, equal in all of its containers: 8 hexadecimal
/// digits.
std::string boot_id();

/// The folder of the running program, and the built-in configs beside it (build tree or
/// installation).
std::string program_folder();
std::string config_folder();
/// What the user types to start one of our programs, ready to paste: "cytra train" where `cytra`
/// started this one, "train" where that is on PATH, else its path.
std::string typed_program(const std::string& program);
/// Has the name of `cytra`'s command where that started this program; null.
inline constexpr const char* kLauncherVariable = "CYTRA_LAUNCHER";

}  // namespace cytra
