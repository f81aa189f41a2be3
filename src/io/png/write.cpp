#include "io/png/write.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

#include "base/error.h"
#include "base/files.h"
#include "io/pixels/format.h"

// libpng and zlib are not used: filters that vectorize, and ISA-L's deflate, take a photograph to
// 95 % of what zlib's level 3 makes of it in a tenth of its time.
namespace cytra::io {
namespace {

void put_big_endian(std::string& file, std::size_t value) {
  for (int bits = 24; bits >= 0; bits -= 8) file.push_back(static_cast<char>(value >> bits));
}

void put_chunk(std::string& file, std::string_view name, std::string_view data) {
  put_big_endian(file, data.size());
  const std::size_t begin = file.size();
  file.append(name).append(data);
  const auto* summed = reinterpret_cast<const unsigned char*>(file.data()) + begin;
  put_big_endian(file, crc32_gzip_refl(0, summed, file.size() - begin));
}

/// Deflates bytes to IDAT chunks.
class PngDeflate {
 public:
  PngDeflate() : level_(ISAL_DEF_LVL1_DEFAULT), packed_(std::size_t{1} << 16) {
    isal_deflate_init(stream_.get());
    stream_->level = 1;
    stream_->level_buf = level_.data();
    stream_->level_buf_size = static_cast<uint32_t>(level_.size());
    stream_->gzip_flag = IGZIP_ZLIB;
  }
  void add(std::vector<unsigned char>& bytes, bool is_last, std::string& file) {
    stream_->next_in = bytes.data();
    stream_->avail_in = static_cast<uint32_t>(bytes.size());
    stream_->end_of_stream = is_last ? 1 : 0;
    do {
      stream_->next_out = packed_.data();
      stream_->avail_out = static_cast<uint32_t>(packed_.size());
      if (isal_deflate(stream_.get()) != COMP_OK)
        throw std::logic_error("ISA-L can't deflate the rows of a PNG");
      const std::size_t count = packed_.size() - stream_->avail_out;
      if (count > 0)
        put_chunk(file, "IDAT", {reinterpret_cast<const char*>(packed_.data()), count});
    } while (stream_->avail_out == 0);
  }

 private:
  std::unique_ptr<isal_zstream> stream_ = std::make_unique<isal_zstream>();
  std::vector<unsigned char> level_, packed_;
};

/// Filters the rows of a file's pixels, each by the filter with the smallest differences, as
/// libpng chooses. Paeth's, the slowest, would save 1 %.
class PngFilter {
 public:
  PngFilter(std::size_t row_bytes, std::size_t pixel_bytes)
      : bytes_(row_bytes), pixel_(pixel_bytes), row_(pixel_ + bytes_), above_(row_) {
    for (auto& differences : differences_) differences.resize(bytes_);
  }
  /// The place of the next row.
  unsigned char* row() { return row_.data() + pixel_; }
  void add_to(std::vector<unsigned char>& rows) {
    const unsigned char *at = row(), *left = row_.data(), *up = above_.data() + pixel_;
    const std::size_t count = bytes_;  // no member, which `out` might point to: it vectorizes
    const auto filter = [&](std::size_t number, const auto& predict) {
      unsigned char* out = differences_[number].data();
      uint32_t sum = 0;  // at most 128 of each of 6,000,000 bytes
      for (std::size_t i = 0; i < count; ++i) {
        out[i] = static_cast<unsigned char>(at[i] - predict(left[i], up[i]));
        sum += std::min<unsigned char>(out[i], static_cast<unsigned char>(-out[i]));
      }
      return sum;
    };
    const uint32_t sums[] = {filter(0, [](int, int) { return 0; }),
                             filter(1, [](int a, int) { return a; }),
                             filter(2, [](int, int b) { return b; }),
                             filter(3, [](int a, int b) { return (a + b) / 2; })};
    const auto best = static_cast<std::size_t>(std::min_element(sums, sums + 4) - sums);
    rows.push_back(static_cast<unsigned char>(best));
    rows.insert(rows.end(), differences_[best].begin(), differences_[best].end());
    row_.swap(above_);
  }

