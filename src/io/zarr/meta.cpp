#include "io/zarr/meta.h"

#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"

namespace cytra::io {
namespace {

constexpr int64_t kLongestSide = int64_t{1} << 40;
constexpr const char* kZarrTypes =
    "bool, (u)int8 to (u)int64, float16, float32 or float64, which images are made of";

void read_extent(
    const Json& list, const char* key, const std::string& place, std::size_t& rank, Extent& into) {
  if (!list.is_array() || list.empty() || list.size() > kMaxRank ||
      (rank != 0 && list.size() != rank)) {
    refuse_zarr(place,
                fmt::format("'{}' is {}", key, excerpt(list)),
                rank == 0 ? "1 to 8 sizes" : fmt::format("{} sizes", rank));
  }
  rank = list.size();
  into.fill(1);
  for (std::size_t i = 0; i < rank; ++i) {
    if (!list[i].is_number_unsigned() || list[i].get<uint64_t>() < 1 ||
        list[i].get<uint64_t>() > kLongestSide) {
      refuse_zarr(place, fmt::format("'{}' is {}", key, excerpt(list)), "sizes of at least 1");
    }
    into[i] = list[i].get<int64_t>();
  }
}

bool set_type(char kind, std::size_t bytes, ZarrType& type) {
  type.kind = kind;
  type.bytes = bytes;
  if (kind == 'f') {
    type.dtype = bytes == 8 ? Dtype::f64 : Dtype::f32;
    return bytes == 2 || bytes == 4 || bytes == 8;
  }
  if (kind == 'b') return bytes == 1;
  const bool is_signed = kind == 'i';
  type.dtype = bytes == 1   ? (is_signed ? Dtype::i8 : Dtype::u8)
               : bytes == 2 ? (is_signed ? Dtype::i16 : Dtype::u16)
                            : (is_signed ? Dtype::i32 : Dtype::u32);
  return (is_signed || kind == 'u') && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
}

uint16_t half_bits(double value) {  // of a fill value, which is exact in float16
  const auto number = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &number, sizeof bits);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const auto exponent = static_cast<int>(bits >> 23 & 0xff) - 112;
  const uint32_t mantissa = bits & 0x7fffff;
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7e00;
  if (exponent >= 31) return static_cast<uint16_t>(sign | 0x7c00);
  if (exponent > 0) return static_cast<uint16_t>(sign | exponent << 10 | mantissa >> 13);
  if (exponent < -10) return sign;
  return static_cast<uint16_t>(sign | (mantissa | 0x800000) >> (14 - exponent));
}

template <class T>
void put_fill(T value, std::array<unsigned char, 8>& into) {
  std::memcpy(into.data(), &value, sizeof value);
}

/// Reads the fill value. Source: "Fill value encoding" of v2, "Fill value" of each v3 data type.
void read_fill(const Json& value, const std::string& place, ZarrMeta& meta) {
  const ZarrType& type = meta.type;
  const auto wrong = [&](const char* expected) {
    refuse_zarr(place, "'fill_value' is " + excerpt(value), expected);
  };
  meta.fill = {};
  if (value.is_null()) return;  // v2: any value
  if (type.kind == 'f') {
    double number = 0;
    if (value.is_number()) {
      number = value.get<double>();
    } else if (value == "NaN") {
      number = std::numeric_limits<double>::quiet_NaN();
    } else if (value == "Infinity" || value == "-Infinity") {
      number = (value == "Infinity" ? 1 : -1) * std::numeric_limits<double>::infinity();
    } else if (value.is_string() && value.get_ref<const std::string&>().rfind("0x", 0) == 0 &&
               value.get_ref<const std::string&>().size() == 2 + 2 * type.bytes) {
      char* end = nullptr;
      const uint64_t bits = std::strtoull(value.get_ref<const std::string&>().c_str(), &end, 16);
      if (*end != '\0') wrong("a number, NaN or Infinity");
      return put_fill(bits, meta.fill);
    } else {
      wrong("a number, NaN or Infinity");
    }
    if (type.bytes == 8) return put_fill(number, meta.fill);
    if (type.bytes == 2) return put_fill(half_bits(number), meta.fill);
    const bool is_large =
        number > std::numeric_limits<float>::max() || number < std::numeric_limits<float>::lowest();
    return put_fill(
        is_large ? static_cast<float>(number < 0 ? -1 : 1) * std::numeric_limits<float>::infinity()
                 : static_cast<float>(number),
        meta.fill);
  }
  if (value.is_boolean()) return put_fill<uint64_t>(value.get<bool>() ? 1 : 0, meta.fill);
  if (value.is_number_float()) {  // numpy's 0.0 for an integer array
    if (value.get<double>() != 0) wrong("a whole number");
    return;
  }
  if (!value.is_number_integer()) wrong("a number");
  const int bits = static_cast<int>(8 * type.bytes);
  if (type.kind == 'i') {
    const int64_t most = std::numeric_limits<int64_t>::max() >> (64 - bits);
    const int64_t number = value.get<int64_t>();
    if ((value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(most)) ||
        number > most || number < -most - 1) {
      wrong("a number of the array's type");
    }
    return put_fill(number, meta.fill);  // little-endian: the low bytes come first
  }
  if (!value.is_number_unsigned() || (bits < 64 && value.get<uint64_t>() >> bits != 0) ||
      (type.kind == 'b' && value.get<uint64_t>() > 1)) {
    wrong("a number of the array's type");
  }
  put_fill(value.get<uint64_t>(), meta.fill);
}

ByteCodec byte_codec(const std::string& full_name, const std::string& place) {
  using Kind = ByteCodec::Kind;
  const bool is_numcodecs = full_name.rfind("numcodecs.", 0) == 0;
  const std::string name = is_numcodecs ? full_name.substr(10) : full_name;
  constexpr std::pair<const char*, Kind> kKinds[] = {{"gzip", Kind::gzip},
                                                     {"zlib", Kind::zlib},
                                                     {"zstd", Kind::zstd},
                                                     {"blosc", Kind::blosc},
                                                     {"lz4", Kind::lz4},
                                                     {"crc32c", Kind::crc32c}};
  for (const auto& [known, kind] : kKinds) {
    if (name == known) return {kind};
  }
  refuse_zarr(place,
              "the compression " + excerpt(name) + " is not supported",
              "blosc, zstd, gzip, zlib, lz4 or none; write the array again with one of these");
}

/// The name of a codec; v3 allows a name without configuration.
std::string name_of(const Json& json, const std::string& place) {
  return json.is_string() ? json.get<std::string>() : text_of(json, "name", place);
}
const Json& configuration_of(const Json& json, const std::string& place) {
  static const Json kNone = Json::object();
  if (!json.is_object() || !json.contains("configuration")) return kNone;
  const Json& configuration = json["configuration"];
  if (!configuration.is_object())
    refuse_zarr(place, "'configuration' is " + excerpt(configuration), "an object");
  return configuration;
}

Codecs parse_codecs(
    const Json& list, const std::string& place, Extent chunk, const ZarrMeta& meta, int depth) {
  if (!list.is_array() || list.empty() || list.size() > 16)
    refuse_zarr(place, "'codecs' is " + excerpt(list), "a list of codecs that begins with bytes");
  Codecs codecs;
  bool is_bytes = false;
  for (const Json& codec : list) {
    const std::string name = name_of(codec, place);
    const Json& options = configuration_of(codec, place);
    if (name == "transpose" && !is_bytes) {
      const Json& order = member(options, "order", place);
      std::vector<std::size_t> composed;
      unsigned seen = 0;
      for (std::size_t i = 0; order.is_array() && order.size() == meta.rank && i < meta.rank; ++i) {
        if (!order[i].is_number_unsigned() || order[i].get<uint64_t>() >= meta.rank) break;
        const auto from = order[i].get<std::size_t>();
        seen |= 1U << from;
        composed.push_back(codecs.order.empty() ? from : codecs.order[from]);
      }
      if (seen != (1U << meta.rank) - 1)
        refuse_zarr(place, "'order' is " + excerpt(order), "each dimension once");
      Extent before = chunk;
      for (std::size_t i = 0; i < meta.rank; ++i) chunk[i] = before[order[i].get<std::size_t>()];
      codecs.order = std::move(composed);
    } else if (name == "bytes" && !is_bytes) {
      is_bytes = true;
      if (options.contains("endian")) {
        const std::string endian = text_of(options, "endian", place);
        if (endian != "big" && endian != "little")
          refuse_zarr(place, "'endian' is " + excerpt(endian), "big or little");
        codecs.is_big_endian = endian == "big";
      } else if (meta.type.bytes > 1) {
        refuse_zarr(place, "'endian' is missing", "big or little");
      }
    } else if (name == "sharding_indexed" && !is_bytes) {
      is_bytes = true;
      if (depth >= 3)
        refuse_zarr(place, "shards within shards within shards", "at most two levels");
      std::size_t rank = meta.rank;
      read_extent(
          member(options, "chunk_shape", place), "chunk_shape", place, rank, codecs.inner_chunk);
      for (std::size_t i = 0; i < rank; ++i) {
        if (chunk[i] % codecs.inner_chunk[i] != 0)
          refuse_zarr(place,
                      fmt::format("shards of {} and chunks of {}", chunk[i], codecs.inner_chunk[i]),
                      "shards that are a multiple of their chunks");
      }
      codecs.inner = std::make_shared<Codecs>(parse_codecs(
          member(options, "codecs", place), place, codecs.inner_chunk, meta, depth + 1));
      ZarrMeta index;
      index.rank = 1;
      index.type.bytes = 8;
      codecs.index = std::make_shared<Codecs>(
          parse_codecs(member(options, "index_codecs", place), place, {}, index, 3));
      bool is_simple = codecs.index->order.empty();
      for (const ByteCodec& used : codecs.index->bytes)
        is_simple = is_simple && used.kind == ByteCodec::Kind::crc32c;
      if (!is_simple)
        refuse_zarr(
            place, "'index_codecs' is " + excerpt(options["index_codecs"]), "bytes and crc32c");
      if (options.contains("index_location")) {
        const std::string location = text_of(options, "index_location", place);
        if (location != "start" && location != "end")
          refuse_zarr(place, "'index_location' is " + excerpt(location), "start or end");
        codecs.index_at_end = location == "end";
      }
    } else if (is_bytes) {
      codecs.bytes.push_back(byte_codec(name, place));
    } else {
      refuse_zarr(place,
                  "the codec " + excerpt(name) + " is not supported here",
                  "transpose, bytes or sharding_indexed");
    }
  }
  if (!is_bytes)
    refuse_zarr(place, "no codec makes bytes of the samples", "bytes or sharding_indexed");
  if ((!codecs.inner || !codecs.bytes.empty()) &&
      bytes_of(chunk, meta.rank, meta.type.bytes) > kLargestChunk) {
    refuse_zarr(place, "its chunks are larger than 1 GB", "smaller ones; write the array again");
  }
  return codecs;
}

void set_separator(const std::string& text, const std::string& place, ZarrMeta& meta) {
  if (text != "." && text != "/")
    refuse_zarr(place, "the separator is " + excerpt(text), "'.' or '/'");
  meta.separator = text[0];
}

}  // namespace

