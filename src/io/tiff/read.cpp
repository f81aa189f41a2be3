// Part of io/tiff/layout.h: reads the images that layouts find in files.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "io/pixels/format.h"
#include "io/tiff/blocks.h"
#include "io/tiff/layout.h"
#include "io/tiff/samples.h"

namespace cytra::io {
namespace {

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
    Image image = allocate_part(file_.path(), info_, part, file_.bytes());
    const std::vector<unsigned char*> channels = channels_of(image);
    const std::size_t plane_bytes =
        image.pixels.size() / static_cast<std::size_t>(info_.shape[0] * part.size[0]);
    const TiffBox box{part.begin[1], part.begin[2], part.size[1], part.size[2]};
    std::unique_ptr<TiffFile::Handle> handle = file_.take();
    for (int64_t z = 0; z < part.size[0]; ++z) {
      for (int64_t group = 0; group < layout_.channels; ++group) {
        std::vector<TiffTarget> targets;
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
    if (!layout_.smaller.empty()) return 1 + std::ssize(layout_.smaller);
    int64_t levels = 1;
    uint32_t width = first.width, height = first.height;
    for (const uint64_t offset : first.smaller) {  // there may also be pages that are no smaller
                                                   // copies
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
    if (page.bits == 24 && !file_.is_swapped()) {
      page.refuse(
          file_.path(),
          "24-bit integers in a little-endian file, whose byte order writers do not agree on",
          "a big-endian file or 32 bits");
    }
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
    const double factors[] = {static_cast<double>(full.width) / page.width,
                              static_cast<double>(full.height) / page.height};
    for (std::size_t side = 0; side < 2; ++side) {  // x, y
      double& spacing = info_.geometry.spacing_um[2 - side];
      spacing = spacing_of(spacing, factors[side]);
      for (std::size_t row = 0; row < 12; row += 4) {
        double& step = info_.geometry.affine[row + side];
        info_.geometry.affine[row + 3] += step * (factors[side] - 1) / 2;
        step *= factors[side];
      }
    }
    const auto& names = layout_.channel_names;
    const bool is_named =
        std::ranges::any_of(names, [](const auto& name) { return !name.empty(); });
    if (is_named && std::ssize(names) == info_.shape[0]) info_.channel_names = names;
  }

  void read_plane(int64_t group,
                  int64_t z,
                  const TiffBox& box,
                  const std::vector<TiffTarget>& targets,
                  TiffFile::Handle& handle) const {
    const auto at = static_cast<std::size_t>(
        (chosen_.timepoint * layout_.channels + group) * layout_.planes + z);
    if (is_contiguous_) return read_contiguous(layout_.pages[at], box, targets, handle);
    const TiffPage& page = pages_[at];
    if (page.planar != PLANARCONFIG_SEPARATE || page.samples == 1)
      return read_samples_of(page, 0, page.samples, box, targets, handle);
    for (const TiffTarget& target : targets)
      read_samples_of(
          page, static_cast<uint16_t>(target.sample), 1, box, {{0, target.plane}}, handle);
  }

  /// Reads samples. Large strips can only be decoded from the beginning, so a reader of rows
  /// continues with its earlier handle.
  void read_samples_of(const TiffPage& page,
                       uint16_t sample,
                       uint16_t samples,
                       const TiffBox& box,
                       const std::vector<TiffTarget>& targets,
                       TiffFile::Handle& handle) const {
    if (!is_read_by_row(page, samples)) {
      file_.go_to(page, handle);
      return read_blocks(file_, page, sample, samples, box, targets, handle);
    }
    const MappedFile* map = file_.map();
    std::optional<MappedFile::Reading> reading;
    if (map != nullptr)
      reading.emplace(
          *map, static_cast<std::size_t>(box.height) * page.width * (page.bits / 8 + 1U) * samples);
    std::unique_ptr<TiffFile::Handle> own = file_.take_before(page, sample, box.y);
    file_.go_to(page, *own);
    read_blocks(file_, page, sample, samples, box, targets, *own);
    file_.give(std::move(own));
    if (reading) reading->check();
  }

  static uint64_t row_bytes_of(const TiffPage& page) {
    return uint64_t{page.width} * page.samples * (page.bits / 8U);
  }

  /// Checks that all planes of a single directory are in the file.
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
    const bool holds_directory =
        page.offset >= start && static_cast<double>(page.offset - start) < bytes;
    if (holds_directory || start > file_.bytes() ||
        bytes > static_cast<double>(file_.bytes() - start))
      page.fail(file_.path(), "planes behind one directory are cut off", "all of them");
  }

  /// Reads plane `number` of a stack without compression that has a single directory.
  void read_contiguous(std::size_t number,
                       const TiffBox& box,
                       const std::vector<TiffTarget>& targets,
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
        for (const TiffTarget& target : targets)
          take_samples(file_.path(),
                       page,
                       from,
                       page.samples,
                       target.sample,
                       box.x,
                       box.width,
                       file_.is_swapped(),
                       place(page, target, box, box.y + done + row, box.x));
      }
    }
  }

  static constexpr std::size_t kContiguousBytes = std::size_t{1} << 20;

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
  const TiffLayout layout = tiff_layout(*file, selection);
  return layout.files.empty() ? open_tiff_layout(file, layout, selection)
                              : open_ome_set(file, layout, selection);
}

std::string begin_of_ome_set(const std::string& path) {
  try {
    const std::vector<std::string> named = ome_other_files(path);
    if (named.empty() || (named.size() == 1 && named[0] == path)) return path;
    const TiffLayout layout = tiff_layout(TiffFile(path), {});
    return layout.files.empty() ? path : layout.files[layout.file_of[0]];
  } catch (const Error&) {
    return path;  // its error is reported when it is read
  }
}

std::vector<std::string> ome_other_files(const std::string& path) {
  const InputFile file(path);
  TiffSource source{&file};
  TiffMessages messages;
  const TiffHandle tiff = open_tiff(source, messages);
  const char* text = nullptr;
  if (!tiff || TIFFGetField(tiff.get(), TIFFTAG_IMAGEDESCRIPTION, &text) != 1) return {};
  const std::string xml = text;
  return xml.find("<OME") == std::string::npos && xml.find(":OME") == std::string::npos
             ? std::vector<std::string>()
             : files_of_ome_xml(path, xml);
}

bool tiff_scenes(const std::string& path, std::vector<int64_t>& scenes) {
  if (folder_exists(path)) return false;
  if (!is_tiff(InputFile(file_of(path)).begin(4), path)) return false;
  const TiffLayout layout = tiff_layout(TiffFile(path), {});
  scenes = layout.own_scenes;
  for (int64_t scene = 0; layout.own_scenes.empty() && scene < layout.scenes; ++scene)
    scenes.push_back(scene);
  return true;
}

std::unique_ptr<ImageReader> open_tiff_layout(std::shared_ptr<const TiffFile> file,
                                              const TiffLayout& layout,
                                              const Selection& selection) {
  return std::make_unique<TiffImage>(std::move(file), layout, selection);
}

}  // namespace cytra::io