 private:
  const std::size_t bytes_, pixel_;
  std::vector<unsigned char> row_, above_;  // behind a pixel of zeros
  std::vector<unsigned char> differences_[4];
};

/// Makes the bytes of a PNG file, row by row.
class PngSink {
 public:
  explicit PngSink(const ImageInfo& info)
      : channels_(static_cast<std::size_t>(info.shape[0])),
        width_(static_cast<std::size_t>(info.shape[3])),
        size_(size_of(info.dtype)),
        filter_(width_ * channels_ * size_, channels_ * size_) {
    constexpr char kGrey = 0, kRgb = 2;
    std::string header;
    put_big_endian(header, width_);
    put_big_endian(header, static_cast<std::size_t>(info.shape[2]));
    header += {static_cast<char>(8 * size_), channels_ == 3 ? kRgb : kGrey, 0, 0, 0};
    file_ = "\x89PNG\r\n\x1a\n";
    put_chunk(file_, "IHDR", header);
  }
  void add(const Image& rows) {
    constexpr std::size_t kAtOnce = std::size_t{1} << 16;
    const auto height = static_cast<std::size_t>(rows.shape[2]);
    for (std::size_t y = 0; y < height; ++y) {
      for (std::size_t c = 0; c < channels_; ++c)
        place(rows.pixels.data() + (c * height + y) * width_ * size_, filter_.row() + c * size_);
      filter_.add_to(filtered_);
      if (filtered_.size() >= kAtOnce) deflate(false);
    }
  }
  void end() {
    deflate(true);
    put_chunk(file_, "IEND", {});
  }
  /// The bytes since the last call.
  std::string take() { return std::exchange(file_, {}); }

 private:
  /// Puts a channel's row among the others; the file's 16 bit are big-endian.
  void place(const unsigned char* from, unsigned char* into) const {
    const std::size_t width = width_, size = size_, step = channels_ * size;
    for (std::size_t b = 0; b < size; ++b) {
      for (std::size_t x = 0; x < width; ++x) into[x * step + b] = from[x * size + size - 1 - b];
    }
  }
  void deflate(bool is_last) {
    deflate_.add(filtered_, is_last, file_);
    filtered_.clear();
  }
  const std::size_t channels_, width_, size_;
  PngFilter filter_;
  PngDeflate deflate_;
  std::vector<unsigned char> filtered_;
  std::string file_;
};

class PngWriter final : public ImageWriter {
 public:
  PngWriter(const std::string& path, const ImageInfo& info)
      : ImageWriter(path, info), sink_(info), file_(path) {}

 private:
  void put(int64_t, const Image& rows) override {
    sink_.add(rows);
    file_.write(sink_.take());
  }
  void close() override {
    sink_.end();
    file_.write(sink_.take());
    file_.commit();
  }
  PngSink sink_;
  AtomicFile file_;
};

}  // namespace

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
        "{}: {} x {} x {} x {} (C, Z, Y, X) pixels of {}, expected of a PNG one plane of one or "
        "three channels, uint8 or uint16, at most {} a side; choose OME-TIFF",
        path,
        info.shape[0],
        info.shape[1],
        info.shape[2],
        info.shape[3],
        name_of(info.dtype),
        kLongest);
  }
  return std::make_unique<PngWriter>(path, info);
}

std::string encode_png(const Image& image) {
  const ImageInfo info = writable_info(image);
  if (!fits_png(info)) throw std::logic_error("a PNG holds a 2D image of 8 or 16 bit, grey or RGB");
  PngSink sink(info);
  sink.add(image);
  sink.end();
  return sink.take();
}

void write_png(const std::string& path, const Image& image) {
  write_file(path, encode_png(image));
}

}  // namespace cytra::io
