#include "base/own_files.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/append_file.h"
#include "base/cache_folder.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/files.h"
#include "base/strings.h"

namespace cytra {
namespace fs = std::filesystem;
namespace {

/// The unique name of a path, however it is written: the folder with links resolved, the last part
/// unchanged.
std::string one_name(const std::string& path) {
  fs::path place = path;
  if (!place.has_filename()) place = place.parent_path();  // "a.zarr/"
  const fs::path parent = place.parent_path();
  std::error_code error;
  const fs::path folder = fs::canonical(parent.empty() ? fs::path(".") : parent, error);
  return error ? path : (folder / place.filename()).string();
}

bool look_at(const std::string& path, struct stat& status) {
  return ::lstat(path.c_str(), &status) == 0;
}

/// The bytes of a file; of a folder, those of all regular files in it.
int64_t bytes_at(const std::string& path, const struct stat& status) {
  if (!S_ISDIR(status.st_mode)) return status.st_size;
  int64_t bytes = 0;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(path, ignored)) {
    struct stat inside {};
    if (look_at(entry.path().string(), inside) && S_ISREG(inside.st_mode)) bytes += inside.st_size;
  }
  return bytes;
}

/// A line of a record, about a file.
struct WrittenFile {
  int64_t bytes = 0, time = 0;
  uid_t by = 0;  // the user whose record it is
  /// Whether the line counts for a file: another user's record counts for that user's files only.
  bool counts_for(const struct stat& status) const {
    return by == ::geteuid() || by == status.st_uid;
  }
};

/// The path of the record: FOLDER/.written, or .written-UID where another user began the first.
std::string record_of(const std::string& folder) {
  struct stat status {};
  const std::string path = folder + "/.written";
  return look_at(path, status) && status.st_uid != ::geteuid()
             ? fmt::format("{}-{}", path, ::geteuid())
             : path;
}

/// Whether the content of the file `one` begins with that of `other`.
bool begins_with(const std::string& one, const std::string& other) {
  std::ifstream whole(one, std::ios::binary), part(other, std::ios::binary);
  using Bytes = std::istreambuf_iterator<char>;
  return whole && part &&
         std::mismatch(Bytes(part), Bytes(), Bytes(whole), Bytes()).first == Bytes();
}

bool are_equal(const std::string& one, const std::string& other) {
  struct stat a {
  }, b{};
  if (!look_at(one, a) || !look_at(other, b) || !S_ISREG(a.st_mode) || !S_ISREG(b.st_mode) ||
      a.st_size != b.st_size)
    return false;
  return begins_with(one, other);
}

/// Whether it is a file that only Cytra writes and others read for its newest state: the figures
/// for a collector, and what `optimize` has found.
bool is_newest_state(const std::string& path) {
  for (const std::string head :
       {"# HELP cytra_", "# TYPE cytra_", "# @package _global_\n# Written by `optimize"}) {
    std::string begin(head.size(), '\0');
    std::ifstream file(path, std::ios::binary);
    if (file.read(begin.data(), static_cast<std::streamsize>(begin.size())) && begin == head)
      return true;
  }
  return false;
}

/// Never destroyed: an exit may come from any thread.
struct OwnFiles {
  /// Finds the record of a name; null where none counts. `mutex` must be held.
  const WrittenFile* find(const std::string& name, const struct stat& status) const {
    const auto found = written.find(escaped(name));
    return found == written.end() || !found->second.counts_for(status) ? nullptr : &found->second;
  }

  std::mutex recording;       // the records; taken before `mutex`: a new record is an own file, too
  std::mutex mutex;           // guards the other members
  std::set<std::string> own;  // by one_name()
  std::map<std::string, WrittenFile>
      written;  // this run's and earlier ones', by escaped one_name()
  std::map<std::string, std::unique_ptr<AppendFile>> records;  // by folder; null: none yet
  static OwnFiles& instance() {
    static auto* all = new OwnFiles;
    return *all;
  }
};

/// Reads a record: SIZE TIME NAME in each line. Throws: what keep_own_files() throws.
void read_record(const std::string& path,
                 const std::string& folder,
                 std::map<std::string, WrittenFile>& written) {
  struct stat status {};
  if (!look_at(path, status)) return;
  if (!S_ISREG(status.st_mode))
    throw ConfigError(path + ": a link, FIFO or device, expected a record of an earlier run");
  if ((status.st_mode & S_IWOTH) != 0) return;  // anybody may have written it
  for (const std::string& line : split(read_file(path), '\n')) {
    const char* at = line.c_str();
    char* end = nullptr;
    WrittenFile file;
    file.bytes = std::strtoll(at, &end, 10);
    if (end == at || *end != ' ') continue;
    file.time = std::strtoll(at = end + 1, &end, 10);
    if (end == at || *end != ' ') continue;
    file.by = status.st_uid;
    written[escaped(folder) + "/" + (end + 1)] = file;
  }
}

[[noreturn]] void throw_taken(const std::string& path) {
  throw DataError(path +
                  ": is there already and was not written by this run, so it is left as it is; "
                  "move it, or choose another place for the output");
}

}  // namespace