void refuse_zarr(const std::string& place, const std::string& what, const std::string& expected) {
  throw DataError(place + ": " + what + ", expected " + expected);
}

const Json& member(const Json& json, const char* key, const std::string& place) {
  if (!json.is_object()) refuse_zarr(place, excerpt(json), fmt::format("an object with '{}'", key));
  const auto found = json.find(key);
  if (found == json.end())
    refuse_zarr(place, fmt::format("'{}' is missing", key), "complete metadata");
  return *found;
}

std::string text_of(const Json& json, const char* key, const std::string& place) {
  const Json& value = member(json, key, place);
  if (!value.is_string())
    refuse_zarr(place, fmt::format("'{}' is {}", key, excerpt(value)), "a text");
  return value.get<std::string>();
}

std::string excerpt(const Json& value) {
  if ((value.is_array() || value.is_object()) && value.size() > 8)
    return fmt::format("a list of {}", value.size());
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= 80 ? text : text.substr(0, 77) + "...";
}

std::size_t bytes_of(const Extent& chunk, std::size_t rank, std::size_t sample_bytes) {
  std::size_t bytes = sample_bytes;
  for (std::size_t i = 0; i < rank; ++i) {
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(chunk[i]), &bytes))
      return std::numeric_limits<std::size_t>::max();
  }
  return bytes;
}

