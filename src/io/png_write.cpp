#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <png.h>

#include "base/error.h"
#include "base/files.h"
#include "io/format.h"
#include "io/png.h"

// As png.cpp: what lives longer than a longjmp is in PngSink.
namespace cytra::io {
namespace {

struct PngSink {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string bytes;
  char error[200] = "";
  std::vector<unsigned char> pixels;  // interleaved
  std::vector<png_bytep> rows;
  uint32_t width = 0, height = 0;
  int depth = 8, colour = PNG_COLOR_TYPE_GRAY, samples = 1;

  ~PngSink() { png_destroy_write_struct(&png, &info); }
  std::size_t row_bytes() const {
    return std::size_t{width} * static_cast<std::size_t>(samples * depth / 8);
  }
};

void keep_sink_error(png_structp png, png_const_charp message) {
  auto& sink = *static_cast<PngSink*>(png_get_error_ptr(png));
  std::strncpy(sink.error, message, sizeof sink.error - 1);
  png_longjmp(png, 1);
}
void drop_sink_warning(png_structp, png_const_charp) {}

void write_bytes(png_structp png, png_bytep from, std::size_t count) {
  bool has_memory = true;
  try {
    static_cast<PngSink*>(png_get_io_ptr(png))
        ->bytes.append(reinterpret_cast<const char*>(from), count);
  } catch (const std::bad_alloc&) {
    has_memory = false;
  }
  if (!has_memory) png_error(png, "out of memory");
}
void flush_bytes(png_structp) {}

bool begin_png(PngSink& sink) {
  sink.png =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, &sink, keep_sink_error, drop_sink_warning);
  if (sink.png == nullptr || (sink.info = png_create_info_struct(sink.png)) == nullptr)
    throw std::bad_alloc();
  if (setjmp(png_jmpbuf(sink.png)) != 0) return false;
  png_set_write_fn(sink.png, &sink, write_bytes, flush_bytes);
  png_set_compression_level(sink.png, 3);  // a photograph: 3 times as fast as 6, 11 % larger
  png_set_IHDR(sink.png,
               sink.info,
               sink.width,
               sink.height,
               sink.depth,
               sink.colour,
               PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(sink.png, sink.info);
  if (sink.depth == 16) png_set_swap(sink.png);
  return true;
}

bool write_png_rows(PngSink& sink) {
  if (setjmp(png_jmpbuf(sink.png)) != 0) return false;
  png_write_rows(sink.png, sink.rows.data(), static_cast<png_uint_32>(sink.rows.size()));
  return true;
}

bool end_png(PngSink& sink) {
  if (setjmp(png_jmpbuf(sink.png)) != 0) return false;
  png_write_end(sink.png, nullptr);
  return true;
}

/// Bytes of a PNG file, row by row.
class PngEnsink {
 public:
  explicit PngEnsink(const ImageInfo& info) {
    sink_.width = static_cast<uint32_t>(info.shape[3]);
    sink_.height = static_cast<uint32_t>(info.shape[2]);
    sink_.depth = info.dtype == Dtype::u16 ? 16 : 8;
    sink_.samples = static_cast<int>(info.shape[0]);
    sink_.colour = info.shape[0] == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY;
    check(begin_png(sink_));
  }
  void add(const Image& rows) {
    const auto height = static_cast<std::size_t>(rows.shape[2]);
    sink_.pixels.resize(height * sink_.row_bytes());
    const std::size_t size = size_of(rows.dtype), samples = static_cast<std::size_t>(sink_.samples),
                      count = rows.pixels.size() / size / samples;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t s = 0; s < samples; ++s) {
        std::memcpy(sink_.pixels.data() + (i * samples + s) * size,
                    rows.pixels.data() + (s * count + i) * size,
                    size);
      }
    }
    sink_.rows.resize(height);
    for (std::size_t y = 0; y < height; ++y)
      sink_.rows[y] = sink_.pixels.data() + y * sink_.row_bytes();
    check(write_png_rows(sink_));
  }
  void end() { check(end_png(sink_)); }
  /// What has come since the last time.
  std::string take() { return std::exchange(sink_.bytes, {}); }

 private:
  void check(bool is_done) const {
    if (!is_done) throw IoError(std::string("a PNG can't be made: ") + sink_.error);
  }
  PngSink sink_;
};

class PngWriter final : public ImageWriter {
 public:
  PngWriter(const std::string& path, const ImageInfo& info)
      : ImageWriter(path, info), ensink_(info), file_(path) {}

 private:
  void put(int64_t, const Image& rows) override {
    ensink_.add(rows);
    file_.write(ensink_.take());
  }
  void close() override {
    ensink_.end();
    file_.write(ensink_.take());
    file_.commit();
  }
  PngEnsink ensink_;
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

}  // namespace

std::string encode_png(const Image& image) {
  const ImageInfo info = writable_info(image);
  if (!fits_png(info)) throw std::logic_error("a PNG holds a 2D image of 8 or 16 bit, grey or RGB");
  PngEnsink ensink(info);
  ensink.add(image);
  ensink.end();
  return ensink.take();
}

void write_png(const std::string& path, const Image& image) {
  write_file(path, encode_png(image));
}

}  // namespace cytra::io