void keep_own_files(const std::string& folder) {
  std::error_code ignored;
  const std::string place = fs::canonical(folder, ignored).string();
  if (place.empty()) throw_errno("can't be opened", folder, ENOENT);
  OwnFiles& files = OwnFiles::instance();
  const std::scoped_lock lock(files.recording, files.mutex);
  if (files.records.count(place) > 0) return;
  for (const std::string& path : std::set<std::string>{place + "/.written", record_of(place)})
    read_record(path, place, files.written);
  files.records[place];
}

void own_file(const std::string& path) {
  const std::string name = one_name(path);
  OwnFiles& files = OwnFiles::instance();
  const std::lock_guard lock(files.mutex);
  files.own.insert(name);
}

bool may_replace(const std::string& path) {
  struct stat status {};
  const std::string name = one_name(path);
  std::error_code ignored;
  if (!look_at(name, status) || (S_ISDIR(status.st_mode) && fs::is_empty(name, ignored)))
    return true;
  const std::string cache = cache_folder();
  if (!cache.empty() && path.starts_with(cache + "/")) return true;
  if (S_ISREG(status.st_mode) && is_newest_state(name)) return true;
  OwnFiles& files = OwnFiles::instance();
  const std::lock_guard lock(files.mutex);
  if (files.own.count(name) > 0) return true;
  const WrittenFile* const written = files.find(name, status);
  if (written == nullptr) return false;
  if (S_ISLNK(status.st_mode)) return written->by == ::geteuid();  // a link holds no content
  const bool is_sized = S_ISDIR(status.st_mode) || written->bytes == status.st_size;
  return is_sized && written->time == status.st_mtime;
}

namespace {

/// Whether this run, or the run that it continues, wrote something of that name.
bool was_written(const std::string& name) {
  OwnFiles& files = OwnFiles::instance();
  const std::lock_guard lock(files.mutex);
  return files.written.count(escaped(name)) > 0;
}

/// Whether a file that this run, or the run that it continues, wrote is shorter now.
bool is_shorter(const std::string& path) {
  struct stat status {};
  const std::string name = one_name(path);
  OwnFiles& files = OwnFiles::instance();
  const std::lock_guard lock(files.mutex);
  if (!look_at(name, status) || !S_ISREG(status.st_mode)) return false;
  const WrittenFile* const written = files.find(name, status);
  return written != nullptr && status.st_size < written->bytes;
}

}  // namespace

bool is_as_written(const std::string& path) {
  struct stat status {};
  const std::string name = one_name(path);
  if (!look_at(name, status) || !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) return false;
  WrittenFile written;
  {
    OwnFiles& files = OwnFiles::instance();
    const std::lock_guard lock(files.mutex);
    const WrittenFile* const found = files.find(name, status);
    if (found == nullptr) return false;
    written = *found;
  }
  return written.bytes == bytes_at(name, status);
}

void expect_replaceable(const std::string& path) {
  if (!may_replace(path) && !is_shorter(path)) throw_taken(path);
}

void put_in_place(const std::string& temporary, const std::string& path) {
  const bool is_free = may_replace(path) || (is_shorter(path) && begins_with(temporary, path));
  const std::string name = one_name(path);
  const bool is_of_a_result = was_written(name);
  struct stat status {};
  if (look_at(temporary, status) && is_free) {
    OwnFiles& files = OwnFiles::instance();
    const std::lock_guard lock(files.recording);
    for (auto& [folder, record] : files.records) {
      if (!name.starts_with(folder + "/")) continue;
      if (!record) record = std::make_unique<AppendFile>(record_of(folder));
      const WrittenFile written{bytes_at(temporary, status), status.st_mtime, ::geteuid()};
      record->append(fmt::format(
          "{} {} {}\n", written.bytes, written.time, escaped(name.substr(folder.size() + 1))));
      const std::lock_guard inner(files.mutex);
      files.written[escaped(name)] = written;
    }
  }
  const auto renamed = [](const std::string& from, const std::string& to, unsigned flags) {
    int result;
    do {
      result = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags);
    } while (result != 0 && errno == EINTR);
    return result == 0;
  };
  struct stat present {};
  const bool is_there = look_at(name, present), is_folder = S_ISDIR(status.st_mode);
  bool is_done = false;
  if (is_there && is_of_a_result && !is_folder && S_ISDIR(present.st_mode)) ::rmdir(name.c_str());
  if (is_there && is_free && is_folder) {
    const std::string old = temporary + ".old";
    is_done = renamed(temporary, path, RENAME_EXCHANGE);
    if (!is_done)  // the file system can't swap: for a moment there is neither
      is_done = renamed(path, old, 0) && renamed(temporary, path, 0) && renamed(old, temporary, 0);
  } else {
    is_done = renamed(temporary, path, is_there && is_free ? 0 : RENAME_NOREPLACE);
    if (!is_done && (errno == EINVAL || errno == ENOSYS) && !is_there)
      is_done = renamed(temporary, path, 0);
  }
  if (!is_done && (errno == EEXIST || (is_there && !is_free))) {
    if (!are_equal(temporary, path)) throw_taken(path);
    remove_quietly(temporary);
    is_done = true;
  }
  if (!is_done) throw_errno("can't be put in place", path, errno);
  own_file(path);
}

}  // namespace cytra
