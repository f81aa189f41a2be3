#include "io/png.h"

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <png.h>

#include "base/error.h"
#include "base/files.h"
#include "io/format.h"
#include "io/input_file.h"

// libpng reports errors by longjmp, which must not cross a frame that owns anything: what lives
// longer is in Coder, and the functions that call setjmp have no locals with a destructor.
namespace cytra::io {
namespace {

struct Coder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  bool is_reading = true;
  std::string_view file;  // that is read
  std::string bytes;      // that are written
  std::size_t position = 0;
  char error[200] = "";
  std::vector<unsigned char> pixels;  // interleaved
  std::vector<png_bytep> rows;
  uint32_t width = 0, height = 0;
  int depth = 8, colour = PNG_COLOR_TYPE_GRAY, samples = 1;

  ~Coder() {
    if (is_reading) {
      png_destroy_read_struct(&png, &info, nullptr);
    } else {
      png_destroy_write_struct(&png, &info);
    }
  }
  std::size_t row_bytes() const {
    return std::size_t{width} * static_cast<std::size_t>(samples * depth / 8);
  }
  void place_rows() {
    rows.resize(height);
    for (std::size_t y = 0; y < height; ++y) rows[y] = pixels.data() + y * row_bytes();
  }
};

void keep_png_error(png_structp png, png_const_charp message) {
  auto& coder = *static_cast<Coder*>(png_get_error_ptr(png));
  std::strncpy(coder.error, message, sizeof coder.error - 1);
  png_longjmp(png, 1);
}
void drop_warning(png_structp, png_const_charp) {}

void read_png_bytes(png_structp png, png_bytep into, std::size_t count) {
  auto& coder = *static_cast<Coder*>(png_get_io_ptr(png));
  if (count > coder.file.size() - coder.position) png_error(png, "the file ends too early");
  std::memcpy(into, coder.file.data() + coder.position, count);
  coder.position += count;
}

void write_bytes(png_structp png, png_bytep from, std::size_t count) {
  bool has_memory = true;
  try {
    static_cast<Coder*>(png_get_io_ptr(png))
        ->bytes.append(reinterpret_cast<const char*>(from), count);
  } catch (const std::bad_alloc&) {
    has_memory = false;
  }
  if (!has_memory) png_error(png, "out of memory");
}
void flush_bytes(png_structp) {}

bool read_png_header(Coder& coder) {
  coder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &coder, keep_png_error, drop_warning);
  if (coder.png == nullptr || (coder.info = png_create_info_struct(coder.png)) == nullptr)
    throw std::bad_alloc();
  if (setjmp(png_jmpbuf(coder.png)) != 0) return false;
  png_set_read_fn(coder.png, &coder, read_png_bytes);
  // Only what the pixels need: texts and profiles of a small file can take gigabytes.
  png_set_keep_unknown_chunks(coder.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(coder.png, coder.info);
  png_get_IHDR(coder.png,
               coder.info,
               &coder.width,
               &coder.height,
               &coder.depth,
               &coder.colour,
               nullptr,
               nullptr,
               nullptr);
  png_set_packing(coder.png);                      // 1, 2 and 4 bit to bytes, values as they are
  if (coder.depth == 16) png_set_swap(coder.png);  // from big-endian
  if ((coder.colour & PNG_COLOR_MASK_ALPHA) != 0) png_set_strip_alpha(coder.png);
  png_set_interlace_handling(coder.png);
  png_read_update_info(coder.png, coder.info);
  coder.samples = png_get_channels(coder.png, coder.info);
  coder.depth = png_get_bit_depth(coder.png, coder.info);
  return png_get_rowbytes(coder.png, coder.info) == coder.row_bytes();
}

bool read_png_rows(Coder& coder) {
  if (setjmp(png_jmpbuf(coder.png)) != 0) return false;
  png_read_image(coder.png, coder.rows.data());
  png_read_end(coder.png, nullptr);
  return true;
}

bool begin_png(Coder& coder) {
  coder.is_reading = false;
  coder.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &coder, keep_png_error, drop_warning);
  if (coder.png == nullptr || (coder.info = png_create_info_struct(coder.png)) == nullptr)
    throw std::bad_alloc();
  if (setjmp(png_jmpbuf(coder.png)) != 0) return false;
  png_set_write_fn(coder.png, &coder, write_bytes, flush_bytes);
  png_set_IHDR(coder.png,
               coder.info,
               coder.width,
               coder.height,
               coder.depth,
               coder.colour,
               PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(coder.png, coder.info);
  if (coder.depth == 16) png_set_swap(coder.png);
  return true;
}

bool write_png_rows(Coder& coder) {
  if (setjmp(png_jmpbuf(coder.png)) != 0) return false;
  png_write_rows(coder.png, coder.rows.data(), static_cast<png_uint_32>(coder.rows.size()));
  return true;
}

bool end_png(Coder& coder) {
  if (setjmp(png_jmpbuf(coder.png)) != 0) return false;
  png_write_end(coder.png, nullptr);
  return true;
}

/// Bytes of a PNG file, row by row.
class PngEncoder {
 public:
  explicit PngEncoder(const ImageInfo& info) {
    coder_.width = static_cast<uint32_t>(info.shape[3]);
    coder_.height = static_cast<uint32_t>(info.shape[2]);
    coder_.depth = info.dtype == Dtype::u16 ? 16 : 8;
    coder_.samples = static_cast<int>(info.shape[0]);
    coder_.colour = info.shape[0] == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY;
    check(begin_png(coder_));
  }
  void add(const Image& rows) {
    const auto height = static_cast<std::size_t>(rows.shape[2]);
    coder_.pixels.resize(height * coder_.row_bytes());
    const std::size_t size = size_of(rows.dtype),
                      samples = static_cast<std::size_t>(coder_.samples),
                      count = rows.pixels.size() / size / samples;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t s = 0; s < samples; ++s) {
        std::memcpy(coder_.pixels.data() + (i * samples + s) * size,
                    rows.pixels.data() + (s * count + i) * size,
                    size);
      }
    }
    coder_.rows.resize(height);
    for (std::size_t y = 0; y < height; ++y)
      coder_.rows[y] = coder_.pixels.data() + y * coder_.row_bytes();
    check(write_png_rows(coder_));
  }
  void end() { check(end_png(coder_)); }
  /// What has come since the last time.
  std::string take() { return std::exchange(coder_.bytes, {}); }

 private:
  void check(bool is_done) const {
    if (!is_done) throw IoError(std::string("a PNG can't be made: ") + coder_.error);
  }
  Coder coder_;
};

