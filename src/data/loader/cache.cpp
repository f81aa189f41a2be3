#include "data/loader/cache.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <vector>

#include <ATen/ATen.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/own_files.h"
#include "base/strings.h"
#include "io/annotations/annotations.h"
#include "io/compression/zstd.h"
#include "io/fingerprint.h"
#include "io/reader.h"
#include "io/safetensors.h"
#include "nn/weights.h"

namespace cytra::data {
namespace {

namespace fs = std::filesystem;
constexpr const char* kExtension = ".cache.safetensors";
constexpr const char* kGeometry = "geometry.";  // of an image, in an entry's metadata

std::size_t bytes_of(const CacheEntry& entry) {
  std::size_t bytes = 0;
  for (const auto& [key, tensor] : entry.tensors) bytes += tensor.nbytes();
  return bytes;
}

/// Copies numbers to the smallest type that holds them all, with no more memory than needed.
at::Tensor compact(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kFloat && tensor.numel() > 0) {
    const auto [low, high] = at::aminmax(tensor);
    const double least = low.item<double>(), most = high.item<double>();
    const at::ScalarType type = least >= 0 && most <= 255          ? at::kByte
                                : least >= 0 && most <= 65535      ? at::kUInt16
                                : least >= -32768 && most <= 32767 ? at::kShort
                                                                   : at::kFloat;
    if (type != at::kFloat) {
      at::Tensor narrow = tensor.to(type).contiguous();
      if (narrow.to(at::kFloat).equal(tensor)) return narrow;
    }
  }
  const bool is_view = tensor.storage().nbytes() > tensor.nbytes();
  return is_view ? tensor.clone(at::MemoryFormat::Contiguous) : tensor.contiguous();
}

std::string to_text(const io::Geometry& geometry) {
  std::string text;
  for (const double number : geometry.spacing_um) text += fmt::format("{} ", number);
  for (const double number : geometry.affine) text += fmt::format("{} ", number);
  for (const double number : geometry.qform_affine) text += fmt::format("{} ", number);
  text += fmt::format("{} {} {}", geometry.sform, geometry.qform, geometry.xyzt_units);
  return text + fmt::format(" {}", fmt::join(geometry.field, " "));
}

io::Geometry geometry_of(const std::string& text) {
  io::Geometry geometry;
  const char* place = text.c_str();
  char* end = nullptr;
  for (double& number : geometry.spacing_um) number = std::strtod(place, &end), place = end;
  for (double& number : geometry.affine) number = std::strtod(place, &end), place = end;
  for (double& number : geometry.qform_affine) number = std::strtod(place, &end), place = end;
  for (int* number : {&geometry.sform, &geometry.qform, &geometry.xyzt_units})
    *number = static_cast<int>(std::strtol(place, &end, 10)), place = end;
  for (double& number : geometry.field) number = std::strtod(place, &end), place = end;
  return geometry;
}

/// Compresses a tensor's bytes by zstd to a tensor of bytes; `type` and shape describe the
/// original.
io::TensorView pack(const io::TensorView& view,
                    std::vector<unsigned char>& packed,
                    std::string& type) {
  packed = io::compress_zstd(view.data, view.bytes);
  type = fmt::format("{} {}", view.dtype, fmt::join(view.shape, " "));
  return {"U8", {std::ssize(packed)}, packed.data(), packed.size()};
}

at::Tensor unpack(const io::TensorView& packed, const std::string& type, const std::string& path) {
  io::TensorView view;
  std::istringstream text(type);
  text >> view.dtype;
  for (int64_t size = 0; text >> size;) view.shape.push_back(size);
  at::Tensor tensor = at::empty(view.shape, at::TensorOptions(nn::scalar_type_of(view, path)));
  io::decompress_zstd(packed.data, packed.bytes, tensor.data_ptr(), tensor.nbytes(), path);
  return tensor;
}

/// A file of the cache's folder. list_entries() lists them, the one used longest ago first.
struct File {
  timespec used;
  std::size_t bytes;
  std::string path;
};
std::vector<File> list_entries(const std::string& folder) {
  std::vector<File> files;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string path = entry.path().string();
    struct stat info;
    if (!path.ends_with(kExtension) || ::stat(path.c_str(), &info) != 0) continue;
    files.push_back({info.st_mtim, static_cast<std::size_t>(info.st_size), path});
  }
  std::ranges::sort(files, [](const File& a, const File& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  return files;
}

}  // namespace

std::string content_stamp(const std::string& path) {
  std::error_code ignored;
  std::vector<std::string> files;
  const auto add = [&](const fs::path& file) {
    struct stat info = {};
    ::stat(file.c_str(), &info);
    files.push_back(fmt::format("{} {} {}.{} {}.{} {}",
                                file.native(),
                                info.st_size,
                                info.st_mtim.tv_sec,
                                info.st_mtim.tv_nsec,
                                info.st_ctim.tv_sec,
                                info.st_ctim.tv_nsec,
                                info.st_ino));
  };
  add(path);
  for (const std::string& other : io::other_files_of(path)) add(other);
  if (path.find('*') != std::string::npos && io::is_mask_folder(path))
    for (const std::string& mask : io::mask_files(path)) add(mask);
  if (fs::is_directory(path, ignored)) {
    for (const auto& entry : fs::recursive_directory_iterator(path, ignored)) add(entry.path());
  }
  std::ranges::sort(files);  // the files of a folder are listed in any order
  return fs::absolute(path, ignored).string() + " " +
         io::fingerprint(fmt::format("{}", fmt::join(files, "\n")));
}

CacheManager::CacheManager(CacheLimits limits) : limits_(std::move(limits)) {
  if (limits_.cache_dir.empty()) return;
  make_folders(limits_.cache_dir);
  if (::access(limits_.cache_dir.c_str(), W_OK) != 0)
    throw_errno("can't be written", limits_.cache_dir, errno);
  remove_stale_temporaries(limits_.cache_dir);
  can_write_ = true;
  shrink();
}

std::shared_ptr<const CacheEntry> CacheManager::get(const std::string& key, bool use_disk) {
  {
    const std::lock_guard lock(mutex_);
    const auto place = kept_.find(key);
    if (place != kept_.end()) {
      ++stats_.ram_hits;
      uses_.splice(uses_.end(), uses_, place->second.use);
      return place->second.entry;
    }
  }
  std::optional<CacheEntry> entry;
  if (use_disk && !limits_.cache_dir.empty()) entry = read(key);
  {
    const std::lock_guard lock(mutex_);
    ++(entry ? stats_.disk_hits : stats_.misses);
  }
  // A compressed entry is expensive enough to be kept; a mapped one is in the system's memory
  // anyway.
  if (entry && limits_.compress) return keep(key, std::move(*entry));
  return entry ? std::make_shared<const CacheEntry>(std::move(*entry)) : nullptr;
}

std::shared_ptr<const CacheEntry> CacheManager::put(const std::string& key,
                                                    CacheEntry entry,
                                                    bool to_disk) {
  bool is_kept = to_disk && can_write_;
  if (!is_kept) {  // making it compact takes time, too
    const std::lock_guard lock(mutex_);
    is_kept = limits_.replaces || !stats_.is_full;
  }
  if (!is_kept) return std::make_shared<const CacheEntry>(std::move(entry));
  for (auto& [name, tensor] : entry.tensors) tensor = compact(tensor);
  if (to_disk && can_write_) write(key, entry);
  return keep(key, std::move(entry));
}

std::shared_ptr<const CacheEntry> CacheManager::keep(const std::string& key, CacheEntry entry) {
  const std::size_t bytes = bytes_of(entry);
  auto kept = std::make_shared<const CacheEntry>(std::move(entry));
  const std::lock_guard lock(mutex_);
  if (kept_.count(key) > 0) return kept;
  const auto fits = [&](std::size_t others) {
    return static_cast<double>(others + bytes) <= limits_.ram_gb * 1e9;
  };
  if (!fits(stats_.ram_bytes)) stats_.is_full = true;
  while (limits_.replaces && fits(0) && !fits(stats_.ram_bytes)) {
    const auto oldest = kept_.find(uses_.front());
    stats_.ram_bytes -= bytes_of(*oldest->second.entry);
    kept_.erase(oldest);
    uses_.pop_front();
  }
  if (!fits(stats_.ram_bytes)) return kept;
  kept_[key] = {kept, uses_.insert(uses_.end(), key)};
  stats_.ram_bytes += bytes;
  return kept;
}

CacheManager::Stats CacheManager::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

std::string CacheManager::file_of(const std::string& key) const {
  return limits_.cache_dir + "/" + io::fingerprint(key) + kExtension;
}

std::optional<CacheEntry> CacheManager::read(const std::string& key) {
  const std::string path = file_of(key);
  if (::access(path.c_str(), R_OK) != 0) return std::nullopt;
  try {
    const auto file = std::make_shared<io::SafetensorsFile>(path);
    const auto& metadata = file->metadata();
    if (metadata.at("key") != key) return std::nullopt;  // keys of one name: keeps the last
    bool is_new = false;
    {
      const std::lock_guard lock(mutex_);
      is_new = verified_.count(path) == 0;
    }
    if (is_new) file->verify();
    CacheEntry entry;
    for (const auto& [name, text] : metadata) {
      if (name.starts_with(kGeometry))
        entry.geometries[name.substr(std::strlen(kGeometry))] = geometry_of(text);
    }
    for (const auto& [name, view] : file->tensors()) {
      const auto packed = metadata.find("zstd." + name);
      if (packed != metadata.end()) {
        entry.tensors[name] = unpack(view, packed->second, path);
        continue;
      }
      // the mapped file lives as long as a tensor in it
      entry.tensors[name] = at::from_blob(
          const_cast<void*>(view.data),
          view.shape,
          [file](void*) {},
          at::TensorOptions(nn::scalar_type_of(view, name)));
    }
    ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // just used
    const std::lock_guard lock(mutex_);
    verified_.insert(path);
    return entry;
  } catch (const DataError& error) {  // truncated: it is made anew
    log::debug("disk cache: {}", error.what());
    ::unlink(path.c_str());
  } catch (const std::out_of_range&) {  // of another version
    ::unlink(path.c_str());
  } catch (const MemoryError&) {
    throw;
  } catch (const Error& error) {  // for example, removed in the meantime
    log::debug("disk cache: {}", error.what());
  }
  return std::nullopt;
}

void CacheManager::write(const std::string& key, const CacheEntry& entry) {
  std::map<std::string, io::TensorView> views;
  std::map<std::string, std::string> metadata{{"key", key}};
  for (const auto& [name, geometry] : entry.geometries)
    metadata[kGeometry + name] = to_text(geometry);
  std::vector<std::vector<unsigned char>> packed;
  for (const auto& [name, tensor] : entry.tensors) {
    views[name] = nn::view_of(tensor);
    if (limits_.compress)
      views[name] = pack(views[name], packed.emplace_back(), metadata["zstd." + name]);
  }
  try {
    own_file(file_of(key));
    const std::size_t bytes = io::write_safetensors(file_of(key), views, metadata, false);
    const std::lock_guard lock(mutex_);
    disk_bytes_ += bytes;
    written_since_ += bytes;
    const double limit = limits_.disk_gb * 1e9;
    // Other processes write, too: the folder is checked again after a twentieth of the limit.
    if (static_cast<double>(disk_bytes_) <= limit &&
        static_cast<double>(written_since_) < limit / 20)
      return;
  } catch (const std::exception& error) {
    if (can_write_.exchange(false))
      log::warn("nothing more is written to the disk cache: {}", error.what());
    return;
  }
  shrink();
}

/// Shrinks the folder below the limit, with some room; one process at a time.
void CacheManager::shrink() {
  const std::string lock_path = limits_.cache_dir + "/.lock";
  const int descriptor = ::open(lock_path.c_str(), O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor < 0 || ::flock(descriptor, LOCK_EX) != 0) {
    if (descriptor >= 0) ::close(descriptor);
    return;
  }
  const std::vector<File> files = list_entries(limits_.cache_dir);
  std::size_t total = 0;
  for (const File& file : files) total += file.bytes;
  const double limit = limits_.disk_gb * 1e9;
  if (static_cast<double>(total) > limit) {
    for (const File& file : files) {
      if (static_cast<double>(total) <= 0.9 * limit) break;
      if (::unlink(file.path.c_str()) == 0) total -= file.bytes;
    }
  }
  ::close(descriptor);  // unlocks
  const std::lock_guard lock(mutex_);
  disk_bytes_ = total;
  written_since_ = 0;
}

}  // namespace cytra::data
