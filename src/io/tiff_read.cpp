#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "io/format.h"
#include "io/tiff_layout.h"
#include "io/tiff_samples.h"

namespace cytra::io {
namespace {

/// A sample of each pixel to `plane`.
struct Target {
  int64_t sample;
  unsigned char* plane;  // of the region
};
struct Box {
  int64_t y, x, height, width;
};

class TiffImage final : public ImageReader {
 public:
  TiffImage(std::shared_ptr<const TiffFile> file,
            const TiffLayout& layout,
            const Selection& selection)
      : open_file_(std::move(file)), file_(*open_file_), layout_(layout) {
    const std::string& path = file_.path();
    const std::vector<TiffPage>& pages = file_.pages();
    is_contiguous_ = layout_.is_contiguous;
    std::vector<std::size_t> wanted = layout_.pages;
    if (is_contiguous_) wanted = {layout_.contiguous_page};
    const TiffPage& first = pages[wanted.front()];
    check_supported(path, first);
    samples_ = first.samples;
    info_.dtype = dtype_of(first);
    info_.scenes = layout_.scenes;
    info_.timepoints = layout_.timepoints;
    const auto handle = file_.take();
    info_.levels = count_levels(first, *handle);
    if (selection.level > 0 && selection.level < info_.levels) {
      go_down(selection.level, wanted, *handle);
    } else {
      for (const std::size_t i : wanted) add_page(pages[i], first);
    }
    if (is_contiguous_) check_contiguous(first, *handle);
    check_shapes(first);
    Selection one = selection;
    one.scene = std::max<int64_t>(one.scene, 0);  // the layout is of the right one
    chosen_ = select(path, one, info_);
  }

  Image read(const Region& region) const override {
    const Region part = within(region, info_.shape, file_.path());
    Image image;
    image.dtype = info_.dtype;
    image.geometry = moved(info_.geometry, part);
    image.channel_names = info_.channel_names;
    allocate(file_.path(),
             {info_.shape[0], part.size[0], part.size[1], part.size[2]},
             file_.bytes(),
             image);
    const std::vector<unsigned char*> channels = channels_of(image);
    const std::size_t plane_bytes =
        image.pixels.size() / static_cast<std::size_t>(info_.shape[0] * part.size[0]);
    const Box box{part.begin[1], part.begin[2], part.size[1], part.size[2]};
    std::unique_ptr<TiffFile::Handle> handle = file_.take();
    for (int64_t z = 0; z < part.size[0]; ++z) {
      for (int64_t group = 0; group < layout_.channels; ++group) {
        std::vector<Target> targets;
        for (std::size_t i = 0; i < channels.size(); ++i) {
          if (chosen_.channels[i] / samples_ == group)
            targets.push_back({chosen_.channels[i] % samples_,
                               channels[i] + static_cast<std::size_t>(z) * plane_bytes});
        }
        if (!targets.empty()) read_plane(group, part.begin[0] + z, box, targets, *handle);
      }
    }
    file_.give(std::move(handle));
    return image;
  }

 private:
  int64_t count_levels(const TiffPage& first, TiffFile::Handle& handle) const {
    if (!layout_.smaller.empty()) return 1 + static_cast<int64_t>(layout_.smaller.size());
    int64_t levels = 1;
    uint32_t width = first.width, height = first.height;
    for (const uint64_t offset : first.smaller) {  // others than smaller copies may be there, too
      const TiffPage page = file_.describe_at(offset, first.number, handle);
      if (!page.like(first) || page.width > width || page.height > height ||
          (page.width == width && page.height == height) || levels == 32)
        break;
      width = page.width;
      height = page.height;
      ++levels;
    }
    return levels;
  }

