#include "io/reader.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "io/image_folder.h"
#include "io/input_file.h"
#include "io/pixels/format.h"

namespace cytra::io {
namespace {

/// The first bytes of a file; "" for a folder.
std::string first_bytes(const std::string& path) {
  if (folder_exists(path)) return "";
  const InputFile file(path);
  char head[kHeadBytes];
  const int64_t count = file.read_at(0, head, sizeof head);
  if (count < 0) throw_errno("can't be read", path, errno);
  return {head, static_cast<std::size_t>(count)};
}

/// The format of a file, or of a folder, by its content; null: none that is known.
const Format* probe(const std::string& head, const std::string& path) {
  for (const Format& format : formats()) {
    if (format.probe(head, path)) return &format;
  }
  return nullptr;
}

bool is_older_matlab(const std::string& path) {
  return in_small_letters(path).ends_with(".mat") && file_exists(path) &&
         InputFile(path).begin(10) == "MATLAB 5.0";
}

[[noreturn]] void fail_unknown(const std::string& path, const std::string& head) {
  const bool is_folder = folder_exists(path);
  const std::string found = is_folder                   ? "a folder without a Zarr image"
                            : head.empty()              ? "an empty file"
                            : head.substr(0, 2) == "PK" ? "a zip archive"
                            : is_older_matlab(path)     ? "a file of MATLAB from before v7.3"
                                                        : "not an image of a known format";
  const std::string known = format_titles("or", [](const Format&) { return true; });
  const std::string conversion = conversion_of(path);
  throw DataError(path + ": " + found + ", expected " + known + "; " +
                  (conversion.empty() ? "convert it to TIFF" : conversion));
}

}  // namespace

bool is_image_path(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  if (folder_exists(path)) {
    // A folder that a writer has not finished is no image yet.
    return probe("", path) != nullptr &&
           !(name.starts_with(".") && name.find(".tmp.") != std::string::npos);
  }
  const Format* format = format_of_name(name);
  return format != nullptr && !format->are_folders && !is_older_matlab(path);
}

std::string file_of(const std::string& path) {
  for (const Format& format : formats()) {
    if (!format.are_archives) continue;
    for (const std::string& ending : format.endings) {
      const std::size_t at = path.find(ending + "/");
      if (at == std::string::npos) continue;
      const std::string file = path.substr(0, at + ending.size());
      if (file_exists(file)) return file;
    }
  }
  return path;
}

std::vector<std::string> other_files_of(const std::string& path) {
  try {
    const std::string head = first_bytes(file_of(path));
    const Format* format = probe(head, path);
    if (format != nullptr && format->other_files != nullptr) return format->other_files(path);
  } catch (const Error&) {  // reported when the image is read
  }
  return {};
}

namespace {

/// A plane of a stack.
class PlaneReader final : public ImageReader {
 public:
  PlaneReader(std::unique_ptr<ImageReader> stack, int64_t plane, const std::string& path)
      : stack_(std::move(stack)),
        path_(path),
        own_(within({{plane, 0, 0}, {1, -1, -1}}, stack_->info().shape, path)) {
    info_ = stack_->info();
    info_.geometry = moved(info_.geometry, own_);
    info_.shape[1] = 1;
  }
  Image read(const Region& region) const override {
    Region part = within(region, info_.shape, path_);
    part.begin[0] = own_.begin[0];
    return stack_->read(part);
  }

