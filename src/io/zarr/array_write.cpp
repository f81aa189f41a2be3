#include "io/zarr/array_write.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/own_files.h"
#include "io/zarr/codecs.h"
#include "io/zarr/copy.h"
#include "io/zarr/grid.h"

namespace cytra::io {
namespace {

namespace fs = std::filesystem;

std::string replaceable(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  expect_replaceable(path);
  return path;
}

bool overlap(const Box& a, const Box& b, std::size_t rank) {
  for (std::size_t i = 0; i < rank; ++i) {
    if (a.begin[i] >= b.begin[i] + b.size[i] || b.begin[i] >= a.begin[i] + a.size[i]) return false;
  }
  return true;
}

int64_t count_of(const Box& box, std::size_t rank) {
  int64_t count = 1;
  for (std::size_t i = 0; i < rank; ++i) count *= box.size[i];
  return count;
}

/// Adds a box to those written; rows that follow each other stay one.
void note(const Box& box, std::size_t rank, std::vector<Box>& written) {
  std::size_t differs = 0, axis = 0;
  for (std::size_t i = 0; i < rank && !written.empty(); ++i) {
    if (box.begin[i] == written.back().begin[i] && box.size[i] == written.back().size[i]) continue;
    ++differs;
    axis = i;
  }
  const bool follows =
      differs == 1 && written.back().begin[axis] + written.back().size[axis] == box.begin[axis];
  if (!follows) return written.push_back(box);
  written.back().size[axis] += box.size[axis];
}

bool is_empty(const Buffer& samples) {
  return samples.size == 0 ||
         (samples.data[0] == 0 &&
          std::memcmp(samples.data.get(), samples.data.get() + 1, samples.size - 1) == 0);
}

}  // namespace

ZarrFolder::ZarrFolder(std::string path)
    : path_(replaceable(std::move(path))), mark_(path_), temporary_(mark_.temporary_folder()) {
  if (::mkdir(temporary_.c_str(), 0777) != 0) throw_errno("can't be written", path_, errno);
}

ZarrFolder::~ZarrFolder() {
  if (!temporary_.empty()) remove_all_quietly(temporary_);
}

void ZarrFolder::write(const std::string& key, const void* data, std::size_t bytes) const {
  const std::string file = temporary_ + "/" + key;
  const auto open_new = [&] {
    return ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  };
  int descriptor = open_new();
  if (descriptor < 0 && errno == ENOENT) {
    make_folders(fs::path(file).parent_path().string());
    descriptor = open_new();
  }
  if (descriptor < 0) throw_errno("can't be written", path_, errno);
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor, next, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error_number = errno;
      ::close(descriptor);
      throw_errno("can't be written", path_, error_number);
    }
    next += written;
    bytes -= static_cast<std::size_t>(written);
  }
  if (::close(descriptor) != 0) throw_errno("can't be written", path_, errno);
}

