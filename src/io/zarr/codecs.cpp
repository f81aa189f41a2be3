#include "io/zarr/codecs.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <stdexcept>

#include <blosc.h>
#include <fmt/format.h>
#include <lz4.h>
#include <zlib.h>
#include <zstd.h>

#include "base/error.h"
#include "io/compression/crc32c.h"

namespace cytra::io {
namespace {

using CodecKind = ByteCodec::Kind;

[[noreturn]] void damaged(const std::string& place, const char* codec, const std::string& why) {
  throw DataError(
      "{}: its {} data can't be decoded ({}), expected a complete chunk; the file may be truncated "
      "or damaged: copy it again",
      place,
      codec,
      why);
}

uint32_t little_endian(const unsigned char* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// All decoders fill `into` from its start and return the bytes that came out, at most its size.

std::size_t inflate_all(const Buffer& from, Buffer& into, const std::string& place) {
  z_stream stream{};
  constexpr int kZlibOrGzip = 32;
  if (inflateInit2(&stream, kZlibOrGzip + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  const auto failed = [&](const std::string& why) {
    inflateEnd(&stream);
    damaged(place, "gzip", why);
  };
  std::size_t used = 0, made = 0;
  int state = Z_OK;
  while (used < from.size) {
    if (state == Z_STREAM_END) {  // another member
      if (inflateReset(&stream) != Z_OK) failed("reset");
    }
    stream.next_in = from.data.get() + used;
    stream.avail_in = static_cast<uInt>(std::min<std::size_t>(from.size - used, UINT_MAX));
    stream.next_out = into.data.get() + made;
    stream.avail_out = static_cast<uInt>(std::min<std::size_t>(into.size - made, UINT_MAX));
    const uInt in = stream.avail_in, out = stream.avail_out;
    state = inflate(&stream, Z_NO_FLUSH);
    used += in - stream.avail_in;
    made += out - stream.avail_out;
    if (state == Z_BUF_ERROR || (state == Z_OK && in == stream.avail_in && out == stream.avail_out))
      failed("more bytes than expected");
    if (state != Z_OK && state != Z_STREAM_END)
      failed(stream.msg == nullptr ? "no gzip data" : stream.msg);
  }
  if (state != Z_STREAM_END) failed("it ends too early");
  inflateEnd(&stream);
  return made;
}

std::size_t decode_zstd(const Buffer& from, Buffer& into, const std::string& place) {
  const std::size_t made = ZSTD_decompress(into.data.get(), into.size, from.data.get(), from.size);
  if (ZSTD_isError(made) != 0) damaged(place, "zstd", ZSTD_getErrorName(made));
  return made;
}

std::size_t decode_blosc(const Buffer& from, Buffer& into, const std::string& place) {
  std::size_t bytes = 0;
  if (from.size < BLOSC_MIN_HEADER_LENGTH ||
      blosc_cbuffer_validate(from.data.get(), from.size, &bytes) != 0)
    damaged(place, "blosc", "its header is wrong");
  if (bytes > into.size) damaged(place, "blosc", "more bytes than expected");
  const int made = blosc_decompress_ctx(from.data.get(), into.data.get(), into.size, 1);
  if (made < 0 || static_cast<std::size_t>(made) != bytes)
    damaged(place, "blosc", fmt::format("error {}", made));
  return bytes;
}

/// Decodes numcodecs' LZ4: the decoded size in four bytes, then one LZ4 block.
std::size_t decode_lz4(const Buffer& from, Buffer& into, const std::string& place) {
  if (from.size < 4 || from.size > INT_MAX) damaged(place, "LZ4", "its header is missing");
  const std::size_t bytes = little_endian(from.data.get());
  if (bytes > into.size || bytes > INT_MAX) damaged(place, "LZ4", "more bytes than expected");
  const int made = LZ4_decompress_safe(reinterpret_cast<const char*>(from.data.get()) + 4,
                                       reinterpret_cast<char*>(into.data.get()),
                                       static_cast<int>(from.size - 4),
                                       static_cast<int>(bytes));
  if (made < 0 || static_cast<std::size_t>(made) != bytes) damaged(place, "LZ4", "a wrong block");
  return bytes;
}

std::size_t check_crc(const Buffer& from, Buffer& into, const std::string& place) {
  if (from.size < 4 || from.size - 4 > into.size) damaged(place, "crc32c", "a wrong size");
  const std::size_t bytes = from.size - 4;
  if (crc32c({reinterpret_cast<const char*>(from.data.get()), bytes}) !=
      little_endian(from.data.get() + bytes))
    damaged(place, "crc32c", "the checksum differs");
  std::memcpy(into.data.get(), from.data.get(), bytes);
  return bytes;
}

std::size_t decode_one(CodecKind kind, const Buffer& from, Buffer& into, const std::string& place) {
  switch (kind) {
    case CodecKind::gzip:
    case CodecKind::zlib:
      return inflate_all(from, into, place);
    case CodecKind::zstd:
      return decode_zstd(from, into, place);
    case CodecKind::blosc:
      return decode_blosc(from, into, place);
    case CodecKind::lz4:
      return decode_lz4(from, into, place);
    case CodecKind::crc32c:
      return check_crc(from, into, place);
  }
  throw std::logic_error("unknown codec");
}

Buffer encode_gzip(const Buffer& from, int level) {
  z_stream stream{};
  constexpr int kGzip = 16, kMemory = 8;
  if (deflateInit2(&stream, level, Z_DEFLATED, kGzip + MAX_WBITS, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    throw std::bad_alloc();
  Buffer into(deflateBound(&stream, static_cast<uLong>(from.size)));
  stream.next_in = from.data.get();
  stream.avail_in = static_cast<uInt>(from.size);
  stream.next_out = into.data.get();
  stream.avail_out = static_cast<uInt>(into.size);
  const int state = deflate(&stream, Z_FINISH);
  into.size -= stream.avail_out;
  deflateEnd(&stream);
  if (state != Z_STREAM_END) throw std::logic_error("deflate failed");
  return into;
}

Buffer encode_zstd(const Buffer& from, int level) {
  Buffer into(ZSTD_compressBound(from.size));
  into.size = ZSTD_compress(into.data.get(), into.size, from.data.get(), from.size, level);
  if (ZSTD_isError(into.size) != 0) throw std::logic_error("zstd failed");
  return into;
}

Buffer encode_blosc(const Buffer& from, const ByteCodec& codec) {
  Buffer into(from.size + BLOSC_MAX_OVERHEAD);
  const int made = blosc_compress_ctx(codec.level,
                                      codec.type_size > 1 ? BLOSC_SHUFFLE : BLOSC_NOSHUFFLE,
                                      codec.type_size,
                                      from.size,
                                      from.data.get(),
                                      into.data.get(),
                                      into.size,
                                      "zstd",
                                      0,
                                      1);
  if (made <= 0) throw std::logic_error("blosc failed");
  into.size = static_cast<std::size_t>(made);
  return into;
}

Buffer append_crc(const Buffer& from) {
  Buffer into(from.size + 4);
  std::memcpy(into.data.get(), from.data.get(), from.size);
  const uint32_t crc = crc32c({reinterpret_cast<const char*>(from.data.get()), from.size});
  std::memcpy(into.data.get() + from.size, &crc, sizeof crc);
  return into;
}

}  // namespace

Buffer decode_at_most(Buffer bytes,
                      const std::vector<ByteCodec>& codecs,
                      std::size_t most,
                      const std::string& place) {
  for (std::size_t i = codecs.size(); i-- > 0;) {
    // A compression hardly enlarges its input.
    Buffer into(most + i * (most / 8 + 4096));
    into.size = decode_one(codecs[i].kind, bytes, into, place);
    bytes = std::move(into);
  }
  return bytes;
}

Buffer decode(Buffer bytes,
              const std::vector<ByteCodec>& codecs,
              std::size_t expected,
              const std::string& place) {
  bytes = decode_at_most(std::move(bytes), codecs, expected, place);
  if (bytes.size != expected) {
    throw DataError(
        "{}: {} bytes of samples, expected {}; the file may be truncated or damaged: copy it again",
        place,
        bytes.size,
        expected);
  }
  return bytes;
}

Buffer encode(Buffer bytes, const std::vector<ByteCodec>& codecs) {
  for (const ByteCodec& codec : codecs) {
    switch (codec.kind) {
      case CodecKind::gzip:
        bytes = encode_gzip(bytes, codec.level);
        break;
      case CodecKind::zstd:
        bytes = encode_zstd(bytes, codec.level);
        break;
      case CodecKind::blosc:
        bytes = encode_blosc(bytes, codec);
        break;
      case CodecKind::crc32c:
        bytes = append_crc(bytes);
        break;
      case CodecKind::zlib:
      case CodecKind::lz4:
        throw std::logic_error("a compression that we only read");
    }
  }
  return bytes;
}

}  // namespace cytra::io
