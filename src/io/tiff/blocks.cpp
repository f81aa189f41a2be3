#include "io/tiff/blocks.h"

#include <algorithm>

#include <fmt/format.h>

#include "io/pixels/format.h"
#include "io/tiff/samples.h"

namespace cytra::io {
namespace {

constexpr std::size_t kKeptScratch = std::size_t{16} << 20;

uint64_t row_bytes_of(const TiffPage& page, uint16_t samples) {
  return (uint64_t{page.block_width} * samples * page.bits + 7) / 8;
}

class Blocks {
 public:
  Blocks(const TiffFile& file,
         const TiffPage& page,
         uint16_t sample,
         uint16_t samples,
         const TiffBox& box,
         const std::vector<TiffTarget>& targets,
         TiffFile::Handle& handle)
      : file_(file),
        page_(page),
        sample_(sample),
        samples_(samples),
        box_(box),
        targets_(targets),
        handle_(handle),
        row_bytes_(row_bytes_of(page, samples)),
        block_bytes_(row_bytes_ * page.block_height),
        is_deflate_(page.compression == COMPRESSION_ADOBE_DEFLATE ||
                    page.compression == COMPRESSION_DEFLATE) {}

  void read() {
    check_sizes();
    const int64_t height = page_.block_height, width = page_.block_width;
    const bool is_by_row = is_read_by_row(page_, samples_);
    const bool is_plain = is_by_row && has_plain_rows();
    const bool is_direct = !page_.is_tiled && samples_ == 1 && is_native(page_) && box_.x == 0 &&
                           box_.width == page_.width;
    for (int64_t y = box_.y / height * height; y < box_.y + box_.height; y += height) {
      const int64_t rows = std::min<int64_t>(height, page_.height - y);
      for (int64_t x = box_.x / width * width; x < box_.x + box_.width; x += width) {
        const uint32_t block = number(y, x);
        if (TIFFGetStrileByteCount(tiff(), block) == 0) continue;  // of a sparse file
        const uint64_t bytes =
            page_.is_tiled ? block_bytes_ : row_bytes_ * static_cast<uint64_t>(rows);
        if (is_plain) {
          read_rows(block, y, y + rows);
        } else if (is_by_row) {  // always: libtiff must not switch between the two ways
          decode_rows(y, y + rows);
        } else if (is_direct && y >= box_.y && y + rows <= box_.y + box_.height) {
          decode(block, bytes, place(page_, targets_[0], box_, y, 0));
        } else {
          if (handle_.scratch.size() < bytes) handle_.scratch.resize(bytes);
          clear_scratch(bytes);
          decode(block, bytes, handle_.scratch.data());
          for (int64_t row = std::max(y, box_.y); row < std::min(y + rows, box_.y + box_.height);
               ++row)
            take(handle_.scratch.data() + static_cast<std::size_t>(row - y) * row_bytes_, row, x);
        }
      }
    }
    if (handle_.scratch.size() > kKeptScratch) std::vector<unsigned char>().swap(handle_.scratch);
  }

 private:
  TIFF* tiff() const { return handle_.tiff.get(); }

  uint32_t number(int64_t y, int64_t x) const {
    const auto row = static_cast<uint32_t>(y);
    return page_.is_tiled ? TIFFComputeTile(tiff(), static_cast<uint32_t>(x), row, 0, sample_)
                          : TIFFComputeStrip(tiff(), row, sample_);
  }

  void check_sizes() const {
    const auto claimed =
        page_.is_tiled ? TIFFTileSize64(tiff()) : TIFFVStripSize64(tiff(), page_.block_height);
    // All blocks together are checked, too: each may be much larger than the page.
    const auto blocks = [](uint32_t side, uint32_t block) {
      return (uint64_t{side} + block - 1) / block;
    };
    uint64_t all_bytes = 0;
    const bool is_countable = !__builtin_mul_overflow(
        block_bytes_,
        blocks(page_.width, page_.block_width) * blocks(page_.height, page_.block_height),
        &all_bytes);
    if (claimed != block_bytes_ || block_bytes_ > static_cast<uint64_t>(kLargestTiffBlock) ||
        !is_countable || !is_plausible_ratio(all_bytes, file_.bytes())) {
      page_.fail(file_.path(), "its tiles or strips have no plausible size", "2 GiB at most");
    }
  }

  /// Clears the buffer, as libtiff may return a part of damaged deflate data without an error.
  void clear_scratch(uint64_t bytes) {
    if (is_deflate_) std::fill_n(handle_.scratch.begin(), bytes, static_cast<unsigned char>(0));
  }

  void decode(uint32_t block, uint64_t bytes, unsigned char* into) const {
    const auto wanted = static_cast<tmsize_t>(bytes);
    const tmsize_t got = page_.is_tiled ? TIFFReadEncodedTile(tiff(), block, into, wanted)
                                        : TIFFReadEncodedStrip(tiff(), block, into, wanted);
    // Some codecs report what is missing at the end and yet return the whole size.
    if (got != wanted || !handle_.messages.error.empty())
      fail(fmt::format("{} {}", page_.is_tiled ? "tile" : "strip", block), bytes);
  }