std::string ZarrMeta::chunk_key(const Extent& position) const {
  std::string key = key_prefix;
  for (std::size_t i = 0; i < rank; ++i) {
    if (!key.empty()) key += separator;
    key += std::to_string(position[i]);
  }
  return key;
}

ZarrMeta parse_zarr_v2(const Json& json, const std::string& place) {
  ZarrMeta meta;
  read_extent(member(json, "shape", place), "shape", place, meta.rank, meta.shape);
  read_extent(member(json, "chunks", place), "chunks", place, meta.rank, meta.chunk);
  const Json& dtype = member(json, "dtype", place);
  const std::string type = dtype.is_string() ? dtype.get<std::string>() : "";
  if (type.size() != 3 || std::strchr("<>|", type[0]) == nullptr || type[0] == '\0' ||
      !set_type(type[1], static_cast<std::size_t>(type[2] - '0'), meta.type)) {
    refuse_zarr(place, "the type " + excerpt(dtype) + " is not supported", kZarrTypes);
  }
  if (bytes_of(meta.chunk, meta.rank, meta.type.bytes) > kLargestChunk)
    refuse_zarr(place, "its chunks are larger than 1 GB", "smaller ones; write the array again");
  meta.codecs.is_big_endian = type[0] == '>';
  const std::string order = json.contains("order") ? text_of(json, "order", place) : "C";
  if (order != "C" && order != "F") refuse_zarr(place, "'order' is " + excerpt(order), "C or F");
  if (order == "F") {
    for (std::size_t i = meta.rank; i-- > 0;) meta.codecs.order.push_back(i);
  }
  const Json filters = json.value("filters", Json());
  if (!filters.is_null() && !(filters.is_array() && filters.empty()))
    refuse_zarr(place, "'filters' is " + excerpt(filters), "none; write the array again without");
  const Json& compressor = member(json, "compressor", place);
  if (!compressor.is_null())
    meta.codecs.bytes.push_back(byte_codec(text_of(compressor, "id", place), place));
  read_fill(json.value("fill_value", Json()), place, meta);
  if (json.contains("dimension_separator"))
    set_separator(text_of(json, "dimension_separator", place), place, meta);
  return meta;
}

