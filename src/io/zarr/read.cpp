// Part of io/zarr/ome_zarr.h: the reader of OME-Zarr images and of plain Zarr arrays.
#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "io/pixels/format.h"
#include "io/zarr/array.h"
#include "io/zarr/ome_zarr.h"

namespace cytra::io {
namespace {

constexpr std::size_t kLargestVirtual = std::size_t{1} << 60;

class ZarrReader final : public ImageReader {
 public:
  ZarrReader(const std::string& path, const Selection& selection)
      : path_(path), store_(path), array_(open(selection)) {
    array_.check_stored();
  }

  Image read(const Region& asked) const override {
    const Region region = within(asked, info_.shape, path_);
    Image image;
    image.dtype = info_.dtype;
    image.geometry = moved(info_.geometry, region);
    image.channel_names = info_.channel_names;
    const std::vector<Box> boxes = boxes_of(region);
    const std::array<int64_t, 4> shape{
        info_.shape[0], region.size[0], region.size[1], region.size[2]};
    std::size_t bytes = size_of(image.dtype);
    for (const int64_t side : shape) bytes *= static_cast<std::size_t>(side);
    check_size(bytes, boxes);
    allocate(path_, shape, bytes, image);
    Destination destination{image.pixels.data(), {}};
    int64_t stride = 1;
    for (const auto& [axis, side] : {std::pair{axes_.x, shape[3]},
                                     {axes_.y, shape[2]},
                                     {axes_.z, shape[1]},
                                     {axes_.c, shape[0]}}) {
      if (axis >= 0) destination.strides[static_cast<std::size_t>(axis)] = stride;
      stride *= side;
    }
    array_.read(boxes, destination);
    return image;
  }

 private:
  ZarrArray open(const Selection& selection);
  ZarrArray open_level(const OmeImage& image, const Selection& selection);
  void set_shape(const Selection& selection,
                 const ZarrMeta& meta,
                 const std::vector<std::string>& names);

  /// Checks the size of a read. Parts of a sparse image have no files; up to 1 GB of them may be
  /// read at once.
  void check_size(std::size_t bytes, const std::vector<Box>& boxes) const {
    if (bytes <= kLargestChunk) return;
    const std::size_t stored = array_.covered(boxes) * size_of(info_.dtype);
    if (bytes - kLargestChunk <= stored) return;
    throw DataError(
        "{}: a region of {}, and files for {} of it, expected files for all but 1 GB; the image "
        "may be damaged, else read it in parts",
        path_,
        format_bytes(static_cast<double>(bytes)),
        format_bytes(static_cast<double>(stored)));
  }

  /// The boxes of a region: one for every run of neighbouring channels.
  std::vector<Box> boxes_of(const Region& region) const {
    const int64_t plane = region.size[0] * region.size[1] * region.size[2];
    std::vector<Box> boxes;
    Box box;
    box.size.fill(1);
    const auto place = [&](int axis, int64_t begin, int64_t size) {
      if (axis < 0) return;
      box.begin[static_cast<std::size_t>(axis)] = begin;
      box.size[static_cast<std::size_t>(axis)] = size;
    };
    place(axes_.t, chosen_.timepoint, 1);
    place(axes_.z, region.begin[0], region.size[0]);
    place(axes_.y, region.begin[1], region.size[1]);
    place(axes_.x, region.begin[2], region.size[2]);
    const std::vector<int64_t>& channels = chosen_.channels;
    for (std::size_t i = 0, end = 0; i < channels.size(); i = end) {
      for (end = i + 1; end < channels.size() && channels[end] == channels[end - 1] + 1;) ++end;
      place(axes_.c, channels[i], static_cast<int64_t>(end - i));
      box.offset = static_cast<int64_t>(i) * plane;
      boxes.push_back(box);
    }
    return boxes;
  }