  void go_down(int64_t level, const std::vector<std::size_t>& wanted, TiffFile::Handle& handle) {
    const auto index = static_cast<std::size_t>(level) - 1;
    is_contiguous_ = false;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const TiffPage& larger = file_.pages()[wanted[i]];
      if (!layout_.smaller.empty()) {
        add_page(file_.pages()[layout_.smaller[index][i]],
                 file_.pages()[layout_.smaller[index][0]]);
        continue;
      }
      if (larger.smaller.size() <= index)
        larger.fail(file_.path(), "has fewer levels than the first page", "the same pyramid");
      TiffPage page = file_.describe_at(larger.smaller[index], larger.number, handle);
      add_page(page, pages_.empty() ? page : pages_.front());
    }
  }

  void add_page(const TiffPage& page, const TiffPage& first) {
    check_supported(file_.path(), page);
    if (!page.same_as(first)) {
      page.refuse(
          file_.path(),
          fmt::format(
              "{} x {} pixels of {} x {} bits", page.width, page.height, page.samples, page.bits),
          fmt::format("{} x {} of {} x {} as on page {}",
                      first.width,
                      first.height,
                      first.samples,
                      first.bits,
                      first.number));
    }
    pages_.push_back(page);
    pages_.back().description.clear();
  }

  void check_shapes(const TiffPage& full) {
    const TiffPage& page = pages_.front();
    info_.shape = {layout_.channels * samples_, layout_.planes, page.height, page.width};
    check_shape(file_.path(), info_.shape, info_.dtype, file_.bytes());
    info_.geometry = layout_.geometry;
    auto& spacing = info_.geometry.spacing_um;
    spacing[1] = spacing_of(spacing[1], static_cast<double>(full.height) / page.height);
    spacing[2] = spacing_of(spacing[2], static_cast<double>(full.width) / page.width);
    const auto& names = layout_.channel_names;
    const bool is_named =
        std::any_of(names.begin(), names.end(), [](const auto& name) { return !name.empty(); });
    if (is_named && static_cast<int64_t>(names.size()) == info_.shape[0])
      info_.channel_names = names;
  }

  void read_plane(int64_t group,
                  int64_t z,
                  const Box& box,
                  const std::vector<Target>& targets,
                  TiffFile::Handle& handle) const {
    const auto at = static_cast<std::size_t>(
        (chosen_.timepoint * layout_.channels + group) * layout_.planes + z);
    if (is_contiguous_) return read_contiguous(layout_.pages[at], box, targets, handle);
    const TiffPage& page = pages_[at];
    file_.go_to(page, handle);
    if (page.planar != PLANARCONFIG_SEPARATE || page.samples == 1)
      return read_blocks(page, 0, page.samples, box, targets, handle);
    for (const Target& target : targets)
      read_blocks(page, static_cast<uint16_t>(target.sample), 1, box, {{0, target.plane}}, handle);
  }

