#include "io/zarr/array.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "io/zarr/codecs.h"
#include "io/zarr/copy.h"
#include "io/zarr/grid.h"
#include "io/zarr/meta.h"

namespace cytra::io {
namespace {

constexpr std::size_t kLargestRatio = 2000;

/// The stored bytes of a chunk: part of a file, or in memory.
struct ChunkSource {
  const ZarrFile* file = nullptr;
  const unsigned char* memory = nullptr;
  std::size_t offset = 0, size = 0;
  Buffer read(std::size_t from, std::size_t count) const {
    Buffer bytes(count);
    if (memory != nullptr) {
      if (count > 0) std::memcpy(bytes.data.get(), memory + offset + from, count);
    } else {
      file->read(offset + from, count, bytes.data.get());
    }
    return bytes;
  }
};

class Reading {
 public:
  Reading(const ZarrMeta& meta, unsigned char* into)
      : meta_(meta), into_(into), sample_bytes_(size_of(meta.type.dtype)) {
    for (const unsigned char byte : meta.fill) has_fill_ = has_fill_ || byte != 0;
  }

  void fill(const std::vector<Box>& parts, const Extent& strides, const std::string& place) const {
    if (!has_fill_) return;
    for (const Box& part : parts)
      copy_box(meta_.type, meta_.rank, part.size, meta_.fill.data(), {}, to(part), strides, place);
  }

  void read(const ChunkSource& source,
            const Codecs& codecs,
            Extent chunk,
            std::vector<Box> parts,
            Extent strides,
            const std::string& place) const {
    if (!codecs.order.empty()) {
      chunk = permuted(chunk, codecs.order);
      strides = permuted(strides, codecs.order);
      for (Box& part : parts) {
        part.begin = permuted(part.begin, codecs.order);
        part.size = permuted(part.size, codecs.order);
      }
    }
    if (codecs.inner && codecs.bytes.empty())
      return read_shard(source, codecs, chunk, parts, strides, place);
    const std::size_t expected = bytes_of(chunk, meta_.rank, meta_.type.bytes);
    const std::size_t most = expected + (expected / 8 + 65536) * (codecs.bytes.size() + 1);
    if (source.size > most) {
      throw DataError(
          "{}: {} bytes, expected at most {} for a chunk of this shape", place, source.size, most);
    }
    if (codecs.inner) {  // compressed as a whole, with unknown size: rare
      const Buffer shard = decode_at_most(source.read(0, source.size), codecs.bytes, most, place);
      return read_shard(
          {nullptr, shard.data.get(), 0, shard.size}, codecs, chunk, parts, strides, place);
    }
    const Buffer samples = decode(source.read(0, source.size), codecs.bytes, expected, place);
    if (codecs.is_big_endian) swap_bytes(samples.data.get(), samples.size, meta_.type.bytes);
    const Extent steps = c_strides(chunk, meta_.rank);
    for (const Box& part : parts) {
      int64_t first = 0;
      for (std::size_t i = 0; i < meta_.rank; ++i) first += part.begin[i] * steps[i];
      copy_box(meta_.type,
               meta_.rank,
               part.size,
               samples.data.get() + static_cast<std::size_t>(first) * meta_.type.bytes,
               steps,
               to(part),
               strides,
               place);
    }
  }

 private:
  unsigned char* to(const Box& part) const {
    return into_ + static_cast<std::size_t>(part.offset) * sample_bytes_;
  }
  static Extent permuted(const Extent& extent, const std::vector<std::size_t>& order) {
    Extent result = extent;
    for (std::size_t i = 0; i < order.size(); ++i) result[i] = extent[order[i]];
    return result;
  }

  struct Index {
    Buffer entries;
    bool is_swapped;
    uint64_t at(std::size_t i) const {
      uint64_t value;
      std::memcpy(&value, entries.data.get() + 8 * i, sizeof value);
      return is_swapped ? __builtin_bswap64(value) : value;
    }
  };

  /// Reads a shard's index. Source:
  /// https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed
  Index read_index(const ChunkSource& source,
                   const Codecs& codecs,
                   const Extent& counts,
                   const std::string& place) const {
    constexpr std::size_t kEntry = 16, kChecksum = 4;
    const std::size_t bytes = bytes_of(counts, meta_.rank, kEntry);
    const std::size_t stored = bytes + kChecksum * codecs.index->bytes.size();
    if (bytes > source.size || stored > source.size) {
      throw DataError(
          "{}: a shard of {} bytes, expected at least its index of {}", place, source.size, bytes);
    }
    Buffer raw = source.read(codecs.index_at_end ? source.size - stored : 0, stored);
    return {decode(std::move(raw), codecs.index->bytes, bytes, place + ": the shard's index"),
            codecs.index->is_big_endian};
  }