class PngWriter final : public ImageWriter {
 public:
  PngWriter(const std::string& path, const ImageInfo& info)
      : ImageWriter(path, info), encoder_(info), file_(path) {}

 private:
  void put(int64_t, const Image& rows) override {
    encoder_.add(rows);
    file_.write(encoder_.take());
  }
  void close() override {
    encoder_.end();
    file_.write(encoder_.take());
    file_.commit();
  }
  PngEncoder encoder_;
  AtomicFile file_;
};

bool fits_png(const ImageInfo& info) {
  return info.shape[1] == 1 && (info.shape[0] == 1 || info.shape[0] == 3) &&
         (info.dtype == Dtype::u8 || info.dtype == Dtype::u16);
}

std::unique_ptr<ImageWriter> create_png(const std::string& path,
                                        const ImageInfo& info,
                                        const OutputOptions&) {
  constexpr int64_t kLongest = 1'000'000;  // libpng's limit
  if (!fits_png(info) || std::max(info.shape[2], info.shape[3]) > kLongest) {
    throw DataError(
        fmt::format("{}: {} x {} x {} x {} (C, Z, Y, X) pixels of {}, expected of a PNG one plane "
                    "of one or three "
                    "channels, uint8 or uint16, at most {} a side; choose OME-TIFF",
                    path,
                    info.shape[0],
                    info.shape[1],
                    info.shape[2],
                    info.shape[3],
                    name_of(info.dtype),
                    kLongest));
  }
  return std::make_unique<PngWriter>(path, info);
}
const bool png_is_written = add_output({".png"}, create_png);

[[noreturn]] void fail_png(const std::string& path, const Coder& coder) {
  throw DataError(fmt::format(
      "{}: the PNG can't be decoded ({}), expected a complete file; the file may be truncated or "
      "damaged: copy or save it again",
      path,
      coder.error));
}

ImageInfo info_of_png(const std::string& path, Coder& coder) {
  if (!read_png_header(coder)) fail_png(path, coder);
  ImageInfo info;
  info.dtype = coder.depth == 16 ? Dtype::u16 : Dtype::u8;
  info.shape = {coder.samples, 1, coder.height, coder.width};
  check_shape(path, info.shape, info.dtype, coder.file.size());
  return info;
}

Image decode_png(const std::string& path, const std::string& bytes) {
  Coder coder;
  coder.file = bytes;
  const ImageInfo info = info_of_png(path, coder);
  Image image;
  image.dtype = info.dtype;
  allocate(path, info.shape, coder.file.size(), image);
  coder.pixels.resize(image.pixels.size());
  coder.place_rows();
  if (!read_png_rows(coder)) fail_png(path, coder);
  if (coder.samples == 1) {
    image.pixels.swap(coder.pixels);
  } else {
    deinterleave(coder.pixels.data(),
                 int64_t{coder.height} * coder.width,
                 size_of(image.dtype),
                 channels_of(image));
  }
  return image;
}

}  // namespace

bool is_png(const std::string& head, const std::string&) {
  return head.compare(0, 4, "\x89PNG") == 0;
}

std::unique_ptr<ImageReader> open_png(const std::string& path, const Selection& selection) {
  const auto bytes = std::make_shared<std::string>(read_input(path));
  Coder coder;
  coder.file = *bytes;
  const ImageInfo info = info_of_png(path, coder);
  return std::make_unique<WholeReader>(
      path, info, selection, [path, bytes] { return decode_png(path, *bytes); });
}

std::string encode_png(const Image& image) {
  const ImageInfo info = writable_info(image);
  if (!fits_png(info)) throw std::logic_error("a PNG holds a 2D image of 8 or 16 bit, grey or RGB");
  PngEncoder encoder(info);
  encoder.add(image);
  encoder.end();
  return encoder.take();
}

void write_png(const std::string& path, const Image& image) {
  write_file(path, encode_png(image));
}

}  // namespace cytra::io