  /// Strips or tiles; each holds `samples` interleaved values per pixel.
  void read_blocks(const TiffPage& page,
                   uint16_t sample,
                   uint16_t samples,
                   const Box& box,
                   const std::vector<Target>& targets,
                   TiffFile::Handle& handle) const {
    TIFF* tiff = handle.tiff.get();
    const uint64_t row_bytes = (uint64_t{page.block_width} * samples * page.bits + 7) / 8,
                   block_bytes = row_bytes * page.block_height;
    const auto claimed =
        page.is_tiled ? TIFFTileSize64(tiff) : TIFFVStripSize64(tiff, page.block_height);
    // Together, too: each may be much larger than the page
    const auto blocks = [](uint32_t side, uint32_t block) {
      return (uint64_t{side} + block - 1) / block;
    };
    uint64_t all_bytes = 0;
    const bool is_countable = !__builtin_mul_overflow(
        block_bytes,
        blocks(page.width, page.block_width) * blocks(page.height, page.block_height),
        &all_bytes);
    if (claimed != block_bytes || block_bytes > static_cast<uint64_t>(kLargestTiffBlock) ||
        !is_countable || !is_plausible_ratio(all_bytes, file_.bytes())) {
      page.fail(file_.path(), "its tiles or strips have no plausible size", "2 GiB at most");
    }
    const int64_t block_height = page.block_height, block_width = page.block_width;
    const bool is_deflate =
        page.compression == COMPRESSION_ADOBE_DEFLATE || page.compression == COMPRESSION_DEFLATE;
    const bool is_direct =
        !page.is_tiled && samples == 1 && is_native(page) && box.x == 0 && box.width == page.width;
    for (int64_t y = box.y / block_height * block_height; y < box.y + box.height;
         y += block_height) {
      const int64_t rows = std::min<int64_t>(block_height, page.height - y);
      const int64_t top = std::max(y, box.y), bottom = std::min(y + rows, box.y + box.height);
      for (int64_t x = box.x / block_width * block_width; x < box.x + box.width; x += block_width) {
        const uint64_t bytes =
            page.is_tiled ? block_bytes : row_bytes * static_cast<uint64_t>(rows);
        if (is_direct && y >= box.y && y + rows <= box.y + box.height) {
          unsigned char* into = targets[0].plane + static_cast<std::size_t>(y - box.y) * row_bytes;
          decode(page, sample, x, y, into, bytes, handle);
          continue;
        }
        if (handle.scratch.size() < bytes) handle.scratch.resize(bytes);
        // Of damaged deflate data libtiff may give a part without an error.
        if (is_deflate) std::fill_n(handle.scratch.begin(), bytes, static_cast<unsigned char>(0));
        decode(page, sample, x, y, handle.scratch.data(), bytes, handle);
        const int64_t left = std::max(x, box.x),
                      right = std::min(x + block_width, box.x + box.width);
        for (int64_t row = top; row < bottom; ++row) {
          const unsigned char* from =
              handle.scratch.data() + static_cast<std::size_t>(row - y) * row_bytes;
          for (const Target& target : targets)
            take_samples(file_.path(),
                         page,
                         from,
                         samples,
                         target.sample,
                         left - x,
                         right - left,
                         false,
                         place(target, box, row, left));
        }
      }
    }
    if (handle.scratch.size() > kKeptScratch) std::vector<unsigned char>().swap(handle.scratch);
  }

  /// Where pixel (y, x) of the image goes.
  unsigned char* place(const Target& target, const Box& box, int64_t y, int64_t x) const {
    return target.plane +
           static_cast<std::size_t>((y - box.y) * box.width + x - box.x) * size_of(info_.dtype);
  }

  void decode(const TiffPage& page,
              uint16_t sample,
              int64_t x,
              int64_t y,
              unsigned char* into,
              uint64_t bytes,
              TiffFile::Handle& handle) const {
    TIFF* tiff = handle.tiff.get();
    const auto wanted = static_cast<tmsize_t>(bytes);
    const auto row = static_cast<uint32_t>(y);
    const uint32_t block = page.is_tiled
                               ? TIFFComputeTile(tiff, static_cast<uint32_t>(x), row, 0, sample)
                               : TIFFComputeStrip(tiff, row, sample);
    const tmsize_t got = page.is_tiled ? TIFFReadEncodedTile(tiff, block, into, wanted)
                                       : TIFFReadEncodedStrip(tiff, block, into, wanted);
    // Some codecs report what is missing at the end and yet return the whole size.
    if (got != wanted || !handle.messages.error.empty()) {
      const std::string& error = handle.messages.error;
      page.fail(file_.path(),
                fmt::format("{} {} can't be decoded{}",
                            page.is_tiled ? "tile" : "strip",
                            block,
                            error.empty() ? "" : " (" + error + ")"),
                fmt::format("{} bytes of pixels", bytes));
    }
  }

  static uint64_t row_bytes_of(const TiffPage& page) {
    return uint64_t{page.width} * page.samples * (page.bits / 8U);
  }

