#include "base/own_files.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
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

#include "base/append_file.h"
#include "base/cache_folder.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/strings.h"

namespace cytra {
namespace fs = std::filesystem;
namespace {

/// One name for a path, however it is written: the folder without links, the last part as it is.
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

/// Of a folder its time alone: its size is the file system's.
std::string stamp_at(const struct stat& status) {
  const bool is_folder = S_ISDIR(status.st_mode);
  return fmt::format("{} {}", is_folder ? 0 : status.st_size, status.st_mtime);
}

bool are_equal(const std::string& one, const std::string& other) {
  struct stat a {
  }, b{};
  if (!look_at(one, a) || !look_at(other, b) || !S_ISREG(a.st_mode) || !S_ISREG(b.st_mode) ||
      a.st_size != b.st_size)
    return false;
  std::ifstream first(one, std::ios::binary), second(other, std::ios::binary);
  using Bytes = std::istreambuf_iterator<char>;
  return first && second && std::equal(Bytes(first), Bytes(), Bytes(second), Bytes());
}

/// A file that Cytra alone writes, for others to read its newest state: what a collector of figures
/// reads, and what `optimize` has found.
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
  std::mutex recording;       // the records; taken before `mutex`: a new record is an own file, too
  std::mutex mutex;           // the others
  std::set<std::string> own;  // by one_name()
  std::map<std::string, std::string> stamps;                   // of earlier runs, by one_name()
  std::map<std::string, std::unique_ptr<AppendFile>> records;  // by folder; null: none yet
  static OwnFiles& instance() {
    static auto* all = new OwnFiles;
    return *all;
  }
};

[[noreturn]] void throw_taken(const std::string& path) {
  throw DataError(
      path +
      ": is there already and was not written by this run, so it is left as it is; move "
      "it, or choose another place for the output");
}

}  // namespace

void keep_own_files(const std::string& folder) {
  std::error_code ignored;
  const std::string place = fs::canonical(folder, ignored).string(), path = place + "/.written";
  if (place.empty()) throw_errno("can't be opened", folder, ENOENT);
  OwnFiles& files = OwnFiles::instance();
  const std::scoped_lock lock(files.recording, files.mutex);
  if (files.records.count(place) > 0) return;
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {  // SIZE TIME NAME
    const std::size_t name = line.find(' ', line.find(' ') + 1);
    if (name != std::string::npos)
      files.stamps[escaped(place) + "/" + line.substr(name + 1)] = line.substr(0, name);
  }
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
  if (!cache.empty() && starts_with(path, cache + "/")) return true;
  if (S_ISREG(status.st_mode) && is_newest_state(name)) return true;
  OwnFiles& files = OwnFiles::instance();
  const std::lock_guard lock(files.mutex);
  if (files.own.count(name) > 0) return true;
  const auto earlier = files.stamps.find(escaped(name));
  return earlier != files.stamps.end() && earlier->second == stamp_at(status);
}

void expect_replaceable(const std::string& path) {
  if (!may_replace(path)) throw_taken(path);
}

void put_in_place(const std::string& temporary, const std::string& path) {
  const bool is_free = may_replace(path);
  const std::string name = one_name(path);
  struct stat status {};
  if (look_at(temporary, status) && is_free) {
    OwnFiles& files = OwnFiles::instance();
    const std::lock_guard lock(files.recording);
    for (auto& [folder, record] : files.records) {
      if (!starts_with(name, folder + "/")) continue;
      if (!record) record = std::make_unique<AppendFile>(folder + "/.written");
      record->append(
          fmt::format("{} {}\n", stamp_at(status), escaped(name.substr(folder.size() + 1))));
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
  if (is_there && is_free && is_folder) {
    const std::string old = temporary + ".old";
    is_done = renamed(temporary, path, RENAME_EXCHANGE);
    if (!is_done)  // a file system that can't swap: for a moment there is neither
      is_done = renamed(path, old, 0) && renamed(temporary, path, 0) && renamed(old, temporary, 0);
  } else {
    is_done = renamed(temporary, path, is_there && is_free ? 0 : RENAME_NOREPLACE);
    if (!is_done && (errno == EINVAL || errno == ENOSYS) && !is_there)
      is_done = renamed(temporary, path, 0);
  }
  if (!is_done && (errno == EEXIST || (is_there && !is_free))) {
    if (!are_equal(temporary, path)) throw_taken(path);
    std::error_code ignored;
    fs::remove(temporary, ignored);
    is_done = true;
  }
  if (!is_done) throw_errno("can't be put in place", path, errno);
  own_file(path);
}

}  // namespace cytra
