#include "io/tiff/ome_tiff.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <tuple>

#include <tiff.h>

#include "base/error.h"
#include "base/files.h"
#include "io/compression/ordered_jobs.h"
#include "io/pixels/format.h"
#include "io/tiff/directory.h"
#include "io/tiff/encode.h"
#include "io/tiff/ome_xml.h"

// The file is assembled here, since libtiff can't go back to a page that it has left; its codecs
// compress the blocks.
namespace cytra::io {
namespace {

constexpr std::size_t kStripBytes = std::size_t{256} << 10;
constexpr int64_t kPyramidTile = 256;

struct Level {
  int64_t height, width, rows, columns;  // rows and columns of blocks
};
struct WrittenBlocks {
  std::vector<uint64_t> offsets, sizes;
};
/// A block of a smaller level that is not complete yet.
struct UnfinishedBlock {
  std::vector<unsigned char> pixels;
  int left = 0;
};

}  // namespace

struct OmeTiffWriter::Impl {
  Impl(const std::string& path, const ImageInfo& info, const WriteOptions& options)
      : path(path), info(info), options(options), file(path) {
    const auto [c, z, height, width] = info.shape;
    if (std::min({c, z, height, width, info.timepoints, options.levels}) < 1 ||
        std::max(height, width) > INT32_MAX / 8 || options.tile < 0 || options.tile % 16 != 0)
      throw std::logic_error("sizes that a TIFF can't have");
    tile = options.levels > 1 && options.tile == 0 ? kPyramidTile : options.tile;
    const std::size_t pixel = size_of(info.dtype), row = static_cast<std::size_t>(width) * pixel;
    block = {tile, tile};
    if (tile == 0)
      block = {std::clamp<int64_t>(static_cast<int64_t>(kStripBytes / row), 1, height), width};
    int64_t h = height, w = width;
    for (int64_t i = 0; i < options.levels; ++i) {
      levels.push_back({h, w, (h + block[0] - 1) / block[0], (w + block[1] - 1) / block[1]});
      if (h == 1 && w == 1) break;
      h = (h + 1) / 2;
      w = (w + 1) / 2;
    }
    page_count = c * z * info.timepoints;
    double bytes = 0;
    for (const Level& level : levels) {
      const auto count = static_cast<std::size_t>(level.rows * level.columns);
      pages.insert(pages.end(),
                   static_cast<std::size_t>(page_count),
                   {std::vector<uint64_t>(count), std::vector<uint64_t>(count)});
      bytes += static_cast<double>(count) * static_cast<double>(block[0] * block[1]) *
               static_cast<double>(pixel * static_cast<std::size_t>(page_count));
    }
    // The limit is half a GB below that of classic TIFF, as codecs enlarge pixels that they can't
    // compress.
    is_big = options.is_bigtiff || bytes > static_cast<double>(std::size_t{7} << 29);
    append(is_big ? std::string("II+\0\x08\0\0\0\0\0\0\0\0\0\0\0", 16)
                  : std::string("II*\0\0\0\0\0", 8));
  }

  void append(const std::string& bytes) {
    file.write(bytes);
    position += bytes.size();
  }

  WrittenBlocks& blocks(int64_t page, std::size_t level) {
    return pages[level * static_cast<std::size_t>(page_count) + static_cast<std::size_t>(page)];
  }

  /// Writes a block. `pixels`: a whole tile, or the rows of a strip.
  void put_block(int64_t page,
                 std::size_t level,
                 int64_t row,
                 int64_t column,
                 std::vector<unsigned char> pixels) {
    const Level& size = levels[level];
    const auto index = static_cast<std::size_t>(row * size.columns + column);
    WrittenBlocks& known = blocks(page, level);
    if (known.offsets[index] != 0)
      throw std::logic_error("a block of a TIFF that is written twice");
    if (level + 1 < levels.size()) pass_on(page, level, row, column, pixels);
    const int64_t height = tile > 0 ? tile : std::min(block[0], size.height - row * block[0]);
    known.offsets[index] = 1;  // it is being written
    jobs.post([this, &known, index, height, raw = std::move(pixels)]() mutable {
      std::string bytes = encode(raw, block[1], height, info.dtype, options);
      return [this, &known, index, bytes = std::move(bytes)] {
        known.offsets[index] = position;
        known.sizes[index] = bytes.size();
        append(bytes);
      };
    });
  }

