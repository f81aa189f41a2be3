#include <algorithm>
#include <cstring>
#include <string_view>

#include <fmt/format.h>
#include <openjpeg.h>

#include "base/error.h"
#include "io/input_file.h"
#include "io/pixels/format.h"

namespace cytra::io {
namespace {

constexpr char kBoxes[] = "\0\0\0\x0CjP  \r\n\x87\n", kStream[] = "\xff\x4f\xff\x51";

struct Jpeg2000Source {
  std::string_view bytes;
  std::size_t position = 0;
};
OPJ_SIZE_T read_jpeg2000_bytes(void* into, OPJ_SIZE_T count, void* data) {
  auto& source = *static_cast<Jpeg2000Source*>(data);
  const std::size_t got = std::min<std::size_t>(count, source.bytes.size() - source.position);
  if (got == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(into, source.bytes.data() + source.position, got);
  source.position += got;
  return got;
}
OPJ_OFF_T skip_bytes(OPJ_OFF_T count, void* data) {
  auto& source = *static_cast<Jpeg2000Source*>(data);
  if (count < 0) return -1;
  const auto left = static_cast<OPJ_OFF_T>(source.bytes.size() - source.position);
  source.position += static_cast<std::size_t>(std::min(count, left));
  return count <= left ? count : -1;
}
OPJ_BOOL seek_bytes(OPJ_OFF_T position, void* data) {
  auto& source = *static_cast<Jpeg2000Source*>(data);
  if (position < 0 || static_cast<std::size_t>(position) > source.bytes.size()) return OPJ_FALSE;
  source.position = static_cast<std::size_t>(position);
  return OPJ_TRUE;
}
void keep_jpeg2000_error(const char* message, void* data) {
  auto& error = *static_cast<std::string*>(data);
  if (error.empty()) error = message;
  while (!error.empty() && (error.back() == '\n' || error.back() == '\r')) error.pop_back();
}
void drop_message(const char*, void*) {}

struct Jpeg2000Decoder {
  Jpeg2000Source source;
  std::string error;
  opj_codec_t* codec = nullptr;
  opj_stream_t* stream = nullptr;
  opj_image_t* image = nullptr;
  ~Jpeg2000Decoder() {
    if (image != nullptr) opj_image_destroy(image);
    if (stream != nullptr) opj_stream_destroy(stream);
    if (codec != nullptr) opj_destroy_codec(codec);
  }
};

[[noreturn]] void fail_jpeg2000(const std::string& path, const std::string& what) {
  throw DataError(
      "{}: the JPEG 2000 can't be decoded ({}), expected a complete file of 1 to 16 bit, all "
      "channels of one size; the file may be truncated or damaged: copy or save it again",
      path,
      what);
}

uint64_t number_at(const std::string& bytes, std::size_t at) {
  uint64_t number = 0;
  for (std::size_t i = 0; i < 4; ++i)
    number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

/// The place where the code stream begins: in a file of boxes (I.4: length, type) the box jp2c.
std::size_t find_stream(const std::string& bytes) {
  if (bytes.compare(0, 4, kStream, 4) == 0) return 0;
  for (std::size_t at = 0; at + 16 <= bytes.size();) {
    uint64_t size = number_at(bytes, at);
    const std::size_t head = size == 1 ? 16 : 8;
    if (size == 1) size = number_at(bytes, at + 8) << 32 | number_at(bytes, at + 12);
    if (bytes.compare(at + 4, 4, "jp2c") == 0) return at + head;
    if (size < head || size > bytes.size() - at) break;
    at += size;
  }
  return bytes.size();
}

/// Checks the sizes in a header, since the library allocates by them (ISO/IEC 15444-1, A.5.1:
/// marker SOC and SIZ, length, capabilities, size, offset, tile size, tile offset, number of
/// components).
void check_claims(const std::string& path, const std::string& bytes) {
  const std::size_t at = find_stream(bytes);
  if (at + 44 > bytes.size()) fail_jpeg2000(path, "no code stream");
  uint64_t sides[2], tiles[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const uint64_t end = number_at(bytes, at + 8 + 4 * i),
                   begin = number_at(bytes, at + 16 + 4 * i),
                   tile = number_at(bytes, at + 24 + 4 * i),
                   first = number_at(bytes, at + 32 + 4 * i);
    if (end <= begin || tile == 0 || first > begin) fail_jpeg2000(path, "no pixels");
    sides[i] = end - begin;
    tiles[i] = (end - first + tile - 1) / tile;
  }
  const auto channels = static_cast<uint64_t>(static_cast<unsigned char>(bytes[at + 40])) << 8 |
                        static_cast<unsigned char>(bytes[at + 41]);
  // A tile takes 14 bytes at least. The library works in 32 bit.
  const double needed = 4.0 * static_cast<double>(sides[0]) * static_cast<double>(sides[1]) *
                        static_cast<double>(std::max<uint64_t>(channels, 1));
  const double most = std::max(8e6, 2000.0 * static_cast<double>(bytes.size()));
  // The memory that the library allocates for each tile and its channels before it reads them.
  const double kept = static_cast<double>(tiles[0]) * static_cast<double>(tiles[1]) *
                      (6000.0 + 1200.0 * static_cast<double>(channels));
  const double most_kept = std::max(64e6, 200.0 * static_cast<double>(bytes.size()));
  if (kept > most_kept || tiles[0] > bytes.size() || tiles[1] > bytes.size() ||
      tiles[0] * tiles[1] > bytes.size() / 14 || needed > most) {
    fail_jpeg2000(path,
                  fmt::format("{} x {} x {} pixels in {} x {} tiles are not plausible for {} bytes",
                              channels,
                              sides[1],
                              sides[0],
                              tiles[1],
                              tiles[0],
                              bytes.size()));
  }
}

ImageInfo open_decoder(const std::string& path,
                       const std::string& bytes,
                       Jpeg2000Decoder& decoder) {
  check_claims(path, bytes);
  decoder.source.bytes = bytes;
  decoder.codec =
      opj_create_decompress(bytes.compare(0, 4, kStream, 4) == 0 ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
  decoder.stream = opj_stream_create(std::size_t{1} << 16, OPJ_TRUE);
  if (decoder.codec == nullptr || decoder.stream == nullptr) throw std::bad_alloc();
  opj_set_error_handler(decoder.codec, keep_jpeg2000_error, &decoder.error);
  opj_set_warning_handler(decoder.codec, drop_message, nullptr);
  opj_set_info_handler(decoder.codec, drop_message, nullptr);
  opj_stream_set_user_data(decoder.stream, &decoder.source, nullptr);
  opj_stream_set_user_data_length(decoder.stream, bytes.size());
  opj_stream_set_read_function(decoder.stream, read_jpeg2000_bytes);
  opj_stream_set_skip_function(decoder.stream, skip_bytes);
  opj_stream_set_seek_function(decoder.stream, seek_bytes);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  parameters.flags |= OPJ_DPARAMETERS_IGNORE_PCLR_CMAP_CDEF_FLAG;  // a palette gives its indices
  if (opj_setup_decoder(decoder.codec, &parameters) == OPJ_FALSE ||
      opj_read_header(decoder.stream, decoder.codec, &decoder.image) == OPJ_FALSE)
    fail_jpeg2000(path, decoder.error);
  const opj_image_t& image = *decoder.image;
  if (image.numcomps == 0) fail_jpeg2000(path, "no channels");
  const opj_image_comp_t& first = image.comps[0];
  for (uint32_t i = 0; i < image.numcomps; ++i) {
    const opj_image_comp_t& other = image.comps[i];
    if (other.w != first.w || other.h != first.h || other.prec != first.prec ||
        other.sgnd != first.sgnd || other.prec < 1 || other.prec > 16) {
      fail_jpeg2000(
          path,
          fmt::format("channel {} has {} x {} pixels of {} bit", i, other.h, other.w, other.prec));
    }
  }
  ImageInfo info;
  info.dtype = first.prec <= 8 ? (first.sgnd != 0 ? Dtype::i8 : Dtype::u8)
                               : (first.sgnd != 0 ? Dtype::i16 : Dtype::u16);
  info.shape = {image.numcomps, 1, first.h, first.w};
  check_shape(path, info.shape, info.dtype, bytes.size());
  return info;
}

}  // namespace

Image decode_jpeg2000(const std::string& path, const std::string& bytes) {
  Jpeg2000Decoder decoder;
  const ImageInfo info = open_decoder(path, bytes, decoder);
  if (opj_decode(decoder.codec, decoder.stream, decoder.image) == OPJ_FALSE ||
      opj_end_decompress(decoder.codec, decoder.stream) == OPJ_FALSE)
    fail_jpeg2000(path, decoder.error);
  Image image;
  image.dtype = info.dtype;
  allocate(path, info.shape, bytes.size(), image);
  unsigned char* into = image.pixels.data();
  const std::size_t size = size_of(image.dtype);
  for (uint32_t i = 0; i < info.shape[0]; ++i) {
    // Boxes may differ from the code stream once it is decoded.
    if (i >= decoder.image->numcomps || decoder.image->comps[i].data == nullptr ||
        decoder.image->comps[i].w != info.shape[3] || decoder.image->comps[i].h != info.shape[2])
      fail_jpeg2000(path, "a channel is missing");
    const int32_t* from = decoder.image->comps[i].data;
    for (int64_t n = 0; n < info.shape[2] * info.shape[3]; ++n, ++from, into += size)
      std::memcpy(into, from, size);  // the low bytes come first
  }
  return image;
}

namespace {

bool is_jpeg2000(const std::string& head, const std::string&) {
  return head.compare(0, 12, kBoxes, 12) == 0 || head.compare(0, 4, kStream, 4) == 0;
}

std::unique_ptr<ImageReader> open_jpeg2000(const std::string& path, const Selection& selection) {
  const auto bytes = std::make_shared<std::string>(read_input(path));
  Jpeg2000Decoder decoder;
  const ImageInfo info = open_decoder(path, *bytes, decoder);
  return std::make_unique<WholeReader>(
      path, info, selection, [path, bytes] { return decode_jpeg2000(path, *bytes); });
}

const bool jpeg2000_is_known = add_format("jpeg2000", [](Format& jpeg2000) {
  jpeg2000.title = "JPEG 2000";
  jpeg2000.rank = 75;
  jpeg2000.endings = {".jp2", ".j2k"};
  jpeg2000.media_type = "image/jp2";
  jpeg2000.probe = is_jpeg2000;
  jpeg2000.open = open_jpeg2000;
});

}  // namespace

}  // namespace cytra::io
