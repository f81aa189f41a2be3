#pragma once
// The directories of a TIFF file, and handles of it for any number of threads.
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "io/image.h"
#include "io/tiff/handle.h"

namespace cytra::io {

// libtiff refuses single allocations above this, so a damaged header can't ask for all memory.
constexpr int64_t kLargestTiffBlock = int64_t{1} << 31;

/// The description of pixels in a directory.
struct TiffPage {
  std::size_t number = 1;  // in messages: of the page in the file's chain
  uint64_t offset = 0;     // of the directory
  uint32_t width = 0, height = 0;
  bool is_tiled = false, is_reduced = false;   // reduced: a smaller copy, or a mask
  uint32_t block_width = 0, block_height = 0;  // of a tile; of a strip: the page's width
  uint16_t bits = 1, format = SAMPLEFORMAT_UINT, samples = 1, planar = PLANARCONFIG_CONTIG;
  uint16_t photometric = PHOTOMETRIC_MINISBLACK, compression = COMPRESSION_NONE;
  double x_per_unit = 0, y_per_unit = 0;  // resolution tags; 0: none
  uint16_t resolution_unit = RESUNIT_INCH;
  std::vector<uint64_t> smaller;  // SubIFDs
  std::string description;        // ImageDescription

  /// Whether type and samples per pixel are the same.
  bool like(const TiffPage& other) const {
    return bits == other.bits && format == other.format && samples == other.samples;
  }
  bool same_as(const TiffPage& other) const {
    return width == other.width && height == other.height && like(other);
  }
  /// Throws: DataError `path: page N: what, expected ...; the file may be truncated` and
  /// `...; convert it`.
  [[noreturn]] void fail(const std::string& path,
                         const std::string& what,
                         const std::string& expected) const;
  [[noreturn]] void refuse(const std::string& path,
                           const std::string& what,
                           const std::string& expected) const;
};

/// A TIFF file. Thread: all const functions may run on several threads.
class TiffFile {
 public:
  /// Reads every directory. Throws: DataError, ConfigError.
  explicit TiffFile(const std::string& path);

  struct Handle {
    TiffSource source;
    TiffMessages messages;
    TiffHandle tiff;
    uint64_t offset = 0;                 // of the directory that it is at
    std::vector<unsigned char> scratch;  // of a block
    /// The next row within a strip that is decoded row by row.
    struct Cursor {
      uint64_t page = 0;  // the offset of its directory
      uint16_t sample = 0;
      int64_t row = 0;  // 0: at none
    } cursor;
    bool is_by_row = false;  // of take_before()
  };
  /// Takes a handle for one thread, to be given back unless it failed.
  std::unique_ptr<Handle> take() const;
  /// Takes a handle that can continue before a row of a page's sample, where there is one. It
  /// reads from map(), so a MappedFile::Reading must live.
  std::unique_ptr<Handle> take_before(const TiffPage& page, uint16_t sample, int64_t row) const;
  /// The file in memory; null where there is no address space for it.
  const MappedFile* map() const;
  void give(std::unique_ptr<Handle> handle) const;
  /// Goes to a directory. Throws: DataError.
  void go_to(const TiffPage& page, Handle& handle) const;
  /// A private tag of the first page, where there is one; its value is not converted.
  struct Tag {
    uint16_t type;
    uint64_t count, at;
  };
  std::optional<Tag> private_tag(uint16_t name) const;
  /// The page of a directory that is not in the chain (a SubIFD of page `number`).
  TiffPage describe_at(uint64_t offset, std::size_t number, Handle& handle) const;

  const std::string& path() const { return path_; }
  const InputFile& file() const { return file_; }
  std::size_t bytes() const { return static_cast<std::size_t>(file_.bytes()); }
  bool is_swapped() const { return is_swapped_; }
  const std::vector<TiffPage>& pages() const { return pages_; }

 private:
  TiffPage describe(std::size_t number, Handle& handle) const;
  std::unique_ptr<Handle> take_idle(const auto& fits) const;
  std::unique_ptr<Handle> open_handle(const unsigned char* mapped) const;
  void check_directory_end(const TiffPage& page, const Handle& handle) const;

  std::string path_;
  mutable InputFile file_;
  bool is_swapped_ = false;
  std::vector<TiffPage> pages_;
  mutable std::mutex mutex_;  // guards the members below
  mutable bool is_map_tried_ = false;
  mutable const MappedFile* map_ = nullptr;
  mutable std::vector<std::unique_ptr<Handle>> idle_;
};

}  // namespace cytra::io