ZarrMeta parse_zarr_v3(const Json& json, const std::string& place) {
  constexpr const char* kKnown[] = {"zarr_format",
                                    "node_type",
                                    "shape",
                                    "data_type",
                                    "chunk_grid",
                                    "chunk_key_encoding",
                                    "fill_value",
                                    "codecs",
                                    "attributes",
                                    "storage_transformers",
                                    "dimension_names"};
  for (const auto& item : json.items()) {
    bool is_known = false;
    for (const char* known : kKnown) is_known = is_known || item.key() == known;
    if (!is_known &&
        !(item.value().is_object() && item.value().value("must_understand", Json()) == false)) {
      refuse_zarr(place, "the extension " + excerpt(item.key()), "plain Zarr");
    }
  }
  ZarrMeta meta;
  read_extent(member(json, "shape", place), "shape", place, meta.rank, meta.shape);
  const Json& grid = member(json, "chunk_grid", place);
  if (name_of(grid, place) != "regular")
    refuse_zarr(place, "the chunk grid is irregular", "a regular one");
  read_extent(member(configuration_of(grid, place), "chunk_shape", place),
              "chunk_shape",
              place,
              meta.rank,
              meta.chunk);
  const std::string type = name_of(member(json, "data_type", place), place);
  const std::size_t digits = type.find_first_of("0123456789");
  const std::string word = type.substr(0, digits);
  const std::string bits = digits == std::string::npos ? "" : type.substr(digits);
  const char kind = word == "int" ? 'i' : word == "uint" ? 'u' : word == "float" ? 'f' : ' ';
  const std::size_t bytes = bits == "8"    ? 1
                            : bits == "16" ? 2
                            : bits == "32" ? 4
                            : bits == "64" ? 8
                                           : 0;
  if (!(type == "bool" ? set_type('b', 1, meta.type) : set_type(kind, bytes, meta.type)))
    refuse_zarr(place, "the type " + excerpt(type) + " is not supported", kZarrTypes);
  const Json& fill = member(json, "fill_value", place);
  read_fill(fill, place, meta);
  const Json& encoding = member(json, "chunk_key_encoding", place);
  const std::string name = name_of(encoding, place);
  if (name != "default" && name != "v2")
    refuse_zarr(place, "the chunk keys are " + excerpt(name), "default or v2");
  if (name == "default") meta.key_prefix = "c";
  meta.separator = name == "default" ? '/' : '.';
  const Json& options = configuration_of(encoding, place);
  if (options.contains("separator"))
    set_separator(text_of(options, "separator", place), place, meta);
  const Json transformers = json.value("storage_transformers", Json::array());
  if (!transformers.is_array() || !transformers.empty())
    refuse_zarr(place, "'storage_transformers' is " + excerpt(transformers), "none");
  meta.codecs = parse_codecs(member(json, "codecs", place), place, meta.chunk, meta, 1);
  const Json names = json.value("dimension_names", Json());
  if (names.is_array() && names.size() == meta.rank) {
    for (const Json& label : names)
      meta.dimension_names.push_back(label.is_string() ? label.get<std::string>() : "");
  }
  return meta;
}

}  // namespace cytra::io
