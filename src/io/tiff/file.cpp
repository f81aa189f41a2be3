#include "io/tiff/file.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"

namespace cytra::io {
namespace {

// The number of idle handles; each holds a block.
constexpr std::size_t kIdleHandles = 16;
// The number of cursors; for files that can't be mapped each holds the bytes of a large strip.
constexpr int64_t kMostCursors = 4;

// The limit for all directories with their values, each read once, as the pages of a file may
// share a large value.
constexpr uint64_t kMostDirectories = uint64_t{256} << 20;

template <class T>
T tag(TIFF* tiff, uint32_t name, T otherwise) {
  T value{};
  return TIFFGetField(tiff, name, &value) == 1 ? value : otherwise;
}

[[noreturn]] void fail_at(const std::string& path,
                          const TiffPage& page,
                          const TiffMessages& messages,
                          const std::string& what,
                          const std::string& expected) {
  const std::string reason = messages.error.empty() ? "" : " (" + messages.error + ")";
  page.fail(path, what + reason, expected);
}

}  // namespace

void TiffPage::fail(const std::string& path,
                    const std::string& what,
                    const std::string& expected) const {
  throw DataError(
      "{}: {}{}, expected {}; the file may be truncated or damaged: copy or save it again",
      path,
      number == 0 ? "" : fmt::format("page {}: ", number),
      what,
      expected);
}

void TiffPage::refuse(const std::string& path,
                      const std::string& what,
                      const std::string& expected) const {
  throw DataError("{}: page {}: {}, expected {}; convert it, in ImageJ for example",
                  path,
                  number,
                  what,
                  expected);
}

TiffFile::TiffFile(const std::string& path) : path_(path), file_(path) {
  std::unique_ptr<Handle> handle = take();
  handle->source.left = kMostDirectories;
  is_swapped_ = TIFFIsByteSwapped(handle->tiff.get()) != 0;
  for (;;) {
    if (handle->source.left == 0) {
      throw DataError(
          "{}: its directories take more than {}, expected less; they may share their values, in a "
          "file that is damaged",
          path_,
          format_bytes(static_cast<double>(kMostDirectories)));
    }
    pages_.push_back(describe(pages_.size() + 1, *handle));
    // OME-XML may be large, and is the first page's
    if (pages_.size() > 1 && !pages_.back().description.starts_with("{\"shape\""))
      pages_.back().description.clear();
    if (TIFFLastDirectory(handle->tiff.get()) != 0) break;
    if (TIFFReadDirectory(handle->tiff.get()) != 1) {
      TiffPage next;
      next.number = pages_.size() + 1;
      fail_at(path_, next, handle->messages, "its directory can't be read", "a TIFF directory");
    }
  }
  handle->offset = 0;
  handle->source.left = UINT64_MAX;
  give(std::move(handle));
}

/// The first idle handle that fits; null for none.
std::unique_ptr<TiffFile::Handle> TiffFile::take_idle(const auto& fits) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::ranges::find_if(idle_, [&](const auto& handle) { return fits(*handle); });
  if (found == idle_.end()) return nullptr;
  std::unique_ptr<Handle> handle = std::move(*found);
  idle_.erase(found);
  return handle;
}

std::unique_ptr<TiffFile::Handle> TiffFile::take() const {
  auto handle = take_idle([](const Handle& idle) { return !idle.is_by_row; });
  return handle ? std::move(handle) : open_handle(nullptr);
}

std::unique_ptr<TiffFile::Handle> TiffFile::take_before(const TiffPage& page,
                                                        uint16_t sample,
                                                        int64_t row) const {
  int64_t count = 0;
  auto handle = take_idle([&](const Handle& idle) {
    const Handle::Cursor& cursor = idle.cursor;
    count += idle.is_by_row;
    return idle.is_by_row && cursor.page == page.offset && cursor.sample == sample &&
           cursor.row > 0 && cursor.row <= row;
  });
  if (!handle && count >= kMostCursors)  // the one that was idle longest
    handle = take_idle([](const Handle& idle) { return idle.is_by_row; });
  if (handle) return handle;
  const MappedFile* mapped = map();
  handle = open_handle(mapped == nullptr ? nullptr : mapped->data());
  handle->is_by_row = true;
  return handle;
}

const MappedFile* TiffFile::map() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!std::exchange(is_map_tried_, true)) {
    try {
      file_.map();
      map_ = &file_.mapped();
    } catch (const Error&) {  // less address space than the file takes: strips are read whole
    }
  }
  return map_;
}

std::unique_ptr<TiffFile::Handle> TiffFile::open_handle(const unsigned char* mapped) const {
  auto handle = std::make_unique<Handle>();
  handle->source.file = &file_;
  handle->source.mapped = mapped;
  handle->source.left = kMostDirectories;  // opening reads the first
  handle->tiff = open_tiff(handle->source, handle->messages);
  handle->source.left = UINT64_MAX;
  if (!handle->tiff) {
    TiffPage none;
    none.number = 0;
    fail_at(path_, none, handle->messages, "can't be opened as TIFF", "a complete TIFF file");
  }
  return handle;
}

void TiffFile::give(std::unique_ptr<Handle> handle) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (idle_.size() < kIdleHandles) idle_.push_back(std::move(handle));
}