  /// Adds a quarter of a block of the next level.
  void pass_on(int64_t page,
               std::size_t level,
               int64_t row,
               int64_t column,
               const std::vector<unsigned char>& pixels) {
    const Level& size = levels[level];
    const std::size_t pixel = size_of(info.dtype),
                      row_bytes = static_cast<std::size_t>(tile) * pixel;
    const auto key = std::tuple(page, level + 1, row / 2, column / 2);
    UnfinishedBlock& parent = pending[key];
    if (parent.pixels.empty()) {
      parent.pixels.resize(static_cast<std::size_t>(tile) * row_bytes);
      parent.left = static_cast<int>(std::min<int64_t>(2, size.rows - row / 2 * 2) *
                                     std::min<int64_t>(2, size.columns - column / 2 * 2));
    }
    unsigned char* into = parent.pixels.data() +
                          static_cast<std::size_t>(row % 2 * tile / 2) * row_bytes +
                          static_cast<std::size_t>(column % 2 * tile / 2) * pixel;
    halve(info.dtype,
          options.is_labels,
          pixels.data(),
          std::min(tile, size.height - row * tile),
          std::min(tile, size.width - column * tile),
          row_bytes,
          into);
    if (--parent.left > 0) return;
    std::vector<unsigned char> whole;
    whole.swap(parent.pixels);
    pending.erase(key);
    put_block(page, level + 1, row / 2, column / 2, std::move(whole));
  }

  void write(const Region& region, const Image& image, int64_t timepoint) {
    const Region part = within(region, info.shape, path);
    for (std::size_t i = 0; i < 2; ++i) {
      const int64_t end = part.begin[i + 1] + part.size[i + 1];
      if (part.begin[i + 1] % block[i] != 0 || (end % block[i] != 0 && end != info.shape[i + 2]))
        throw std::logic_error("a part of a TIFF that is not made of whole blocks");
    }
    const std::array<int64_t, 4> shape{info.shape[0], part.size[0], part.size[1], part.size[2]};
    if (image.dtype != info.dtype || image.shape != shape || image.pixels.size() != image.bytes() ||
        timepoint < 0 || timepoint >= info.timepoints)
      throw std::logic_error("pixels that are not the part of a TIFF that they are for");
    const std::size_t plane = image.bytes() / static_cast<std::size_t>(shape[0] * shape[1]);
    const unsigned char* from = image.pixels.data();
    for (int64_t c = 0; c < shape[0]; ++c) {
      for (int64_t z = 0; z < shape[1]; ++z, from += plane) {
        const int64_t page = (timepoint * shape[0] + c) * info.shape[1] + part.begin[0] + z;
        write_plane(page, part, from);
      }
    }
  }

  void write_plane(int64_t page, const Region& part, const unsigned char* from) {
    const std::size_t pixel = size_of(info.dtype),
                      row_bytes = static_cast<std::size_t>(block[1]) * pixel;
    for (int64_t y = 0; y < part.size[1]; y += block[0]) {
      const int64_t height = std::min(block[0], part.size[1] - y);
      for (int64_t x = 0; x < part.size[2]; x += block[1]) {
        const auto width = static_cast<std::size_t>(std::min(block[1], part.size[2] - x));
        std::vector<unsigned char> pixels(static_cast<std::size_t>(tile > 0 ? tile : height) *
                                          row_bytes);
        for (int64_t row = 0; row < height; ++row) {
          std::memcpy(pixels.data() + static_cast<std::size_t>(row) * row_bytes,
                      from + static_cast<std::size_t>((y + row) * part.size[2] + x) * pixel,
                      width * pixel);
        }
        put_block(page,
                  0,
                  (part.begin[1] + y) / block[0],
                  (part.begin[2] + x) / block[1],
                  std::move(pixels));
      }
    }
  }

