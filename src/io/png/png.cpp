#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

#include <png.h>

#include "base/error.h"
#include "io/input_file.h"
#include "io/pixels/format.h"
#include "io/pixels/stored.h"
#include "io/png/plain.h"
#include "io/png/write.h"

// libpng reports errors by longjmp, which must not cross a frame that owns anything: objects that
// live longer are in Coder, and the functions that call setjmp have no locals with a destructor.
namespace cytra::io {
namespace {

struct Coder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string_view file;
  std::size_t position = 0;
  char error[200] = "";
  std::vector<unsigned char> pixels;  // interleaved
  std::vector<png_bytep> rows;
  uint32_t width = 0, height = 0;
  int depth = 8, colour = PNG_COLOR_TYPE_GRAY, samples = 1;
  bool is_plain = false;  // decode_plain_png() may take it

  ~Coder() { png_destroy_read_struct(&png, &info, nullptr); }
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

bool read_png_header(Coder& coder) {
  coder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &coder, keep_png_error, drop_warning);
  if (coder.png == nullptr || (coder.info = png_create_info_struct(coder.png)) == nullptr)
    throw std::bad_alloc();
  if (setjmp(png_jmpbuf(coder.png)) != 0) return false;
  png_set_read_fn(coder.png, &coder, read_png_bytes);
  // Only what the pixels need: texts and profiles of a small file can take gigabytes.
  png_set_keep_unknown_chunks(coder.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(coder.png, coder.info);
  int interlace = 0;
  png_get_IHDR(coder.png,
               coder.info,
               &coder.width,
               &coder.height,
               &coder.depth,
               &coder.colour,
               &interlace,
               nullptr,
               nullptr);
  coder.is_plain = coder.depth >= 8 && interlace == PNG_INTERLACE_NONE &&
                   (coder.colour == PNG_COLOR_TYPE_GRAY || coder.colour == PNG_COLOR_TYPE_RGB);
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

/// Reads as many rows as coder.rows has; not for interlaced files.
bool read_next_rows(Coder& coder) {
  if (setjmp(png_jmpbuf(coder.png)) != 0) return false;
  png_read_rows(coder.png, coder.rows.data(), nullptr, static_cast<png_uint_32>(coder.rows.size()));
  return true;
}

bool read_png_end(Coder& coder) {
  if (setjmp(png_jmpbuf(coder.png)) != 0) return false;
  png_read_end(coder.png, nullptr);
  return true;
}

[[noreturn]] void fail_png(const std::string& path, const Coder& coder) {
  throw DataError(
      "{}: the PNG can't be decoded ({}), expected a complete file; the file may be truncated or "
      "damaged: copy or save it again",
      path,
      coder.error);
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
  if (coder.is_plain && decode_plain_png(coder.file, image)) return image;
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

/// Reads a file that is not interlaced, from the first row to the last.
class PngRows {
 public:
  PngRows(const std::string& path, const std::string& bytes) : path_(path) {
    coder_.file = bytes;
    info_of_png(path, coder_);
  }
  int64_t next() const { return next_; }
  /// Reads rows; those before `row` are skipped. `planes`: the place of each of `channels`.
  void read(int64_t row,
            int64_t count,
            int64_t x,
            int64_t width,
            const std::vector<int64_t>& channels,
            std::vector<unsigned char*> planes) {
    const std::size_t bytes = coder_.row_bytes();
    const auto most = std::max<int64_t>(1, static_cast<int64_t>(kRead / bytes));
    const StoredType type{'u', coder_.depth, false};
    const auto pixel = static_cast<std::ptrdiff_t>(type.size()) * coder_.samples;
    for (int64_t some; next_ < row + count; next_ += some) {
      const bool is_wanted = next_ >= row;
      some = std::min(most, (is_wanted ? row + count : row) - next_);
      coder_.pixels.resize(static_cast<std::size_t>(some) * bytes);
      coder_.rows.resize(static_cast<std::size_t>(some));
      for (std::size_t i = 0; i < coder_.rows.size(); ++i)
        coder_.rows[i] = coder_.pixels.data() + i * bytes;
      if (!read_next_rows(coder_)) fail_png(path_, coder_);
      for (int64_t i = 0; is_wanted && i < some; ++i) {
        for (std::size_t c = 0; c < channels.size(); ++c) {
          const unsigned char* from = coder_.rows[static_cast<std::size_t>(i)] + x * pixel +
                                      channels[c] * static_cast<std::ptrdiff_t>(type.size());
          convert(path_, type, from, pixel, width, planes[c]);
          planes[c] += static_cast<std::size_t>(width) * type.size();
        }
      }
    }
    if (next_ == int64_t{coder_.height} && !read_png_end(coder_)) fail_png(path_, coder_);
  }

 private:
  static constexpr std::size_t kRead = std::size_t{1} << 20;
  const std::string& path_;
  Coder coder_;
  int64_t next_ = 0;
};

/// Reads a large PNG row by row, or all of it at once.
class LargePng final : public ImageReader {
 public:
  LargePng(const std::string& path,
           std::string bytes,
           const ImageInfo& info,
           const Selection& selection)
      : path_(path), bytes_(std::move(bytes)) {
    info_ = info;
    chosen_ = select(path_, selection, info_);
  }

  Image read(const Region& region) const override {
    const Region part = within(region, info_.shape, path_);
    if (part.size[1] == info_.shape[2]) {
      PngRows rows(path_, bytes_);
      return read_from(rows, part);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!kept_.pixels.empty()) return crop(kept_, part, path_);
    if (rows_ == nullptr || rows_->next() > part.begin[1]) {
      rows_ = std::make_unique<PngRows>(path_, bytes_);
      if (++begins_ > kMostBegins) {
        kept_ = read_from(*rows_, within({}, info_.shape, path_));
        rows_.reset();
        return crop(kept_, part, path_);
      }
    }
    return read_from(*rows_, part);
  }

 private:
  Image read_from(PngRows& rows, const Region& part) const {
    Image image = allocate_part(path_, info_, part, bytes_.size());
    rows.read(part.begin[1],
              part.size[1],
              part.begin[2],
              part.size[2],
              chosen_.channels,
              channels_of(image));
    return image;
  }

  static constexpr int kMostBegins = 8;
  std::string path_, bytes_;
  Chosen chosen_;
  mutable std::mutex mutex_;  // guards the members below
  mutable std::unique_ptr<PngRows> rows_;
  mutable Image kept_;  // for callers that go back and forth
  mutable int begins_ = 0;
};

bool is_png(const std::string& head, const std::string&) {
  return head.compare(0, 4, "\x89PNG") == 0;
}

std::unique_ptr<ImageReader> open_png(const std::string& path, const Selection& selection) {
  constexpr std::size_t kLarge = std::size_t{64} << 20;
  std::string bytes = read_input(path);
  Coder coder;
  coder.file = bytes;
  const ImageInfo info = info_of_png(path, coder);
  const bool is_by_row = png_get_interlace_type(coder.png, coder.info) == PNG_INTERLACE_NONE;
  if (is_by_row && coder.height * coder.row_bytes() > kLarge)
    return std::make_unique<LargePng>(path, std::move(bytes), info, selection);
  const auto kept = std::make_shared<std::string>(std::move(bytes));
  return std::make_unique<WholeReader>(
      path, info, selection, [path, kept] { return decode_png(path, *kept); });
}

const bool png_is_known = add_format("png", [](Format& png) {
  png.title = "PNG";
  png.rank = 65;
  png.endings = png.written_endings = {".png"};
  png.media_type = "image/png";
  png.probe = is_png;
  png.open = open_png;
  png.create = create_png;
  png.fits = fits_png;
  png.holds = "one plane of uint8 or uint16";
});

}  // namespace

}  // namespace cytra::io
