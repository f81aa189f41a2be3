#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "io/format.h"
#include "io/tiff_handle.h"
#include "io/tiff_layout.h"

namespace cytra::io {
namespace {

// libtiff refuses single allocations above this, so a damaged header can't ask for all memory.
constexpr tmsize_t kLargestBlock = tmsize_t{1} << 31;

int keep_error(TIFF*, void* data, const char* module, const char* format, va_list arguments) {
  const int error_number = errno;
  auto& messages = *static_cast<TiffMessages*>(data);
  if (!messages.error.empty()) return 1;
  char text[300];
  std::vsnprintf(text, sizeof text, format, arguments);
  messages.error = std::string(module == nullptr ? "" : module).substr(0, 60) + ": " + text;
  messages.error_number = error_number;
  return 1;
}

int note_warning(TIFF*, void* data, const char*, const char* format, va_list arguments) {
  char text[300];
  std::vsnprintf(text, sizeof text, format, arguments);
  if (std::strstr(text, "IO error") != nullptr) static_cast<TiffMessages*>(data)->lost_tag = true;
  return 1;
}

struct Page {
  uint64_t offset = 0;
  uint32_t width = 0, height = 0;
  uint32_t block_width = 0, block_height = 0;  // of a tile; of a strip: the page's width
  uint16_t bits = 1, format = SAMPLEFORMAT_UINT, samples = 1, planar = PLANARCONFIG_CONTIG;
  uint16_t photometric = PHOTOMETRIC_MINISBLACK, compression = COMPRESSION_NONE;

  bool same_as(const Page& other) const {
    return width == other.width && height == other.height && bits == other.bits &&
           format == other.format && samples == other.samples;
  }
};

class TiffReader {
 public:
  explicit TiffReader(const std::string& path) : path_(path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) throw_errno("can't be read", path, errno);
    struct stat status {};
    ::fstat(descriptor, &status);
    file_bytes_ = static_cast<uint64_t>(status.st_size);
    // m: no mapping, which a truncation by others would turn into SIGBUS
    tiff_ = open_tiff(descriptor, "rm", messages_);
    if (!tiff_) {
      ::close(descriptor);
      fail("can't be opened as TIFF", "a complete TIFF file");
    }
  }

  Image read() {
    read_directories();
    const Page first = pages_.front();
    Image image;
    image.dtype = dtype_of(first);
    TiffPages known;
    known.count = static_cast<int64_t>(pages_.size());
    known.width = first.width;
    known.height = first.height;
    known.samples = first.samples;
    known.x_per_unit = x_per_unit_;
    known.y_per_unit = y_per_unit_;
    const TiffLayout layout = tiff_layout(path_, description_, known);
    image.geometry = layout.geometry;
    const int64_t channels = layout.channels * first.samples;
    if (std::any_of(layout.channel_names.begin(),
                    layout.channel_names.end(),
                    [](auto& name) { return !name.empty(); }) &&
        static_cast<int64_t>(layout.channel_names.size()) == channels) {
      image.channel_names = layout.channel_names;
    }
    allocate(path_, {channels, layout.planes, first.height, first.width}, file_bytes_, image);
    const std::size_t plane_bytes = std::size_t{first.height} * first.width * size_of(image.dtype);
    std::vector<unsigned char*> planes(first.samples);
    for (std::size_t i = 0; i < layout.pages.size(); ++i) {
      const auto channel = static_cast<int64_t>(i) / layout.planes,
                 z = static_cast<int64_t>(i) % layout.planes;
      for (int64_t sample = 0; sample < first.samples; ++sample) {
        const int64_t plane = (channel * first.samples + sample) * layout.planes + z;
        planes[static_cast<std::size_t>(sample)] =
            image.pixels.data() + static_cast<std::size_t>(plane) * plane_bytes;
      }
      read_page(layout.pages[i], planes);
    }
    return image;
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& expected) const {
    const std::string place = page_ == 0 ? "" : fmt::format("page {}: ", page_);
    const std::string reason = messages_.error.empty() ? "" : " (" + messages_.error + ")";
    throw DataError(fmt::format(
        "{}: {}{}{}, expected {}; the file may be truncated or damaged: copy or save it again",
        path_,
        place,
        what,
        reason,
        expected));
  }
  [[noreturn]] void refuse(const std::string& what, const std::string& expected) const {
    throw DataError(fmt::format("{}: page {}: {}, expected {}; convert it, in ImageJ for example",
                                path_,
                                page_,
                                what,
                                expected));
  }

  template <class T>
  T tag(uint32_t name, T otherwise) {
    T value{};
    return TIFFGetField(tiff_.get(), name, &value) == 1 ? value : otherwise;
  }