  /// Whether all planes behind one directory are there.
  void check_contiguous(const TiffPage& page, TiffFile::Handle& handle) const {
    if (page.compression != COMPRESSION_NONE || page.is_tiled || is_packed(page) ||
        (page.planar == PLANARCONFIG_SEPARATE && page.samples > 1)) {
      page.refuse(file_.path(),
                  "a stack of planes behind one directory, in tiles or compressed",
                  "plain pixels");
    }
    file_.go_to(page, handle);
    const uint64_t start = TIFFGetStrileOffset(handle.tiff.get(), 0);
    const auto bytes = static_cast<double>(row_bytes_of(page)) * page.height *
                       static_cast<double>(layout_.pages.size());
    if (start > file_.bytes() || bytes > static_cast<double>(file_.bytes() - start))
      page.fail(file_.path(), "planes behind one directory are cut off", "all of them");
  }

  /// Plane `number` of a stack without compression behind one directory.
  void read_contiguous(std::size_t number,
                       const Box& box,
                       const std::vector<Target>& targets,
                       TiffFile::Handle& handle) const {
    const TiffPage& page = pages_.front();
    file_.go_to(page, handle);
    const uint64_t row_bytes = row_bytes_of(page);
    const uint64_t start = TIFFGetStrileOffset(handle.tiff.get(), 0) +
                           (number * page.height + static_cast<uint64_t>(box.y)) * row_bytes;
    // Many rows at once, but no large block
    const auto rows = std::max<int64_t>(1, static_cast<int64_t>(kContiguousBytes / row_bytes));
    for (int64_t done = 0; done < box.height; done += rows) {
      const int64_t some = std::min(rows, box.height - done);
      const auto bytes = static_cast<std::size_t>(some) * row_bytes;
      if (handle.scratch.size() < bytes) handle.scratch.resize(bytes);
      const uint64_t offset = start + static_cast<uint64_t>(done) * row_bytes;
      if (file_.file().read_at(offset, handle.scratch.data(), bytes) != static_cast<int64_t>(bytes))
        page.fail(file_.path(), fmt::format("plane {} is cut off", number), "a complete file");
      for (int64_t row = 0; row < some; ++row) {
        const unsigned char* from =
            handle.scratch.data() + static_cast<std::size_t>(row) * row_bytes;
        for (const Target& target : targets)
          take_samples(file_.path(),
                       page,
                       from,
                       page.samples,
                       target.sample,
                       box.x,
                       box.width,
                       file_.is_swapped(),
                       place(target, box, box.y + done + row, box.x));
      }
    }
  }

  static constexpr std::size_t kContiguousBytes = std::size_t{1} << 20;
  static constexpr std::size_t kKeptScratch = std::size_t{16} << 20;

  std::shared_ptr<const TiffFile> open_file_;
  const TiffFile& file_;
  TiffLayout layout_;
  bool is_contiguous_ = false;
  std::vector<TiffPage> pages_;  // of the selected level, as layout_.pages
  int64_t samples_ = 1;
  Chosen chosen_;
};

}  // namespace

bool is_tiff(const std::string& head, const std::string&) {
  for (const char* magic : {"II*\0", "MM\0*", "II+\0", "MM\0+"}) {
    if (head.compare(0, 4, magic, 4) == 0) return true;
  }
  return false;
}

std::unique_ptr<ImageReader> open_tiff_image(const std::string& path, const Selection& selection) {
  const auto file = std::make_shared<const TiffFile>(path);
  const TiffLayout layout = tiff_layout(path, file->pages(), file->bytes(), selection.scene);
  return layout.files.empty() ? open_tiff_layout(file, layout, selection)
                              : open_ome_set(file, layout, selection);
}

std::unique_ptr<ImageReader> open_tiff_layout(std::shared_ptr<const TiffFile> file,
                                              const TiffLayout& layout,
                                              const Selection& selection) {
  return std::make_unique<TiffImage>(std::move(file), layout, selection);
}

}  // namespace cytra::io