 private:
  std::unique_ptr<ImageReader> stack_;
  std::string path_;
  Region own_;
};

}  // namespace

std::unique_ptr<ImageReader> open_image(const std::string& path, const Selection& selection) {
  const std::string head = first_bytes(file_of(path));
  const Format* format = probe(head, path);
  if (format == nullptr) fail_unknown(path, head);
  if (format->names_own_axes && !selection.axes.empty()) {
    throw DataError(path + ": axes: " + printable(selection.axes, 20) + ": " +
                    format_titles("and", [](const Format& one) { return one.names_own_axes; }) +
                    " name their own axes, expected none here; leave it out");
  }
  Selection chosen = selection;
  if (chosen.scene == -1 && !format->chooses_scene) chosen.scene = 0;
  std::unique_ptr<ImageReader> reader = format->open(path, chosen);
  if (selection.scene == -1 && reader->info().scenes > 1) tell_other_scenes(path);
  if (selection.plane >= 0)
    return std::make_unique<PlaneReader>(std::move(reader), selection.plane, path);
  return reader;
}

Image read_image(const std::string& path, const Selection& selection) {
  return open_image(path, selection)->read({});
}

Region within(const Region& region, const std::array<int64_t, 4>& shape, const std::string& path) {
  Region whole = region;
  for (std::size_t i = 0; i < 3; ++i) {
    const int64_t side = shape[i + 1];
    int64_t& size = whole.size[i];
    if (size == -1) size = side - whole.begin[i];
    if (whole.begin[i] < 0 || size < 1 || whole.begin[i] >= side || size > side - whole.begin[i]) {
      throw DataError("{}: a region of {} from {} along {}, expected one within 0 to {}",
                      path,
                      region.size[i],
                      region.begin[i],
                      "ZYX"[i],
                      side);
    }
  }
  return whole;
}

Geometry moved(Geometry geometry, const Region& region) {
  for (auto* affine : {&geometry.affine, &geometry.qform_affine}) {
    for (std::size_t row = 0; row < 12; row += 4) {
      for (std::size_t side = 0; side < 3; ++side)
        (*affine)[row + 3] += (*affine)[row + side] * static_cast<double>(region.begin[2 - side]);
    }
  }
  return geometry;
}

Image allocate_part(const std::string& path,
                    const ImageInfo& info,
                    const Region& region,
                    std::size_t file_bytes) {
  Image image;
  image.dtype = info.dtype;
  image.geometry = moved(info.geometry, region);
  image.channel_names = info.channel_names;
  allocate(
      path, {info.shape[0], region.size[0], region.size[1], region.size[2]}, file_bytes, image);
  return image;
}

Image crop(const Image& image, const Region& region, const std::string& path) {
  const Region part = within(region, image.shape, path);
  Image cropped;
  cropped.dtype = image.dtype;
  cropped.geometry = moved(image.geometry, part);
  cropped.channel_names = image.channel_names;
  cropped.shape = {image.shape[0], part.size[0], part.size[1], part.size[2]};
  cropped.pixels.resize(cropped.bytes());
  const std::size_t size = size_of(image.dtype),
                    run = static_cast<std::size_t>(part.size[2]) * size;
  unsigned char* into = cropped.pixels.data();
  for (int64_t c = 0; c < image.shape[0]; ++c) {
    for (int64_t z = part.begin[0]; z < part.begin[0] + part.size[0]; ++z) {
      for (int64_t y = part.begin[1]; y < part.begin[1] + part.size[1]; ++y, into += run) {
        const int64_t row = (c * image.shape[1] + z) * image.shape[2] + y;
        const auto from = static_cast<std::size_t>(row * image.shape[3] + part.begin[2]) * size;
        std::memcpy(into, image.pixels.data() + from, run);
      }
    }
  }
  return cropped;
}

Chosen select(const std::string& path, const Selection& selection, ImageInfo& info) {
  const auto check = [&](const char* what, int64_t index, int64_t count) {
    if (index < 0 || index >= count) {
      throw DataError("{}: no {} {}, expected 0{}",
                      path,
                      what,
                      index,
                      count > 1 ? fmt::format(" to {}", count - 1) : "");
    }
  };
  check("scene", selection.scene, info.scenes);
  check("level", selection.level, info.levels);
  Chosen chosen;
  if (selection.timepoint != -1) {
    check("time point", selection.timepoint, info.timepoints);
    chosen.timepoint = selection.timepoint;
  } else if (info.timepoints > 1) {
    throw DataError(
        "{}: {} time points, expected one; choose one of 0 to {} by `timepoint`, or, of TIFF and "
        "arrays whose time points are planes of a stack, say so by `axes`, such as ZYX",
        path,
        info.timepoints,
        info.timepoints - 1);
  }
  chosen.channels = selection.channels;
  if (chosen.channels.empty()) {
    for (int64_t i = 0; i < info.shape[0]; ++i) chosen.channels.push_back(i);
    return chosen;
  }
  std::vector<std::string> names;
  for (const int64_t channel : chosen.channels) {
    check("channel", channel, info.shape[0]);
    if (!info.channel_names.empty())
      names.push_back(info.channel_names[static_cast<std::size_t>(channel)]);
  }
  info.shape[0] = std::ssize(chosen.channels);
  info.channel_names = std::move(names);
  return chosen;
}

WholeReader::WholeReader(std::string path,
                         const ImageInfo& info,
                         const Selection& selection,
                         std::function<Image()> decode)
    : path_(std::move(path)), all_channels_(info.shape[0]), decode_(std::move(decode)) {
  info_ = info;
  chosen_ = select(path_, selection, info_);
}

Image WholeReader::selected() const {
  Image image = decode_();
  image.geometry = info_.geometry;
  image.channel_names = info_.channel_names;
  std::vector<int64_t> all(static_cast<std::size_t>(all_channels_));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  if (chosen_.channels == all) return image;
  std::vector<unsigned char> pixels;
  const std::size_t bytes = image.pixels.size() / all.size();
  for (const int64_t channel : chosen_.channels) {
    const auto at = image.pixels.begin() + static_cast<std::ptrdiff_t>(bytes) * channel;
    pixels.insert(pixels.end(), at, at + static_cast<std::ptrdiff_t>(bytes));
  }
  image.shape[0] = info_.shape[0];
  image.pixels.swap(pixels);
  return image;
}

Image WholeReader::read(const Region& region) const {
  const Region part = within(region, info_.shape, path_);
  const bool is_whole = part.size[0] == info_.shape[1] && part.size[1] == info_.shape[2] &&
                        part.size[2] == info_.shape[3];
  if (is_whole && !is_decoded_) return selected();  // not kept: is not asked for again
  std::call_once(once_, [this] {
    image_ = selected();
    is_decoded_ = true;
  });
  return crop(image_, part, path_);
}

std::size_t touched_by(const Region& region, const ImageInfo& info) {
  return static_cast<std::size_t>(info.shape[0] * region.size[0] * region.size[1] * info.shape[3]) *
         size_of(info.dtype);
}

Image read_samples(const std::string& path,
                   const ImageInfo& info,
                   const Samples& samples,
                   const unsigned char* data,
                   const std::vector<int64_t>& channels,
                   const Region& region,
                   std::size_t file_bytes) {
  Image image;
  image.dtype = info.dtype;
  allocate(path,
           {std::ssize(channels), region.size[0], region.size[1], region.size[2]},
           file_bytes,
           image);
  image.geometry = moved(info.geometry, region);
  image.channel_names = info.channel_names;
  const auto& steps = samples.steps;
  unsigned char* into = image.pixels.data();
  const std::size_t row = static_cast<std::size_t>(region.size[2]) * size_of(image.dtype);
  for (const int64_t c : channels) {
    for (int64_t z = region.begin[0]; z < region.begin[0] + region.size[0]; ++z) {
      for (int64_t y = region.begin[1]; y < region.begin[1] + region.size[1]; ++y, into += row) {
        const unsigned char* from = data + samples.offset + c * steps[0] + z * steps[1] +
                                    y * steps[2] + region.begin[2] * steps[3];
        if (samples.is_scaled) {
          convert_scaled(samples.type, samples.scale, from, steps[3], region.size[2], into);
        } else {
          convert(path, samples.type, from, steps[3], region.size[2], into);
        }
      }
    }
  }
  return image;
}

}  // namespace cytra::io