  /// libtiff takes a directory that is cut off behind its last entry for the last one.
  void check_directory_end() {
    const uint64_t offset = TIFFCurrentDirOffset(tiff_.get());
    const bool is_big = TIFFIsBigTIFF(tiff_.get()) != 0;
    const int descriptor = TIFFFileno(tiff_.get());
    uint64_t entries = 0;
    for (int i = 0; i < (is_big ? 8 : 2); ++i) {
      unsigned char byte = 0;
      const int at = TIFFIsBigEndian(tiff_.get()) ? i : (is_big ? 7 : 1) - i;
      if (::pread(descriptor, &byte, 1, static_cast<off_t>(offset) + at) != 1)
        fail("its directory is cut off", "a complete file");
      entries = entries << 8 | byte;
    }
    const uint64_t bytes = is_big ? 16 + 20 * entries : 6 + 12 * entries;
    if (entries > UINT16_MAX || offset + bytes > file_bytes_)
      fail("its directory is cut off", "a complete file");
  }

  void read_directories() {
    do {
      if (page_++ > 0 && TIFFReadDirectory(tiff_.get()) != 1)
        fail("its directory can't be read", "a TIFF directory");
      if (messages_.lost_tag) fail("a tag lies beyond the end of the file", "a complete file");
      check_directory_end();
      const bool is_smaller_copy =
          (tag<uint32_t>(TIFFTAG_SUBFILETYPE, 0) & FILETYPE_REDUCEDIMAGE) != 0;
      if (is_smaller_copy && page_ > 1) continue;  // pyramid or thumbnail
      if (pages_.empty()) {
        const char* text = nullptr;
        if (TIFFGetField(tiff_.get(), TIFFTAG_IMAGEDESCRIPTION, &text) == 1 && text != nullptr)
          description_ = text;
        x_per_unit_ = static_cast<double>(tag<float>(TIFFTAG_XRESOLUTION, 0));
        y_per_unit_ = static_cast<double>(tag<float>(TIFFTAG_YRESOLUTION, 0));
      }
      pages_.push_back(describe());
    } while (TIFFLastDirectory(tiff_.get()) == 0);
  }