  void read_shard(const ChunkSource& source,
                  const Codecs& codecs,
                  const Extent& chunk,
                  const std::vector<Box>& parts,
                  const Extent& strides,
                  const std::string& place) const {
    constexpr uint64_t kMissing = std::numeric_limits<uint64_t>::max();
    Extent counts{};
    for (std::size_t i = 0; i < meta_.rank; ++i) counts[i] = chunk[i] / codecs.inner_chunk[i];
    const Index index = read_index(source, codecs, counts, place);
    std::size_t used = 0;
    for_each_chunk(
        meta_.rank,
        codecs.inner_chunk,
        parts,
        strides,
        [&](const Extent& position, const std::vector<Box>& inner) {
          const std::size_t entry = number_of(position, counts, meta_.rank);
          const uint64_t offset = index.at(2 * entry), bytes = index.at(2 * entry + 1);
          if (offset == kMissing && bytes == kMissing) return fill(inner, strides, place);
          // Chunks that share bytes could make reading a small file take an hour.
          if (offset > source.size || bytes > source.size - offset || bytes > source.size - used) {
            throw DataError(
                "{}: chunk {} of the shard has {} bytes at {}, expected some of its own within {}",
                place,
                entry,
                bytes,
                offset,
                source.size);
          }
          used += bytes;
          ChunkSource part = source;
          part.offset += offset;
          part.size = bytes;
          read(part,
               *codecs.inner,
               codecs.inner_chunk,
               inner,
               strides,
               fmt::format("{}: chunk {} of the shard", place, entry));
        });
  }

  const ZarrMeta& meta_;
  unsigned char* into_;
  std::size_t sample_bytes_;
  bool has_fill_ = false;
};

}  // namespace

std::string ZarrArray::key_of(const Extent& position) const {
  const std::string key = meta_.chunk_key(position);
  return key_.empty() ? key : key_ + "/" + key;
}

void ZarrArray::check_count(const std::vector<Box>& boxes) const {
  const Grid grid(meta_.rank, meta_.chunk, boxes);
  int64_t chunks = 1;
  for (std::size_t i = 0; i < meta_.rank; ++i) {
    if (__builtin_mul_overflow(chunks, grid.last[i] - grid.first[i] + 1, &chunks) ||
        chunks > kMostChunks) {
      throw DataError(
          "{}: a region of more than {} chunks, expected at most so many; read it in parts",
          store_.path_of(key_),
          kMostChunks);
    }
  }
}

void ZarrArray::read(const std::vector<Box>& boxes, const Destination& destination) const {
  check_count(boxes);
  const Reading reading(meta_, destination.data);
  bool is_found = false;
  for_each_chunk(meta_.rank,
                 meta_.chunk,
                 boxes,
                 destination.strides,
                 [&](const Extent& position, const std::vector<Box>& parts) {
                   const ZarrFile file = store_.open(key_of(position));
                   if (!file) return reading.fill(parts, destination.strides, store_.path_of(key_));
                   is_found = true;
                   reading.read({&file, nullptr, 0, file.size()},
                                meta_.codecs,
                                meta_.chunk,
                                parts,
                                destination.strides,
                                file.path());
                 });
  if (!is_found) check_keys();
}

void ZarrArray::check_keys() const {
  std::call_once(checked_, [&] { check_chunk_keys(store_, key_, meta_); });
}

void ZarrArray::check_stored() const {
  constexpr double kChunksForAFile = 65536;
  double chunks = 1;
  for (std::size_t d = 0; d < static_cast<std::size_t>(meta_.rank); ++d) {
    const int64_t side = std::max<int64_t>(meta_.chunk[d], 1);
    chunks *= std::ceil(static_cast<double>(meta_.shape[d]) / static_cast<double>(side));
  }
  if (chunks <= kChunksForAFile) return;
  double files = 0;
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(store_.path_of(key_), ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".z") || name == "zarr.json" || !entry.is_regular_file(ignored)) continue;
    if (++files * kChunksForAFile >= chunks) return;
  }
  throw DataError(
      "{}: its sizes state {:.0f} chunks, and {:.0f} files are there, expected one for {:.0f} of "
      "them at least; the metadata may be damaged, or chunks are missing",
      store_.path_of(key_),
      chunks,
      files,
      kChunksForAFile);
}

std::size_t ZarrArray::covered(const std::vector<Box>& boxes) const {
  check_count(boxes);
  std::size_t samples = 0;
  for_each_chunk(meta_.rank,
                 meta_.chunk,
                 boxes,
                 {},
                 [&](const Extent& position, const std::vector<Box>& parts) {
                   const ZarrFile file = store_.open(key_of(position));
                   if (!file) return;
                   std::size_t touched = 0;
                   for (const Box& part : parts) touched += bytes_of(part.size, meta_.rank, 1);
                   const std::size_t most = std::max(kLargestChunk, kLargestRatio * file.size());
                   samples += std::min(touched, most / meta_.type.bytes);
                 });
  if (samples == 0) check_keys();
  return samples;
}

}  // namespace cytra::io
