#include "io/compression/zip_writer.h"

#include <new>
#include <stdexcept>

#include <zlib.h>

namespace cytra::io {
namespace {

void put_little(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

std::string deflate_whole(const std::string& bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    throw std::bad_alloc();
  std::string packed(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const bool is_done = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  if (!is_done) throw std::logic_error("a file that does not fit its own bound");
  return packed;
}

}  // namespace

void ZipWriter::add(const std::string& name, const std::string& bytes) {
  if (bytes.size() > UINT32_MAX || position_ > UINT32_MAX)
    throw std::logic_error("a zip archive above 4 GB");
  const std::string packed = deflate_whole(bytes);
  const auto checksum = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  std::string entry;  // the common part of the local header and the directory
  put_little(entry, 20, 2);
  put_little(entry, 0, 2);
  put_little(entry, 8, 2);         // deflate
  put_little(entry, 0x210000, 4);  // 1 January 1980: no time
  put_little(entry, checksum, 4);
  put_little(entry, packed.size(), 4);
  put_little(entry, bytes.size(), 4);
  put_little(entry, name.size(), 2);
  put_little(entry, 0, 2);
  const std::string local = "PK\x03\x04" + entry + name;
  directory_ += "PK\x01\x02";
  put_little(directory_, 20, 2);
  directory_ += entry;
  put_little(directory_, 0, 10);  // no comment; disk, attributes
  put_little(directory_, position_, 4);
  directory_ += name;
  file_.write(local);
  file_.write(packed);
  position_ += local.size() + packed.size();
  ++entries_;
}

void ZipWriter::finish() {
  std::string end;
  const bool is_large = entries_ >= 0xffff || position_ + directory_.size() >= UINT32_MAX;
  if (is_large) {  // zip64
    end += "PK\x06\x06";
    put_little(end, 44, 8);
    put_little(end, 45, 2);
    put_little(end, 45, 2);
    put_little(end, 0, 8);
    put_little(end, entries_, 8);
    put_little(end, entries_, 8);
    put_little(end, directory_.size(), 8);
    put_little(end, position_, 8);
    end += "PK\x06\x07";
    put_little(end, 0, 4);
    put_little(end, position_ + directory_.size(), 8);
    put_little(end, 1, 4);
  }
  end += "PK\x05\x06";
  put_little(end, 0, 4);
  for (int i = 0; i < 2; ++i) put_little(end, is_large ? 0xffff : entries_, 2);
  put_little(end, is_large ? 0xffffffff : directory_.size(), 4);
  put_little(end, is_large ? 0xffffffff : position_, 4);
  put_little(end, 0, 2);
  file_.write(directory_);
  file_.write(end);
  file_.commit();
}

}  // namespace cytra::io
