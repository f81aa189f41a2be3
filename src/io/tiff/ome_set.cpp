// Part of io/tiff/layout.h: an OME-TIFF whose planes are in several files of a folder:
// https://docs.openmicroscopy.org/ome-model/latest/ome-tiff/specification.html
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "base/error.h"
#include "base/strings.h"
#include "io/pixels/format.h"
#include "io/tiff/layout.h"

namespace cytra::io {
namespace {

class OmeSetImage final : public ImageReader {
 public:
  OmeSetImage(std::shared_ptr<const TiffFile> file,
              const TiffLayout& layout,
              const Selection& selection)
      : path_(file->path()), layout_(layout), level_(selection.level), first_(std::move(file)) {
    bytes_ = first_->bytes();
    for (std::size_t i = 1; i < layout_.files.size(); ++i) {
      std::error_code error;
      const auto bytes = std::filesystem::file_size(layout_.files[i], error);
      if (error) {
        throw DataError(
            "{}: its file {} can't be found, expected all files of an OME-TIFF in one folder: copy "
            "it, too",
            path_,
            printable(std::filesystem::path(layout_.files[i]).filename().string()));
      }
      bytes_ += bytes;
    }
    // The first plane shows the common properties of all.
    const ImageInfo first = open_plane(0, {})->info();
    samples_ = first.shape[0];
    info_ = first;
    info_.scenes = layout_.scenes;
    info_.timepoints = layout_.timepoints;
    info_.shape = {layout_.channels * samples_, layout_.planes, first.shape[2], first.shape[3]};
    check_shape(path_, info_.shape, info_.dtype, bytes_);
    const auto& names = layout_.channel_names;
    const bool is_named =
        std::ranges::any_of(names, [](const auto& name) { return !name.empty(); });
    info_.channel_names.clear();
    if (is_named && std::ssize(names) == info_.shape[0]) info_.channel_names = names;
    Selection one = selection;
    one.scene = std::max<int64_t>(one.scene, 0);
    chosen_ = select(path_, one, info_);
  }

  Image read(const Region& region) const override {
    const Region part = within(region, info_.shape, path_);
    Image image = allocate_part(path_, info_, part, bytes_);
    const std::size_t plane =
        image.pixels.size() / static_cast<std::size_t>(info_.shape[0] * part.size[0]);
    const Region flat{{0, part.begin[1], part.begin[2]}, {1, part.size[1], part.size[2]}};
    for (int64_t z = 0; z < part.size[0]; ++z) {
      for (int64_t group = 0; group < layout_.channels; ++group) {
        std::vector<int64_t> samples, places;
        for (std::size_t i = 0; i < chosen_.channels.size(); ++i) {
          if (chosen_.channels[i] / samples_ != group) continue;
          samples.push_back(chosen_.channels[i] % samples_);
          places.push_back(static_cast<int64_t>(i) * part.size[0] + z);
        }
        if (samples.empty()) continue;
        const auto at = static_cast<std::size_t>(
            (chosen_.timepoint * layout_.channels + group) * layout_.planes + part.begin[0] + z);
        const auto reader = open_plane(at, samples);
        check_like(reader->info(), at);
        const Image pixels = reader->read(flat);
        for (std::size_t i = 0; i < places.size(); ++i) {
          std::memcpy(image.pixels.data() + static_cast<std::size_t>(places[i]) * plane,
                      pixels.pixels.data() + i * plane,
                      plane);
        }
      }
    }
    return image;
  }

 private:
  /// A file of the set. The last ones that were asked for stay open: a system limits how many may.
  std::shared_ptr<const TiffFile> file(std::size_t number) const {
    constexpr std::size_t kMostOpen = 8;
    if (number == 0) return first_;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found =
        std::ranges::find_if(open_, [&](const auto& one) { return one.first == number; });
    if (found != open_.end()) {
      std::rotate(open_.begin(), found, found + 1);
    } else {
      open_.emplace(open_.begin(), number, std::make_shared<const TiffFile>(layout_.files[number]));
      if (open_.size() > kMostOpen) open_.pop_back();
    }
    return open_.front().second;
  }

  std::unique_ptr<ImageReader> open_plane(std::size_t at,
                                          const std::vector<int64_t>& samples) const {
    const auto from = file(layout_.file_of[at]);
    if (layout_.pages[at] >= from->pages().size()) {
      throw DataError("{}: {} pages, expected page {}, which the OME-XML of {} names",
                      from->path(),
                      from->pages().size(),
                      layout_.pages[at] + 1,
                      path_);
    }
    TiffLayout one;
    one.pages = {layout_.pages[at]};
    one.geometry = layout_.geometry;
    Selection selection;
    selection.level = level_;
    selection.channels = samples;
    return open_tiff_layout(from, one, selection);
  }

  void check_like(const ImageInfo& info, std::size_t at) const {
    if (info.dtype == info_.dtype && info.shape[2] == info_.shape[2] &&
        info.shape[3] == info_.shape[3])
      return;
    throw DataError("{}: page {} has {} x {} pixels of {}, expected {} x {} of {}",
                    layout_.files[layout_.file_of[at]],
                    layout_.pages[at] + 1,
                    info.shape[2],
                    info.shape[3],
                    name_of(info.dtype),
                    info_.shape[2],
                    info_.shape[3],
                    name_of(info_.dtype));
  }

  std::string path_;
  TiffLayout layout_;
  int64_t level_ = 0, samples_ = 1;
  std::size_t bytes_ = 0;  // of all files
  Chosen chosen_;
  std::shared_ptr<const TiffFile> first_;
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<std::size_t, std::shared_ptr<const TiffFile>>> open_;
};

}  // namespace

std::unique_ptr<ImageReader> open_ome_set(std::shared_ptr<const TiffFile> file,
                                          const TiffLayout& layout,
                                          const Selection& selection) {
  return std::make_unique<OmeSetImage>(std::move(file), layout, selection);
}

}  // namespace cytra::io
