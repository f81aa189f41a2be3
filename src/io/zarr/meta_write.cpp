// Part of io/zarr/meta.h: makes the metadata of an array.
#include <stdexcept>

#include "io/zarr/meta.h"

namespace cytra::io {
namespace {

using CodecKind = ByteCodec::Kind;

Json list_of(const Extent& extent, std::size_t rank) {
  Json list = Json::array();
  for (std::size_t i = 0; i < rank; ++i) list.push_back(extent[i]);
  return list;
}

Json codec_v3(const ByteCodec& codec) {
  switch (codec.kind) {
    case CodecKind::gzip:
      return {{"name", "gzip"}, {"configuration", {{"level", codec.level}}}};
    case CodecKind::zstd:
      return {{"name", "zstd"}, {"configuration", {{"level", codec.level}, {"checksum", false}}}};
    case CodecKind::blosc:
      return {{"name", "blosc"},
              {"configuration",
               {{"typesize", codec.type_size},
                {"cname", "zstd"},
                {"clevel", codec.level},
                {"shuffle", codec.type_size > 1 ? "shuffle" : "noshuffle"},
                {"blocksize", 0}}}};
    case CodecKind::crc32c:
      return {{"name", "crc32c"}};
    case CodecKind::zlib:
    case CodecKind::lz4:
      break;
  }
  throw std::logic_error("a compression that we only read");
}

Json codecs_v3(const Codecs& codecs, std::size_t rank, std::size_t sample_bytes) {
  Json list = Json::array();
  if (codecs.inner) {
    list.push_back({{"name", "sharding_indexed"},
                    {"configuration",
                     {{"chunk_shape", list_of(codecs.inner_chunk, rank)},
                      {"codecs", codecs_v3(*codecs.inner, rank, sample_bytes)},
                      {"index_codecs", codecs_v3(*codecs.index, rank, 8)},
                      {"index_location", "end"}}}});
  } else if (sample_bytes == 1) {
    list.push_back({{"name", "bytes"}});
  } else {
    list.push_back({{"name", "bytes"}, {"configuration", {{"endian", "little"}}}});
  }
  for (const ByteCodec& codec : codecs.bytes) list.push_back(codec_v3(codec));
  return list;
}

}  // namespace

Json zarr_v2_json(const ZarrMeta& meta) {
  Json compressor;
  if (!meta.codecs.bytes.empty()) {
    const ByteCodec& codec = meta.codecs.bytes.front();
    compressor = {{"id", codec_v3(codec)["name"]},
                  {codec.kind == CodecKind::blosc ? "clevel" : "level", codec.level}};
    if (codec.kind == CodecKind::blosc) {
      compressor["cname"] = "zstd";
      compressor["shuffle"] = codec.type_size > 1 ? 1 : 0;
      compressor["blocksize"] = 0;
    }
  }
  const std::string order = meta.type.bytes == 1 ? "|" : "<";
  return {{"zarr_format", 2},
          {"shape", list_of(meta.shape, meta.rank)},
          {"chunks", list_of(meta.chunk, meta.rank)},
          {"dtype", order + meta.type.kind + std::to_string(meta.type.bytes)},
          {"compressor", compressor},
          {"fill_value", 0},
          {"order", "C"},
          {"filters", Json()},
          {"dimension_separator", "/"}};
}

Json zarr_v3_json(const ZarrMeta& meta) {
  const char* word = meta.type.kind == 'f' ? "float" : meta.type.kind == 'i' ? "int" : "uint";
  return {
      {"zarr_format", 3},
      {"node_type", "array"},
      {"shape", list_of(meta.shape, meta.rank)},
      {"data_type", word + std::to_string(8 * meta.type.bytes)},
      {"chunk_grid",
       {{"name", "regular"}, {"configuration", {{"chunk_shape", list_of(meta.chunk, meta.rank)}}}}},
      {"chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", "/"}}}}},
      {"fill_value", 0},
      {"codecs", codecs_v3(meta.codecs, meta.rank, meta.type.bytes)},
      {"dimension_names", meta.dimension_names},
      {"attributes", Json::object()}};
}

}  // namespace cytra::io