void ZarrFolder::commit() {
  const int descriptor = ::open(temporary_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {  // thousands of files: one flush for all
    const int failed = ::syncfs(descriptor);
    const int error_number = errno;
    ::close(descriptor);
    if (failed != 0) throw_errno("can't be flushed to the disk", path_, error_number);
  }
  put_in_place(temporary_, path_);  // the destructor removes what it replaces
}

ZarrArrayWriter::ZarrArrayWriter(const ZarrFolder& folder, std::string key, ZarrMeta meta)
    : folder_(folder), key_(std::move(key)), meta_(std::move(meta)) {
  unit_ = meta_.codecs.inner ? meta_.codecs.inner_chunk : meta_.chunk;
  std::size_t count = 1;
  for (std::size_t i = 0; i < meta_.rank; ++i) {
    counts_[i] = (meta_.shape[i] + unit_[i] - 1) / unit_[i];
    count *= static_cast<std::size_t>(counts_[i]);
  }
  is_complete_.resize(count);
}

void ZarrArrayWriter::write(const Box& box, const unsigned char* samples, const Extent& strides) {
  for_each_chunk(meta_.rank,
                 unit_,
                 {box},
                 strides,
                 [&](const Extent& position, const std::vector<Box>& parts) {
                   UnfinishedChunk complete;
                   if (add(position, parts.front(), samples, strides, complete))
                     store(std::move(complete));
                 });
}

/// Adds samples to a chunk. Returns whether the chunk is complete.
bool ZarrArrayWriter::add(const Extent& position,
                          const Box& box,
                          const unsigned char* samples,
                          const Extent& strides,
                          UnfinishedChunk& complete) {
  const std::size_t rank = meta_.rank, sample_bytes = meta_.type.bytes;
  const std::size_t number = number_of(position, counts_, rank);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = parts_.try_emplace(number).first;
  UnfinishedChunk& part = found->second;
  bool is_twice = is_complete_[number];
  for (const Box& written : part.written) is_twice = is_twice || overlap(box, written, rank);
  if (is_twice) throw std::logic_error("a voxel of a Zarr image is written twice");
  if (part.samples.size == 0) {
    part.samples = Buffer(bytes_of(unit_, rank, sample_bytes));
    std::memset(part.samples.data.get(), 0, part.samples.size);
    part.position = position;
    part.missing = 1;
    for (std::size_t i = 0; i < rank; ++i)
      part.missing *= std::min(unit_[i], meta_.shape[i] - position[i] * unit_[i]);
  }
  const Extent steps = c_strides(unit_, rank);
  int64_t first = 0;
  for (std::size_t i = 0; i < rank; ++i) first += box.begin[i] * steps[i];
  copy_box(meta_.type,
           rank,
           box.size,
           samples + static_cast<std::size_t>(box.offset) * sample_bytes,
           strides,
           part.samples.data.get() + static_cast<std::size_t>(first) * sample_bytes,
           steps,
           key_);
  part.missing -= count_of(box, rank);
  note(box, rank, part.written);
  if (part.missing > 0) return false;
  complete = std::move(part);
  parts_.erase(found);
  is_complete_[number] = true;
  return true;
}

void ZarrArrayWriter::store(UnfinishedChunk part) {
  const std::size_t rank = meta_.rank;
  if (!meta_.codecs.inner) {
    const Buffer bytes = encode(std::move(part.samples), meta_.codecs.bytes);
    return folder_.write(key_ + "/" + meta_.chunk_key(part.position), bytes.data.get(), bytes.size);
  }
  Buffer bytes;  // stays empty for a chunk that is not stored
  if (!is_empty(part.samples)) bytes = encode(std::move(part.samples), meta_.codecs.inner->bytes);
  Extent position{}, within{}, chunks{}, counts{};
  int64_t all = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    chunks[i] = meta_.chunk[i] / unit_[i];
    counts[i] = (counts_[i] + chunks[i] - 1) / chunks[i];
    position[i] = part.position[i] / chunks[i];
    within[i] = part.position[i] % chunks[i];
    all *= std::min(chunks[i], counts_[i] - position[i] * chunks[i]);
  }
  Shard complete;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [found, is_new] = shards_.try_emplace(number_of(position, counts, rank));
    Shard& shard = found->second;
    if (is_new) {
      shard.missing = all;
      shard.position = position;
    }
    if (bytes.size > 0) shard.chunks[number_of(within, chunks, rank)] = std::move(bytes);
    if (--shard.missing > 0) return;
    complete = std::move(shard);
    shards_.erase(found);
  }
  store_shard(complete);
}

/// Stores a shard. Source: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed
void ZarrArrayWriter::store_shard(const Shard& shard) {
  std::size_t count = 1, bytes = 0;
  for (std::size_t i = 0; i < meta_.rank; ++i)
    count *= static_cast<std::size_t>(meta_.chunk[i] / unit_[i]);
  for (const auto& [entry, chunk] : shard.chunks) bytes += chunk.size;
  Buffer index(16 * count);
  std::memset(index.data.get(), 0xff, index.size);
  std::vector<unsigned char> file;
  file.reserve(bytes + index.size + 4);
  for (std::size_t entry = 0; entry < count; ++entry) {
    const auto chunk = shard.chunks.find(entry);
    if (chunk == shard.chunks.end()) continue;
    const uint64_t place[] = {file.size(), chunk->second.size};
    std::memcpy(index.data.get() + 16 * entry, place, sizeof place);
    const unsigned char* data = chunk->second.data.get();
    file.insert(file.end(), data, data + chunk->second.size);
  }
  const Buffer end = encode(std::move(index), meta_.codecs.index->bytes);
  file.insert(file.end(), end.data.get(), end.data.get() + end.size);
  folder_.write(key_ + "/" + meta_.chunk_key(shard.position), file.data(), file.size());
}

void ZarrArrayWriter::finish() {
  auto parts = std::move(parts_);
  parts_.clear();
  for (auto& [number, part] : parts) store(std::move(part));
  for (const auto& [number, shard] : shards_) store_shard(shard);
  shards_.clear();
}

}  // namespace cytra::io
