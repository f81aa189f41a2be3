#include <algorithm>
#include <atomic>
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it
#include <iterator>

#include <jpeglib.h>
// after jpeglib.h
#include <jerror.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/log.h"
#include "io/input_file.h"
#include "io/pixels/format.h"

// libjpeg reports errors by longjmp; as in png.cpp, objects that live longer are in JpegDecoder,
// and the functions that call setjmp have no locals with a destructor.
namespace cytra::io {
namespace {

// A small file can hold scan upon scan, each over all pixels.
constexpr int kMostScans = 100;

struct JpegDecoder {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf jump{};
  char error[JMSG_LENGTH_MAX] = "";
  std::vector<unsigned char> row;
  std::vector<unsigned char*> planes;
  ~JpegDecoder() { jpeg_destroy_decompress(&jpeg); }
};

[[noreturn]] void stop(j_common_ptr jpeg) {
  auto& decoder = *static_cast<JpegDecoder*>(jpeg->client_data);
  if (decoder.error[0] == '\0') jpeg->err->format_message(jpeg, decoder.error);
  std::longjmp(decoder.jump, 1);
}
/// Handles warnings. For damaged data libjpeg warns (-1) and invents pixels. Other warnings do no
/// harm.
void on_message(j_common_ptr jpeg, int level) {
  constexpr int kDamages[] = {
      JWRN_ARITH_BAD_CODE, JWRN_HIT_MARKER, JWRN_HUFF_BAD_CODE, JWRN_JPEG_EOF, JWRN_MUST_RESYNC};
  const bool is_damage = std::find(std::begin(kDamages), std::end(kDamages), jpeg->err->msg_code) !=
                         std::end(kDamages);
  if (level < 0 && is_damage) stop(jpeg);
}
void watch(j_common_ptr jpeg) {
  auto& decoder = *static_cast<JpegDecoder*>(jpeg->client_data);
  if (decoder.jpeg.input_scan_number <= kMostScans) return;
  std::snprintf(decoder.error, sizeof decoder.error, "more than %d scans", kMostScans);
  stop(jpeg);
}

bool read_jpeg_header(JpegDecoder& decoder, const std::string& bytes) {
  auto& jpeg = decoder.jpeg;
  jpeg.err = jpeg_std_error(&decoder.errors);
  decoder.errors.error_exit = stop;
  decoder.errors.emit_message = on_message;
  decoder.errors.output_message = [](j_common_ptr) {};
  jpeg.client_data = &decoder;
  if (setjmp(decoder.jump) != 0) return false;
  jpeg_create_decompress(&jpeg);
  decoder.progress.progress_monitor = watch;
  jpeg.progress = &decoder.progress;
  jpeg_mem_src(&jpeg,
               reinterpret_cast<const unsigned char*>(bytes.data()),
               static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&jpeg, TRUE);
  if (jpeg.jpeg_color_space == JCS_YCbCr) jpeg.out_color_space = JCS_RGB;
  jpeg_calc_output_dimensions(&jpeg);
  return true;
}

bool read_jpeg_rows(JpegDecoder& decoder) {
  auto& jpeg = decoder.jpeg;
  if (setjmp(decoder.jump) != 0) return false;
  jpeg_start_decompress(&jpeg);
  while (jpeg.output_scanline < jpeg.output_height) {
    unsigned char* row = decoder.row.data();
    jpeg_read_scanlines(&jpeg, &row, 1);
    deinterleave(row, jpeg.output_width, 1, decoder.planes);
    for (unsigned char*& plane : decoder.planes) plane += jpeg.output_width;
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

[[noreturn]] void fail_jpeg(const std::string& path, const JpegDecoder& decoder) {
  throw DataError(
      "{}: the JPEG can't be decoded ({}), expected a complete file; the file may be truncated or "
      "damaged: copy or save it again",
      path,
      decoder.error);
}

ImageInfo info_of_jpeg(const std::string& path, const std::string& bytes, JpegDecoder& decoder) {
  if (!read_jpeg_header(decoder, bytes)) fail_jpeg(path, decoder);
  const auto& jpeg = decoder.jpeg;
  if (jpeg.num_components == 4) {  // and mostly inverted; a profile says which colours they are
    throw DataError(
        "{}: a JPEG in colours of print (CMYK), expected grey or RGB; convert it with "
        "ImageMagick: magick {} -colorspace sRGB {}",
        path,
        shell_quote(path),
        shell_quote(path.substr(0, path.rfind('.')) + ".png"));
  }
  ImageInfo info;
  info.shape = {jpeg.output_components, 1, jpeg.output_height, jpeg.output_width};
  // With several scans libjpeg keeps all coefficients, of 16 bit. Each block of 8 x 8 takes a bit.
  const std::size_t needed = check_shape(path, info.shape, info.dtype, bytes.size());
  if (needed / 1024 > bytes.size() || !is_plausible(needed * 3, bytes.size())) {
    throw DataError(
        "{}: {} x {} pixels are not plausible for a JPEG of {} bytes, expected a bit per 64 of "
        "them; the file may be damaged",
        path,
        jpeg.output_height,
        jpeg.output_width,
        bytes.size());
  }
  return info;
}

Image decode_jpeg(const std::string& path, const std::string& bytes) {
  JpegDecoder decoder;
  const ImageInfo info = info_of_jpeg(path, bytes, decoder);
  Image image;
  allocate(path, info.shape, bytes.size(), image);
  decoder.row.resize(static_cast<std::size_t>(info.shape[3] * info.shape[0]));
  decoder.planes = channels_of(image);
  if (!read_jpeg_rows(decoder)) fail_jpeg(path, decoder);
  return image;
}

/// The orientation of EXIF, 1 (as stored) to 8; 1 where it says none. Source: EXIF 2.32, 4.6.
int orientation_of(std::string_view jpeg) {
  const auto byte = [](std::string_view from, std::size_t at) {
    return at < from.size() ? static_cast<unsigned char>(from[at]) : std::size_t{0};
  };
  for (std::size_t at = 2; byte(jpeg, at) == 0xff && byte(jpeg, at + 1) >= 0xe0;) {
    const std::size_t length = byte(jpeg, at + 2) << 8 | byte(jpeg, at + 3);
    const std::string_view part =
        jpeg.substr(std::min(at + 4, jpeg.size()), std::max<std::size_t>(length, 2) - 2);
    at += 2 + length;
    if (!part.starts_with(std::string_view("Exif\0\0", 6))) continue;
    const std::string_view tiff = part.substr(6);
    const bool is_little = tiff.starts_with("II");
    const auto number = [&](std::size_t place) {
      const std::size_t one = byte(tiff, place), two = byte(tiff, place + 1);
      return is_little ? two << 8 | one : one << 8 | two;
    };
    const std::size_t entries = number(is_little ? 4 : 6);
    for (std::size_t i = 0; i < number(entries); ++i)
      if (number(entries + 2 + 12 * i) == 0x112)
        return static_cast<int>(number(entries + 10 + 12 * i));
  }
  return 1;
}

bool is_jpeg(const std::string& head, const std::string&) {
  return head.compare(0, 3, "\xff\xd8\xff") == 0;
}

std::unique_ptr<ImageReader> open_jpeg(const std::string& path, const Selection& selection) {
  const auto bytes = std::make_shared<std::string>(read_input(path));
  JpegDecoder decoder;
  const ImageInfo info = info_of_jpeg(path, *bytes, decoder);
  static std::atomic<bool> is_told = false;
  if (orientation_of(*bytes) > 1 && !is_told.exchange(true)) {
    log::warn(
        "{}: its EXIF says that it is shown turned; rows and columns are taken as stored, as by "
        "Pillow and tifffile, of other photographs, too",
        path);
  }
  return std::make_unique<WholeReader>(
      path, info, selection, [path, bytes] { return decode_jpeg(path, *bytes); });
}

const bool jpeg_is_known = add_format("jpeg", [](Format& jpeg) {
  jpeg.title = "JPEG";
  jpeg.rank = 70;
  jpeg.endings = {".jpg", ".jpeg"};
  jpeg.media_type = "image/jpeg";
  jpeg.probe = is_jpeg;
  jpeg.open = open_jpeg;
  jpeg.written_as = "png";
});

}  // namespace

}  // namespace cytra::io