  TiffDirectory directory(int64_t page, std::size_t level) {
    const Level& size = levels[level];
    TiffDirectory tags(is_big);
    tags.set_long(TIFFTAG_SUBFILETYPE, level > 0 ? FILETYPE_REDUCEDIMAGE : 0);
    tags.set_long(TIFFTAG_IMAGEWIDTH, static_cast<uint32_t>(size.width));
    tags.set_long(TIFFTAG_IMAGELENGTH, static_cast<uint32_t>(size.height));
    tags.set_short(TIFFTAG_BITSPERSAMPLE, static_cast<uint16_t>(8 * size_of(info.dtype)));
    tags.set_short(TIFFTAG_COMPRESSION, compression_of(options));
    tags.set_short(TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    tags.set_short(TIFFTAG_SAMPLESPERPIXEL, 1);
    tags.set_short(TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    tags.set_short(TIFFTAG_SAMPLEFORMAT, sample_format(info.dtype));
    const uint16_t predictor = predictor_of(info.dtype, options);
    if (predictor != PREDICTOR_NONE) tags.set_short(TIFFTAG_PREDICTOR, predictor);
    if (tile > 0) {
      tags.set_long(TIFFTAG_TILEWIDTH, static_cast<uint32_t>(tile));
      tags.set_long(TIFFTAG_TILELENGTH, static_cast<uint32_t>(tile));
    } else {
      tags.set_long(TIFFTAG_ROWSPERSTRIP, static_cast<uint32_t>(block[0]));
    }
    const WrittenBlocks& known = blocks(page, level);
    tags.set_offsets(tile > 0 ? TIFFTAG_TILEOFFSETS : TIFFTAG_STRIPOFFSETS, known.offsets);
    tags.set_offsets(tile > 0 ? TIFFTAG_TILEBYTECOUNTS : TIFFTAG_STRIPBYTECOUNTS, known.sizes);
    const double y = info.geometry.spacing_um[1] * static_cast<double>(levels[0].height) /
                     static_cast<double>(size.height),
                 x = info.geometry.spacing_um[2] * static_cast<double>(levels[0].width) /
                     static_cast<double>(size.width);
    if (y > 0 && x > 0) {
      tags.set_short(TIFFTAG_RESOLUTIONUNIT, RESUNIT_CENTIMETER);
      tags.set_rational(TIFFTAG_XRESOLUTION, 1e4 / x);
      tags.set_rational(TIFFTAG_YRESOLUTION, 1e4 / y);
    }
    return tags;
  }

  uint64_t append_directory(const TiffDirectory& tags, uint64_t next) {
    if (position % 2 != 0) append(std::string(1, '\0'));
    const uint64_t offset = position;
    append(tags.bytes(offset, next));
    return offset;
  }

  void finish() {
    jobs.drain();
    for (const WrittenBlocks& known : pages) {
      if (std::ranges::find(known.offsets, 0U) != known.offsets.end())
        throw std::logic_error("a TIFF with blocks that were not written");
    }
    uint64_t next = 0;
    for (int64_t page = page_count; page-- > 0;) {  // each names the next one, which must be known
      std::vector<uint64_t> smaller;
      for (std::size_t level = 1; level < levels.size(); ++level)
        smaller.push_back(append_directory(directory(page, level), 0));
      TiffDirectory tags = directory(page, 0);
      if (!smaller.empty()) tags.set_offsets(TIFFTAG_SUBIFD, smaller);
      if (page == 0) {
        tags.set_text(TIFFTAG_SOFTWARE, "Cytra");
        tags.set_text(TIFFTAG_IMAGEDESCRIPTION, ome_xml(info));
      }
      next = append_directory(tags, next);
    }
    if (!is_big && position > UINT32_MAX) throw std::logic_error("a TIFF that became too large");
    char first[8];
    for (std::size_t i = 0; i < 8; ++i) first[i] = static_cast<char>(next >> (8 * i) & 0xFF);
    file.write_at(is_big ? 8 : 4, first, is_big ? 8 : 4);
    file.commit();
  }

  std::string path;
  ImageInfo info;
  WriteOptions options;
  AtomicFile file;
  uint64_t position = 0;
  bool is_big = false;
  int64_t tile = 0, page_count = 0;
  std::array<int64_t, 2> block{};
  std::vector<Level> levels;
  std::vector<WrittenBlocks> pages;  // of (level, page)
  std::map<std::tuple<int64_t, std::size_t, int64_t, int64_t>, UnfinishedBlock> pending;
  OrderedJobs jobs;
};

OmeTiffWriter::OmeTiffWriter(const std::string& path,
                             const ImageInfo& info,
                             const WriteOptions& options)
    : impl_(std::make_unique<Impl>(path, info, options)) {}
OmeTiffWriter::~OmeTiffWriter() = default;

std::array<int64_t, 2> OmeTiffWriter::block() const {
  return impl_->block;
}
void OmeTiffWriter::write(const Region& region, const Image& pixels, int64_t timepoint) {
  impl_->write(region, pixels, timepoint);
}
void OmeTiffWriter::finish() {
  impl_->finish();
}

void write_ome_tiff(const std::string& path, const Image& image, const WriteOptions& options) {
  OmeTiffWriter writer(path, writable_info(image), options);
  writer.write({}, image);
  writer.finish();
}

}  // namespace cytra::io