  std::string path_;
  ZarrStore store_;
  Axes axes_;
  Chosen chosen_;
  ZarrArray array_;  // the last: open() sets the others
};

ZarrArray ZarrReader::open(const Selection& selection) {
  ZarrNode root = find_zarr_node(store_, "");
  if (root.format == 0) {
    throw DataError(path_ +
                    ": not a Zarr image, expected zarr.json, .zattrs or .zarray in this folder");
  }
  if (root.is_array) {
    ZarrMeta meta = parse_zarr_array(store_, root);
    axes_ = axes_by_name(meta.dimension_names);
    if (axes_.y < 0 || axes_.x < 0) axes_ = axes_by_position(meta.rank, root.place);
    set_shape(selection, meta, {});
    return {store_, "", std::move(meta)};
  }
  const std::vector<std::string> scenes = find_ome_scenes(store_, root);
  if (scenes.empty()) {
    const auto labels = root.attributes.find("labels");
    throw DataError("{}: {}, expected 'multiscales', 'plate', 'well' or 'bioformats2raw.layout'",
                    root.attributes_place,
                    labels == root.attributes.end()
                        ? "a group without an image"
                        : "the list of labels " + excerpt(*labels) + "; open one of these folders");
  }
  info_.scenes = std::ssize(scenes);
  ImageInfo only_scenes;
  only_scenes.scenes = info_.scenes;
  select(path_, {selection.scene, 0, -1, {}}, only_scenes);
  const std::string& key = scenes[static_cast<std::size_t>(selection.scene)];
  if (key.empty()) return open_level(parse_ome_image(store_, root), selection);
  const ZarrNode group = find_zarr_node(store_, key);
  if (group.format == 0 || group.is_array)
    throw DataError(store_.path_of(key) + ": not a Zarr group, expected the image that " +
                    root.attributes_place + " lists");
  return open_level(parse_ome_image(store_, group), selection);
}

ZarrArray ZarrReader::open_level(const OmeImage& image, const Selection& selection) {
  info_.levels = std::ssize(image.levels);
  ImageInfo only_levels;
  only_levels.levels = info_.levels;
  select(path_, {0, selection.level, -1, {}}, only_levels);
  const OmeImage::Level& level = image.levels[static_cast<std::size_t>(selection.level)];
  const ZarrNode node = find_zarr_node(store_, level.path);
  ZarrMeta meta = parse_zarr_array(store_, node);
  if (image.rank != 0 && image.rank != meta.rank) {
    throw DataError("{}: {} dimensions, expected {}, one for each axis of the image",
                    node.place,
                    meta.rank,
                    image.rank);
  }
  axes_ = image.rank == 0 ? axes_by_position(meta.rank, node.place) : image.axes;
  info_.geometry = level.geometry;
  set_shape(selection, meta, image.channel_names);
  return {store_, level.path, std::move(meta)};
}

/// Sets the shape. Throws: DataError for a time point or channel that the array does not have.
void ZarrReader::set_shape(const Selection& selection,
                           const ZarrMeta& meta,
                           const std::vector<std::string>& names) {
  if (!selection.axes.empty()) {
    const auto end = meta.shape.begin() + static_cast<std::ptrdiff_t>(meta.rank);
    axes_ = {};
    int index = 0;
    for (const char name : array_axes(path_, selection.axes, {meta.shape.begin(), end})) {
      if (name != '-')
        (name == 'T'   ? axes_.t
         : name == 'C' ? axes_.c
         : name == 'Z' ? axes_.z
         : name == 'Y' ? axes_.y
                       : axes_.x) = index;
      ++index;
    }
  }
  const auto side_of = [&](int axis) {
    return axis < 0 ? int64_t{1} : meta.shape[static_cast<std::size_t>(axis)];
  };
  if (bytes_of(meta.shape, meta.rank, 8) > kLargestVirtual || side_of(axes_.c) > 1'000'000) {
    throw DataError(path_ +
                    ": a size that is not plausible, expected less than 10^17 voxels and a "
                    "million channels; the metadata may be damaged");
  }
  info_.dtype = meta.type.dtype;
  info_.shape = {side_of(axes_.c), side_of(axes_.z), side_of(axes_.y), side_of(axes_.x)};
  info_.timepoints = side_of(axes_.t);
  if (std::ssize(names) == info_.shape[0] &&
      std::ranges::any_of(names, [](auto& name) { return !name.empty(); }))
    info_.channel_names = names;
  chosen_ = select(path_, selection, info_);
}

}  // namespace

bool is_zarr(const std::string&, const std::string& path) {
  namespace fs = std::filesystem;
  if (!folder_exists(path)) return false;
  std::string name = path;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  if (name.ends_with(".zarr")) return true;
  for (const char* mark : {"zarr.json", ".zattrs", ".zgroup", ".zarray"}) {
    if (path_exists(name + "/" + mark)) return true;
  }
  return false;
}

std::unique_ptr<ImageReader> open_zarr(const std::string& path, const Selection& selection) {
  return std::make_unique<ZarrReader>(path, selection);
}

}  // namespace cytra::io