void TiffFile::go_to(const TiffPage& page, Handle& handle) const {
  handle.messages.clear();
  if (handle.offset == page.offset) return;
  handle.offset = 0;
  handle.cursor = {};
  if (TIFFSetSubDirectory(handle.tiff.get(), page.offset) != 1)
    fail_at(path_, page, handle.messages, "its directory can't be read", "a TIFF directory");
  handle.messages.clear();  // a private tag that it can't read does no harm
  handle.offset = page.offset;
  if (page.photometric == PHOTOMETRIC_YCBCR)
    TIFFSetField(handle.tiff.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
}

TiffPage TiffFile::describe_at(uint64_t offset, std::size_t number, Handle& handle) const {
  TiffPage page;
  page.number = number;
  page.offset = offset;
  go_to(page, handle);
  handle.offset = 0;  // its colour mode is not set
  return describe(number, handle);
}

std::optional<TiffFile::Tag> TiffFile::private_tag(uint16_t name) const {
  unsigned char head[8] = {};
  file_.read_at(0, head, sizeof head);
  const bool is_big_endian = head[0] == 'M';
  const auto number = [&](const unsigned char* bytes, std::size_t size) {
    uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 | bytes[is_big_endian ? i : size - 1 - i];
    return value;
  };
  const bool is_big_tiff = number(head + 2, 2) == 43;
  const std::size_t word = is_big_tiff ? 8 : 4, entry = 4 + 2 * word;
  file_.read_at(pages_[0].offset, head, word == 8 ? 8 : 2);
  const uint64_t count = std::min<uint64_t>(number(head, word == 8 ? 8 : 2), UINT16_MAX);
  std::vector<unsigned char> entries(count * entry);
  file_.read_at(pages_[0].offset + (word == 8 ? 8 : 2), entries.data(), entries.size());
  for (const unsigned char* at = entries.data(); at != entries.data() + entries.size();
       at += entry) {
    if (number(at, 2) == name)
      return Tag{static_cast<uint16_t>(number(at + 2, 2)),
                 number(at + 4, word),
                 number(at + 4 + word, word)};
  }
  return std::nullopt;
}

/// Checks the end of a directory, as libtiff takes a directory that is truncated after its last
/// entry for the last one.
void TiffFile::check_directory_end(const TiffPage& page, const Handle& handle) const {
  const bool is_big_tiff = TIFFIsBigTIFF(handle.tiff.get()) != 0;
  const bool is_big_endian = TIFFIsBigEndian(handle.tiff.get()) != 0;
  const std::size_t size = is_big_tiff ? 8 : 2;
  unsigned char bytes[8] = {};
  bool is_whole = file_.read_at(page.offset, bytes, size) == static_cast<int64_t>(size);
  uint64_t entries = 0;
  for (std::size_t i = 0; i < size; ++i)
    entries = entries << 8 | bytes[is_big_endian ? i : size - 1 - i];
  is_whole = is_whole && entries <= UINT16_MAX &&
             page.offset + (is_big_tiff ? 16 + 20 * entries : 6 + 12 * entries) <= file_.bytes();
  if (!is_whole) page.fail(path_, "its directory is cut off", "a complete file");
}

TiffPage TiffFile::describe(std::size_t number, Handle& handle) const {
  TIFF* tiff = handle.tiff.get();
  TiffPage page;
  page.number = number;
  page.offset = TIFFCurrentDirOffset(tiff);
  if (handle.messages.lost_tag)
    fail_at(
        path_, page, handle.messages, "a tag lies beyond the end of the file", "a complete file");
  check_directory_end(page, handle);
  page.is_reduced =
      (tag<uint32_t>(tiff, TIFFTAG_SUBFILETYPE, 0) & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK)) != 0;
  page.width = tag<uint32_t>(tiff, TIFFTAG_IMAGEWIDTH, 0);
  page.height = tag<uint32_t>(tiff, TIFFTAG_IMAGELENGTH, 0);
  if (page.width == 0 || page.height == 0)
    fail_at(path_, page, handle.messages, "has no pixels", "a width and a height");
  TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &page.bits);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &page.format);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &page.samples);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &page.planar);
  page.photometric = tag<uint16_t>(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
  page.compression = tag<uint16_t>(tiff, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  if (page.samples == 0)
    fail_at(path_, page, handle.messages, "has no samples", "at least one per pixel");
  page.is_tiled = TIFFIsTiled(tiff) != 0;
  page.block_width = page.is_tiled ? tag<uint32_t>(tiff, TIFFTAG_TILEWIDTH, 0) : page.width;
  page.block_height = page.is_tiled ? tag<uint32_t>(tiff, TIFFTAG_TILELENGTH, 0)
                                    : tag<uint32_t>(tiff, TIFFTAG_ROWSPERSTRIP, page.height);
  if (!page.is_tiled) page.block_height = std::min(page.block_height, page.height);
  if (page.block_width == 0 || page.block_height == 0) {
    fail_at(path_, page, handle.messages, "its tiles or strips have no size", "at least one pixel");
  }
  if (tag<uint32_t>(tiff, TIFFTAG_IMAGEDEPTH, 1) > 1)
    page.refuse(path_, "a volume in one page", "a page per plane");
  page.x_per_unit = static_cast<double>(tag<float>(tiff, TIFFTAG_XRESOLUTION, 0));
  page.y_per_unit = static_cast<double>(tag<float>(tiff, TIFFTAG_YRESOLUTION, 0));
  page.resolution_unit = tag<uint16_t>(tiff, TIFFTAG_RESOLUTIONUNIT, RESUNIT_INCH);
  const char* text = nullptr;
  if (TIFFGetField(tiff, TIFFTAG_IMAGEDESCRIPTION, &text) == 1 && text != nullptr)
    page.description = text;
  uint16_t count = 0;
  uint64_t* offsets = nullptr;
  if (TIFFGetField(tiff, TIFFTAG_SUBIFD, &count, &offsets) == 1 && offsets != nullptr)
    page.smaller.assign(offsets, offsets + count);
  return page;
}

}  // namespace cytra::io
