#include "io/writer.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/strings.h"
#include "base/warn_once.h"
#include "io/formats.h"
#include "io/pixels/format.h"

namespace cytra::io {

void write_whole(ImageWriter& writer, const Image& image) {
  writer.write(image);
  writer.finish();
}

ImageWriter::ImageWriter(std::string path, ImageInfo info, bool holds_time)
    : path_(std::move(path)), info_(std::move(info)), axis_(info_.shape[1] > 1 ? 0 : 1) {
  const std::size_t names = info_.channel_names.size();
  if (*std::ranges::min_element(info_.shape) < 1 || info_.timepoints < 1 ||
      (info_.timepoints > 1 && !holds_time) ||
      (names != 0 && names != static_cast<std::size_t>(info_.shape[0])))
    throw std::logic_error("an image without voxels, of several time points, or with other names");
}

void ImageWriter::write(const Region& asked, const Image& pixels) {
  const Region region = within(asked, info_.shape, path_);
  if (region.begin[axis_] != next_ || pixels.shape[axis_ + 1] != region.size[axis_])
    throw std::logic_error("rows of an image that do not follow those before");
  for (std::size_t i = 0; i < 3; ++i) {
    if (i != axis_ && region.size[i] != info_.shape[i + 1])
      throw std::logic_error("a part of an image that is not made of whole rows");
  }
  write(pixels);
}

void ImageWriter::write(const Image& pixels) {
  std::array<int64_t, 4> shape = info_.shape;
  const int64_t count = shape[axis_ + 1] = pixels.shape[axis_ + 1];
  if (is_failed_ || count < 1 || count > rows() - next_ || pixels.dtype != info_.dtype ||
      pixels.shape != shape || pixels.pixels.size() != pixels.bytes())
    throw std::logic_error("pixels of another type or size than the image's next rows");
  is_failed_ = true;
  put(next_, pixels);
  is_failed_ = false;
  next_ += count;
  if (next_ < rows() || timepoint_ + 1 == info_.timepoints) return;
  next_ = 0;
  ++timepoint_;
}

void ImageWriter::finish() {
  if (is_failed_ || next_ != rows())
    throw std::logic_error("an image whose rows are not all written, or that is finished");
  is_failed_ = true;
  close();
}

namespace {

/// Says once what files of a format can't hold of an image's place. Distances alone are not told:
/// who chooses PNG or NumPy knows.
void warn_of_lost_place(const Format& format, const Geometry& geometry) {
  if (!geometry.is_placed()) return;
  if (format.position == Format::Position::nothing) {
    warn_once(format.title +
              " can't hold where voxels lie: left out; .nii.gz, .nrrd, .mha, .tif and .zarr can");
  } else if (format.position == Format::Position::origin && !axis_aligned_origin_um(geometry)) {
    warn_once(format.title +
              " can't hold axes that do not run to left, posterior, superior: their directions "
              "and the origin are left out, distances stay; .nii.gz, .nrrd and .mha hold them");
  }
}

}  // namespace

std::unique_ptr<ImageWriter> create_image(const std::string& path,
                                          const ImageInfo& info,
                                          const OutputOptions& options) {
  const std::string name = in_small_letters(std::filesystem::path(path).filename().string());
  std::set<std::string> endings;
  for (const Format& format : formats()) {
    for (const std::string& ending : format.written_endings) {
      endings.insert(ending);
      if (name.size() <= ending.size() || !name.ends_with(ending)) continue;
      auto writer = format.create(path, info, options);
      warn_of_lost_place(format, info.geometry);
      return writer;
    }
  }
  throw ConfigError(
      "{}: no format is written by that ending, expected {}", path, fmt::join(endings, " "));
}

}  // namespace cytra::io
