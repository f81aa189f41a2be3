#include "io/zarr/store.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strings.h"
#include "config/json_limits.h"

namespace cytra::io {
namespace {

// The most metadata: a plate of 384 wells and nine fields has 2 MB, and 20 MB of consolidated
// metadata.
constexpr std::size_t kMostMetadata = std::size_t{64} << 20;
constexpr std::size_t kDeepest = 32;

// The number of blocks that a thread keeps; 0 with AddressSanitizer, which then sees when each is
// freed.
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t kMostKept = 0;
#else
constexpr std::size_t kMostKept = 4;
#endif
constexpr std::size_t kLargestKept = std::size_t{8} << 20;
using BufferMemory = std::unique_ptr<unsigned char[]>;
thread_local std::vector<std::pair<std::size_t, BufferMemory>> kept_memory;

struct FreeText {
  void operator()(char* text) const { std::free(text); }
};

bool is_within(const std::string& path, const std::string& root) {
  return root == "/" ||
         (path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/'));
}

}  // namespace

void BufferDeleter::operator()(unsigned char* data) const {
  BufferMemory block(data);
  if (kept_memory.size() < kMostKept && capacity <= kLargestKept)
    kept_memory.emplace_back(capacity, std::move(block));
}

Buffer::Buffer(std::size_t count) : size(count) {
  if (count == 0) return;
  for (auto& kept : kept_memory) {
    if (kept.first < count) continue;
    data = {kept.second.release(), BufferDeleter{kept.first}};
    std::swap(kept, kept_memory.back());
    kept_memory.pop_back();
    return;
  }
  if (kept_memory.size() == kMostKept) kept_memory.clear();  // too small, all of them
  data = {new unsigned char[count], BufferDeleter{count}};
}

void ZarrFile::read(std::size_t offset, std::size_t count, unsigned char* into) const {
  while (count > 0) {
    const ssize_t got = ::pread(descriptor_.get(), into, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("can't be read", path_, errno);
    if (got == 0) throw DataError(path_ + ": ends too early, expected a complete file");
    into += got;
    offset += static_cast<std::size_t>(got);
    count -= static_cast<std::size_t>(got);
  }
}

ZarrStore::ZarrStore(const std::string& root) : root_(root), metadata_left_(kMostMetadata) {
  while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
  const std::unique_ptr<char, FreeText> real(::realpath(root_.c_str(), nullptr));
  if (!real) throw_errno("can't be read", root_, errno);
  real_root_ = real.get();
}

std::string ZarrStore::path_of(const std::string& key) const {
  return key.empty() ? root_ : root_ + "/" + key;
}

std::string ZarrStore::join(const std::string& group, const std::string& key) const {
  bool is_safe = printable(key, key.size()) == key && key.size() < PATH_MAX;
  for (const std::string& part : split(key, '/'))
    is_safe = is_safe && !part.empty() && part != "." && part != "..";
  if (!is_safe) {
    const std::string shown =
        Json(key.substr(0, 100)).dump(-1, ' ', true, Json::error_handler_t::replace);
    throw DataError(path_of(group) + ": the path " + shown +
                    " in its metadata, expected one below this folder");
  }
  return group.empty() ? key : group + "/" + key;
}

ZarrFile ZarrStore::open(const std::string& key) const {
  const std::string path = path_of(join("", key));
  struct stat status {};
  // Sparse images lack most of their chunks, so this case is fast.
  if (::stat(path.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR)) return {};
  const std::unique_ptr<char, FreeText> real(::realpath(path.c_str(), nullptr));
  if (!real) {
    if (errno == ENOENT || errno == ENOTDIR) return {};
    throw_errno("can't be read", path, errno);
  }
  if (!is_within(real.get(), real_root_))
    throw DataError(path + ": a link out of " + root_ + ", expected a file within it");
  // A pipe must not block.
  const int descriptor =
      ::open(real.get(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) {
    if (errno == ENOENT) return {};
    if (errno == ENXIO) throw DataError(path + ": a socket, expected metadata or a chunk");
    throw_errno("can't be read", path, errno);
  }
  const bool is_file = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  ZarrFile file(path, descriptor, static_cast<std::size_t>(status.st_size));
  if (!is_file) throw DataError(path + ": not a file, expected metadata or a chunk");
  return file;
}

Json ZarrStore::read_json(const std::string& key) {
  const ZarrFile file = open(key);
  if (!file) return {};
  if (file.size() > metadata_left_) {
    throw DataError(file.path() + ": " + format_bytes(static_cast<double>(file.size())) +
                    " of metadata, expected at most " +
                    format_bytes(static_cast<double>(kMostMetadata)) + " in all");
  }
  metadata_left_ -= file.size();
  std::string text(file.size(), '\0');
  file.read(0, text.size(), reinterpret_cast<unsigned char*>(text.data()));
  if (const auto why = config::json_beyond(text, kDeepest, SIZE_MAX); !why.empty())
    throw DataError("{}: {}, expected metadata of Zarr", file.path(), why);
  try {
    Json json = Json::parse(text);
    if (json.is_object()) {
      json.erase("consolidated_metadata");  // a copy of all metadata below
      return json;
    }
  } catch (const Json::exception& error) {
    throw DataError(file.path() + ": not JSON (" + printable(error.what(), 150) +
                    "), expected metadata of Zarr");
  }
  throw DataError(file.path() + ": not a JSON object, expected metadata of Zarr");
}

}  // namespace cytra::io
