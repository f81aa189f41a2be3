#pragma once
// Reads the metadata of an array, .zarray and zarr.json; for zarr*.cpp only. Sources:
// https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html, .../v3/core/index.html
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "io/image.h"
#include "io/zarr/store.h"

namespace cytra::io {

constexpr std::size_t kMaxRank = 8;
using Extent = std::array<int64_t, kMaxRank>;  // per dimension; 1 (sizes) or 0 beyond the rank

/// The type of a stored sample, and the type that it is read as: 64-bit integers as 32-bit ones,
/// float16 as float32.
struct ZarrType {
  char kind = 'u';  // b, i, u, f
  std::size_t bytes = 1;
  Dtype dtype = Dtype::u8;
};

struct ByteCodec {
  enum class Kind { gzip, zlib, zstd, blosc, lz4, crc32c } kind;
  int level = 0;              // for writing
  std::size_t type_size = 1;  // for writing: blosc's shuffle
};

/// The codecs from the samples of a chunk to its bytes: transpose, then either samples in C order
/// or a shard of smaller chunks, then compression.
struct Codecs {
  std::vector<std::size_t> order;  // stored dimension i is the array's order[i]; empty: as it is
  bool is_big_endian = false;
  std::vector<ByteCodec> bytes;
  Extent inner_chunk{};                        // of a shard, in stored dimensions
  std::shared_ptr<const Codecs> inner, index;  // null: no shard
  bool index_at_end = true;
};

struct ZarrMeta {
  std::size_t rank = 0;
  Extent shape{}, chunk{};
  ZarrType type;
  std::array<unsigned char, 8> fill{};  // one stored sample, in this machine's byte order
  std::string key_prefix;               // "c" or ""
  char separator = '.';
  Codecs codecs;
  std::vector<std::string> dimension_names;  // empty, or one per dimension

  /// The key of a chunk below the array's.
  std::string chunk_key(const Extent& position) const;
};

/// Parses metadata. Throws: DataError `place: ...` for what is missing, wrong or not supported.
ZarrMeta parse_zarr_v2(const Json& json, const std::string& place);
ZarrMeta parse_zarr_v3(const Json& json, const std::string& place);
/// The most bytes of a decoded chunk.
constexpr std::size_t kLargestChunk = std::size_t{1} << 30;
/// The bytes of a chunk of this shape; saturates.
std::size_t bytes_of(const Extent& chunk, std::size_t rank, std::size_t sample_bytes);

/// Throws DataError `place: what, expected ...`.
[[noreturn]] void refuse_zarr(const std::string& place,
                              const std::string& what,
                              const std::string& expected);
/// The members of JSON objects. Throws: DataError `place: 'key' ..., expected ...`.
const Json& member(const Json& json, const char* key, const std::string& place);
std::string text_of(const Json& json, const char* key, const std::string& place);
/// Shortens `value` for messages.
std::string excerpt(const Json& value);

/// Makes .zarray and zarr.json, for the codecs that we write.
Json zarr_v2_json(const ZarrMeta& meta);
Json zarr_v3_json(const ZarrMeta& meta);

/// Checks an array of which a region has no chunk. Warns, once per array, when it has none at all:
/// all voxels are then its fill value. Throws: DataError when other files in its folder are named
/// like chunks, with a change of the metadata by which they are found.
void check_chunk_keys(const ZarrStore& store, const std::string& array, const ZarrMeta& meta);

}  // namespace cytra::io