  Page describe() {
    Page page;
    TIFF* tiff = tiff_.get();
    page.offset = TIFFCurrentDirOffset(tiff);
    page.width = tag<uint32_t>(TIFFTAG_IMAGEWIDTH, 0);
    page.height = tag<uint32_t>(TIFFTAG_IMAGELENGTH, 0);
    if (page.width == 0 || page.height == 0) fail("has no pixels", "a width and a height");
    TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &page.bits);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &page.format);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &page.samples);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &page.planar);
    page.photometric = tag<uint16_t>(TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    page.compression = tag<uint16_t>(TIFFTAG_COMPRESSION, COMPRESSION_NONE);
    if (page.samples == 0) fail("has no samples", "at least one per pixel");
    const bool is_tiled = TIFFIsTiled(tiff) != 0;
    page.block_width = is_tiled ? tag<uint32_t>(TIFFTAG_TILEWIDTH, 0) : page.width;
    page.block_height = is_tiled ? tag<uint32_t>(TIFFTAG_TILELENGTH, 0)
                                 : tag<uint32_t>(TIFFTAG_ROWSPERSTRIP, page.height);
    if (!is_tiled) page.block_height = std::min(page.block_height, page.height);
    if (page.block_width == 0 || page.block_height == 0)
      fail("its tiles or strips have no size", "at least one pixel");
    if (tag<uint32_t>(TIFFTAG_IMAGEDEPTH, 1) > 1)
      refuse("a volume in one page", "a page per plane");
    return page;
  }

  Dtype dtype_of(const Page& page) {
    page_ = 1;
    if (TIFFIsCODECConfigured(page.compression) == 0) {
      refuse(fmt::format("compression {} is not supported", page.compression),
             "none, LZW, deflate, JPEG or zstd");
    }
    switch (page.photometric) {
      case PHOTOMETRIC_MINISWHITE:
      case PHOTOMETRIC_MINISBLACK:
      case PHOTOMETRIC_RGB:
      case PHOTOMETRIC_PALETTE:
        break;
      case PHOTOMETRIC_YCBCR:
        if (page.compression == COMPRESSION_JPEG) break;
        [[fallthrough]];
      default:
        refuse(fmt::format("colour model {}", page.photometric), "grey, RGB or separate channels");
    }
    constexpr const char* kExpected = "8, 16 or 32 bit integers or 32 or 64 bit floating point";
    const int kind = page.format == SAMPLEFORMAT_VOID ? SAMPLEFORMAT_UINT : page.format;
    const int key = kind * 100 + page.bits;
    constexpr int kUint = SAMPLEFORMAT_UINT * 100, kInt = SAMPLEFORMAT_INT * 100,
                  kFloat = SAMPLEFORMAT_IEEEFP * 100;
    constexpr std::pair<int, Dtype> kTypes[] = {{kUint + 8, Dtype::u8},
                                                {kInt + 8, Dtype::i8},
                                                {kUint + 16, Dtype::u16},
                                                {kInt + 16, Dtype::i16},
                                                {kUint + 32, Dtype::u32},
                                                {kInt + 32, Dtype::i32},
                                                {kFloat + 32, Dtype::f32},
                                                {kFloat + 64, Dtype::f64}};
    for (const auto& [known, dtype] : kTypes) {
      if (key == known) return dtype;
    }
    const char* name = kind == SAMPLEFORMAT_UINT     ? "unsigned integer"
                       : kind == SAMPLEFORMAT_INT    ? "signed integer"
                       : kind == SAMPLEFORMAT_IEEEFP ? "floating-point"
                                                     : "complex";
    refuse(fmt::format("{}-bit {} samples", page.bits, name), kExpected);
  }

  void read_page(std::size_t index, const std::vector<unsigned char*>& planes) {
    const Page& page = pages_[index];
    page_ = index + 1;
    if (!page.same_as(pages_.front())) {
      const Page& first = pages_.front();
      refuse(
          fmt::format(
              "{} x {} pixels of {} x {} bits", page.width, page.height, page.samples, page.bits),
          fmt::format("{} x {} of {} x {} as on page 1",
                      first.width,
                      first.height,
                      first.samples,
                      first.bits));
    }
    messages_.clear();
    if (TIFFSetSubDirectory(tiff_.get(), page.offset) != 1)
      fail("its directory can't be read", "a TIFF directory");
    messages_.clear();  // a private tag it can't read is no harm
    if (page.photometric == PHOTOMETRIC_YCBCR)
      TIFFSetField(tiff_.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    const bool is_separate = page.planar == PLANARCONFIG_SEPARATE;
    if (!is_separate) return read_blocks(page, 0, page.samples, planes);
    for (uint16_t sample = 0; sample < page.samples; ++sample)
      read_blocks(page, sample, 1, {planes[sample]});
  }

  /// Strips or tiles; each holds `samples` interleaved values per pixel, one for every plane.
  void read_blocks(const Page& page,
                   uint16_t sample,
                   uint16_t samples,
                   const std::vector<unsigned char*>& planes) {
    const std::size_t size = page.bits / 8, pixel = size * samples;
    const bool is_tiled = TIFFIsTiled(tiff_.get()) != 0, is_direct = !is_tiled && samples == 1;
    const uint64_t row_bytes = uint64_t{page.block_width} * pixel,
                   block_bytes = row_bytes * page.block_height;
    const auto claimed =
        is_tiled ? TIFFTileSize64(tiff_.get()) : TIFFVStripSize64(tiff_.get(), page.block_height);
    if (claimed != block_bytes || block_bytes > static_cast<uint64_t>(kLargestBlock) ||
        !is_plausible(block_bytes, file_bytes_)) {
      fail("its tiles or strips have no plausible size", "2 GiB at most");
    }
    std::vector<unsigned char> buffer;
    for (uint32_t y = 0; y < page.height; y += std::min(page.block_height, page.height - y)) {
      const uint32_t rows = std::min(page.block_height, page.height - y);
      for (uint32_t x = 0; x < page.width; x += std::min(page.block_width, page.width - x)) {
        const uint64_t bytes = is_tiled ? block_bytes : row_bytes * rows;
        if (buffer.size() < bytes && !is_direct) buffer.resize(bytes);
        unsigned char* into = is_direct ? planes[0] + std::size_t{y} * row_bytes : buffer.data();
        decode(sample, x, y, into, bytes);
        if (is_direct) continue;
        const uint32_t columns = std::min(page.block_width, page.width - x);
        std::vector<unsigned char*> at(planes);
        for (uint32_t row = 0; row < rows; ++row) {
          for (std::size_t i = 0; i < planes.size(); ++i)
            at[i] = planes[i] + (std::size_t{y + row} * page.width + x) * size;
          deinterleave(buffer.data() + row * row_bytes, columns, size, at);
        }
      }
    }
  }

  void decode(uint16_t sample, uint32_t x, uint32_t y, unsigned char* into, uint64_t bytes) {
    TIFF* tiff = tiff_.get();
    const auto wanted = static_cast<tmsize_t>(bytes);
    const bool is_tiled = TIFFIsTiled(tiff) != 0;
    const uint32_t block =
        is_tiled ? TIFFComputeTile(tiff, x, y, 0, sample) : TIFFComputeStrip(tiff, y, sample);
    const tmsize_t got = is_tiled ? TIFFReadEncodedTile(tiff, block, into, wanted)
                                  : TIFFReadEncodedStrip(tiff, block, into, wanted);
    // Some codecs report what is missing at the end and yet return the whole size.
    if (got != wanted || !messages_.error.empty()) {
      fail(fmt::format("{} {} can't be decoded", is_tiled ? "tile" : "strip", block),
           fmt::format("{} bytes of pixels", bytes));
    }
  }

  const std::string& path_;
  uint64_t file_bytes_ = 0;
  TiffMessages messages_;
  TiffHandle tiff_;
  std::vector<Page> pages_;
  std::size_t page_ = 0;  // that is worked on, from 1
  std::string description_;
  double x_per_unit_ = 0, y_per_unit_ = 0;
};

}  // namespace

TiffHandle open_tiff(int descriptor, const char* mode, TiffMessages& messages) {
  const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(),
                                                                             TIFFOpenOptionsFree);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kLargestBlock);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keep_error, &messages);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), note_warning, &messages);
  return TiffHandle(TIFFFdOpenExt(descriptor, "the file", mode, options.get()));
}

Image read_tiff(const std::string& path) {
  return TiffReader(path).read();
}

}  // namespace cytra::io