  /// Decodes rows `top` to `bottom` of a large strip, without memory for all of it.
  void decode_rows(int64_t top, int64_t bottom) {
    if (handle_.scratch.size() < row_bytes_) handle_.scratch.resize(row_bytes_);
    TiffFile::Handle::Cursor& cursor = handle_.cursor;
    const bool is_within = cursor.page == page_.offset && cursor.sample == sample_ &&
                           cursor.row > top && cursor.row <= box_.y;
    const int64_t begin = is_within ? cursor.row : top,
                  end = std::min(bottom, box_.y + box_.height);
    cursor = {};
    for (int64_t row = begin; row < end; ++row) {
      clear_scratch(row_bytes_);
      const int got =
          TIFFReadScanline(tiff(), handle_.scratch.data(), static_cast<uint32_t>(row), sample_);
      if (got != 1 || !handle_.messages.error.empty()) fail(fmt::format("row {}", row), row_bytes_);
      if (row >= box_.y) take(handle_.scratch.data(), row, 0);
    }
    if (end < bottom) cursor = {page_.offset, sample_, end};
  }

  /// Whether rows are in the file without compression.
  bool has_plain_rows() const {
    uint16_t order = FILLORDER_MSB2LSB;
    TIFFGetFieldDefaulted(tiff(), TIFFTAG_FILLORDER, &order);
    return page_.compression == COMPRESSION_NONE && !is_packed(page_) && order == FILLORDER_MSB2LSB;
  }

  void read_rows(uint32_t block, int64_t top, int64_t bottom) {
    const auto rows = std::max<int64_t>(1, static_cast<int64_t>(kRead / row_bytes_));
    const uint64_t begin = TIFFGetStrileOffset(tiff(), block),
                   wanted = row_bytes_ * static_cast<uint64_t>(bottom - top);
    if (TIFFGetStrileByteCount(tiff(), block) < wanted)
      fail(fmt::format("strip {}", block), wanted);
    const int64_t last = std::min(bottom, box_.y + box_.height);
    for (int64_t row = std::max(top, box_.y), some; row < last; row += some) {
      some = std::min(rows, last - row);
      const std::size_t bytes = static_cast<std::size_t>(some) * row_bytes_;
      if (handle_.scratch.size() < bytes) handle_.scratch.resize(bytes);
      const uint64_t offset = begin + static_cast<uint64_t>(row - top) * row_bytes_;
      if (file_.file().read_at(offset, handle_.scratch.data(), bytes) !=
          static_cast<int64_t>(bytes))
        fail(fmt::format("row {}", row), wanted);
      for (int64_t i = 0; i < some; ++i)
        take(handle_.scratch.data() + static_cast<std::size_t>(i) * row_bytes_,
             row + i,
             0,
             file_.is_swapped());
    }
  }

  /// Takes the box's part of a decoded row of the block that begins at `x`.
  void take(const unsigned char* from, int64_t row, int64_t x, bool is_swapped = false) const {
    const int64_t left = std::max(x, box_.x),
                  right = std::min(x + page_.block_width, box_.x + box_.width);
    for (const TiffTarget& target : targets_)
      take_samples(file_.path(),
                   page_,
                   from,
                   samples_,
                   target.sample,
                   left - x,
                   right - left,
                   is_swapped,
                   place(page_, target, box_, row, left));
  }

  [[noreturn]] void fail(const std::string& what, uint64_t bytes) const {
    const std::string& error = handle_.messages.error;
    page_.fail(file_.path(),
               what + " can't be decoded" + (error.empty() ? "" : " (" + error + ")"),
               fmt::format("{} bytes of pixels", bytes));
  }

  static constexpr std::size_t kRead = std::size_t{1} << 20;

  const TiffFile& file_;
  const TiffPage& page_;
  uint16_t sample_, samples_;
  const TiffBox& box_;
  const std::vector<TiffTarget>& targets_;
  TiffFile::Handle& handle_;
  uint64_t row_bytes_, block_bytes_;
  bool is_deflate_;
};

}  // namespace

bool is_read_by_row(const TiffPage& page, uint16_t samples) {
  return row_bytes_of(page, samples) * page.block_height > kKeptScratch && has_rows(page);
}

void read_blocks(const TiffFile& file,
                 const TiffPage& page,
                 uint16_t sample,
                 uint16_t samples,
                 const TiffBox& box,
                 const std::vector<TiffTarget>& targets,
                 TiffFile::Handle& handle) {
  Blocks(file, page, sample, samples, box, targets, handle).read();
}

unsigned char* place(
    const TiffPage& page, const TiffTarget& target, const TiffBox& box, int64_t y, int64_t x) {
  return target.plane +
         static_cast<std::size_t>((y - box.y) * box.width + x - box.x) * size_of(dtype_of(page));
}

}  // namespace cytra::io
