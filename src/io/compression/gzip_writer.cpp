// Source: RFC 1951 and 1952. A block that ends in a flush ends at a whole byte, so blocks follow
// each other as one stream: as pigz does, but without its dictionaries.
#include "io/compression/gzip_writer.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include <unistd.h>
#include <zlib.h>

#include "base/error.h"

namespace cytra::io {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 18;

std::string deflate_block(const std::string& bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    throw std::bad_alloc();
  std::string packed(deflateBound(&stream, static_cast<uLong>(bytes.size())) + 16, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FULL_FLUSH);
  const bool is_done = result == Z_OK && stream.avail_in == 0 && stream.avail_out > 0;
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  if (!is_done) throw IoError("a block can't be compressed");
  return packed;
}

}  // namespace

struct GzipWriter::DeflateBlock {
  std::string packed;
  uint32_t checksum;
  std::size_t bytes;
};

GzipWriter::GzipWriter(const std::string& path, std::size_t lanes, const std::string& head)
    : file_(path), lanes_(lanes) {
  if (lanes > 1) spool_ = std::make_unique<AtomicFile>(path);
  file_.write(head);
  file_.write(std::string_view("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10));  // no name, no time
}

void GzipWriter::write(std::size_t lane, const void* data, std::size_t bytes) {
  const auto* next = static_cast<const char*>(data);
  std::string& pending = lanes_[lane].pending;
  for (std::size_t some; bytes > 0; next += some, bytes -= some) {
    some = std::min(bytes, kBlock - pending.size());
    pending.append(next, some);
    if (pending.size() == kBlock) post(lane);
  }
}

void GzipWriter::post(std::size_t lane) {
  std::string bytes;
  bytes.swap(lanes_[lane].pending);
  jobs_.post([this, lane, bytes = std::move(bytes)]() -> OrderedJobs::Result {
    const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
    const auto checksum = static_cast<uint32_t>(crc32_z(0, data, bytes.size()));
    return [this, lane, block = DeflateBlock{deflate_block(bytes), checksum, bytes.size()}] {
      append(lane, block);
    };
  });
}

void GzipWriter::append(std::size_t number, const DeflateBlock& block) {
  Lane& lane = lanes_[number];
  if (number == 0) {
    file_.write(block.packed);
  } else {
    spool_->write(block.packed);
    lane.pieces.push_back({spooled_, block.packed.size()});
    spooled_ += block.packed.size();
  }
  lane.checksum = static_cast<uint32_t>(
      crc32_combine(lane.checksum, block.checksum, static_cast<z_off_t>(block.bytes)));
  lane.bytes += block.bytes;
}

void GzipWriter::copy(const Piece& piece) {
  std::string bytes(piece.bytes, '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got = ::pread(spool_->descriptor(),
                                bytes.data() + done,
                                bytes.size() - done,
                                static_cast<off_t>(piece.offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw_errno("can't be read back", spool_->temporary(), got < 0 ? errno : EIO);
    done += static_cast<std::size_t>(got);
  }
  file_.write(bytes);
}

void GzipWriter::finish() {
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (!lanes_[lane].pending.empty()) post(lane);
  }
  jobs_.drain();
  uint32_t checksum = 0;
  uint64_t bytes = 0;
  for (const Lane& lane : lanes_) {
    for (const Piece& piece : lane.pieces) copy(piece);
    checksum = static_cast<uint32_t>(
        crc32_combine(checksum, lane.checksum, static_cast<z_off_t>(lane.bytes)));
    bytes += lane.bytes;
  }
  std::string end("\x03\0", 2);  // an empty last block
  for (const uint64_t number : {uint64_t{checksum}, bytes & 0xffffffff}) {
    for (int i = 0; i < 4; ++i) end += static_cast<char>(number >> (8 * i) & 0xff);
  }
  file_.write(end);
  file_.commit();
}

}  // namespace cytra::io
