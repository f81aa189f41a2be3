#include "io/zarr/write.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "base/error.h"
#include "base/files.h"
#include "base/own_files.h"
#include "io/compression/ordered_jobs.h"
#include "io/pixels/format.h"
#include "io/zarr/array_write.h"
#include "io/zarr/grid.h"
#include "io/zarr/meta.h"
#include "io/zarr/ome_zarr.h"
#include "io/zarr/ome_zarr_write.h"

namespace cytra::io {
namespace {

using Shape = std::array<int64_t, 4>;
using Version = ZarrOptions::Version;

/// Writes JSON; channel names come from files, in any encoding.
std::string written(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

std::vector<ByteCodec> codecs_of(ZarrOptions::Compressor compressor, std::size_t sample_bytes) {
  using Compressor = ZarrOptions::Compressor;
  constexpr int kGzipLevel = 5, kZstdLevel = 3, kBloscLevel = 3;
  switch (compressor) {
    case Compressor::none:
      return {};
    case Compressor::gzip:
      return {{ByteCodec::Kind::gzip, kGzipLevel}};
    case Compressor::zstd:
      return {{ByteCodec::Kind::zstd, kZstdLevel}};
    case Compressor::blosc:
      return {{ByteCodec::Kind::blosc, kBloscLevel, sample_bytes}};
  }
  throw std::logic_error("unknown compressor");
}

void check(const std::string& path, const ImageInfo& info, const ZarrOptions& options) {
  for (const int64_t side : info.shape) {
    if (side < 1) throw std::logic_error("a Zarr image without voxels");
  }
  if (info.timepoints < 1 ||
      (!info.channel_names.empty() && std::ssize(info.channel_names) != info.shape[0]))
    throw std::logic_error("a Zarr image without time points, or channels and names that differ");
  bool is_sharded = false;
  for (std::size_t i = 0; i < 4; ++i) {
    is_sharded = is_sharded || options.shard[i] != 0;
    if (options.chunk[i] < 0 || options.shard[i] < 0)
      throw ConfigError(path + ": a chunk or shard of a negative size, expected at least 1");
  }
  if (is_sharded && options.version == Version::v0_4)
    throw ConfigError(path + ": shards, expected none for version 0.4; choose 0.5");
  if (options.levels < 0 || options.levels > 30)
    throw ConfigError("{}: {} levels, expected 0 to 30", path, options.levels);
  const std::string& labels = options.labels;
  if (labels == "." || labels == ".." || labels.find('/') != std::string::npos)
    throw ConfigError(path + ": the labels' name '" + labels + "', expected one without '/'");
  if ((!labels.empty() || options.is_labels) &&
      (info.dtype == Dtype::f32 || info.dtype == Dtype::f64))
    throw DataError(path + ": labels of type " + name_of(info.dtype) + ", expected integers");
}

/// The place to write to: for labels below the image, in that image's version.
std::string place_of(const std::string& path, const ImageInfo& info, ZarrOptions& options) {
  if (options.labels.empty()) return path;
  ZarrStore store(path);
  const ZarrNode image = find_zarr_node(store, "");
  if (!image.attributes.contains("multiscales"))
    throw DataError(path + ": not an OME-Zarr image, expected the one that the labels belong to");
  Shape shape = open_zarr(path, {0, 0, 0, {}})->info().shape;
  shape[0] = 1;
  if (shape != info.shape) {
    throw DataError(
        "{}: labels of {} x {} x {} (Z, Y, X) and {} channels, expected {} x {} x {} as the image, "
        "and one",
        path,
        info.shape[1],
        info.shape[2],
        info.shape[3],
        info.shape[0],
        shape[1],
        shape[2],
        shape[3]);
  }
  options.version = image.format == 3 ? Version::v0_5 : Version::v0_4;
  options.is_labels = true;
  make_folders(path + "/labels");
  return path + "/labels/" + options.labels;
}

/// Adds a name to PATH/labels' list.
void list_labels(const std::string& path, const ZarrOptions& options) {
  ZarrStore store(path);
  const bool is_v3 = options.version == Version::v0_5;
  const ZarrNode node = find_zarr_node(store, "labels");
  Json ome = node.attributes;
  Json& names = ome["labels"];
  if (!names.is_array()) names = Json::array();
  if (std::find(names.begin(), names.end(), options.labels) == names.end())
    names.push_back(options.labels);
  const std::string folder = path + "/labels/";
  for (const char* list : {"zarr.json", ".zattrs", ".zgroup"}) own_file(folder + list);  // added to
  if (is_v3) {
    ome["version"] = "0.5";
    write_file(folder + "zarr.json", written(group_json(ome)));
  } else {
    write_file(folder + ".zattrs", written(ome));
    write_file(folder + ".zgroup", Json{{"zarr_format", 2}}.dump());
  }
}

}  // namespace

std::array<int64_t, 4> usual_chunk(const ImageInfo& info) {
  const auto& spacing = info.geometry.spacing_um;
  if (info.shape[1] == 1) return {1, 1, 512, 512};
  if (spacing[0] > 0 && spacing[2] > 0 && spacing[0] <= 1.42 * spacing[2]) return {1, 64, 64, 64};
  return {1, static_cast<int64_t>(16 / size_of(info.dtype)), 256, 256};
}

struct ZarrWriter::Impl {
  Impl(const std::string& where, const ImageInfo& given, const ZarrOptions& asked)
      : path(where),
        info(given),
        options(asked),
        folder((check(path, info, options), place_of(path, info, options))),
        axes(written_axes(info)),
        first(info.timepoints > 1 ? 1 : 0),
        levels(pyramid_levels(info.shape, info.geometry.spacing_um, options.levels)),
        level_0(folder, "0", meta_of(0)),
        ranges(
            static_cast<std::size_t>(info.shape[0]),
            {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {}

  ZarrMeta meta_of(std::size_t level) const;
  Box box_of(int64_t timepoint, const std::array<int64_t, 4>& begin, const Shape& size) const;
  Extent strides_of(const Shape& shape) const;
  Shape unit_of(const ZarrMeta& meta) const;
  void note_ranges(const Image& pixels);
  void write_level_0(const Region& region,
                     const Shape& shape,
                     const unsigned char* samples,
                     int64_t timepoint);
  void write_level(std::size_t level) const;
  void write_metadata();
  bool is_v3() const { return options.version == Version::v0_5; }

  std::string path;
  ImageInfo info;
  ZarrOptions options;
  ZarrFolder folder;
  std::vector<std::size_t> axes;
  std::size_t first;  // their first dimension: 1 after time
  std::vector<PyramidLevel> levels;
  ZarrArrayWriter level_0;
  std::mutex mutex;
  Ranges ranges;  // guarded by mutex
  std::mutex jobs_mutex;
  OrderedJobs jobs;  // guarded by jobs_mutex
};

ZarrMeta ZarrWriter::Impl::meta_of(std::size_t level) const {
  ZarrMeta meta;
  meta.rank = first + axes.size();
  meta.shape.fill(1);
  meta.chunk.fill(1);
  if (first > 0) {
    meta.shape[0] = info.timepoints;  // a chunk is of one
    meta.dimension_names.emplace_back("t");
  }
  meta.type.dtype = info.dtype;
  meta.type.bytes = size_of(info.dtype);
  meta.type.kind = name_of(info.dtype)[0];
  meta.separator = '/';
  if (is_v3()) meta.key_prefix = "c";
  const Shape usual = usual_chunk(info);
  Extent shard{1};
  bool is_sharded = false;
  for (std::size_t i = first; i < meta.rank; ++i) {
    const std::size_t axis = axes[i - first];
    meta.shape[i] = levels[level].shape[axis];
    const int64_t chunk = options.chunk[axis] > 0 ? options.chunk[axis] : usual[axis];
    meta.chunk[i] = std::min(chunk, meta.shape[i]);
    const int64_t file =
        std::clamp(options.shard[axis], meta.chunk[i], std::max(meta.shape[i], meta.chunk[i]));
    shard[i] = (file + meta.chunk[i] - 1) / meta.chunk[i] * meta.chunk[i];
    is_sharded = is_sharded || options.shard[axis] > 0;
    meta.dimension_names.push_back(kAxisNames[axis]);
  }
  if (bytes_of(meta.chunk, meta.rank, meta.type.bytes) > kLargestChunk)
    throw ConfigError(path + ": chunks larger than 1 GB, expected about 1 MB");
  meta.codecs.bytes = codecs_of(options.compressor, meta.type.bytes);
  if (!is_sharded) return meta;
  Codecs shards, index;
  index.bytes = {{ByteCodec::Kind::crc32c}};
  shards.inner = std::make_shared<Codecs>(std::move(meta.codecs));
  shards.index = std::make_shared<Codecs>(std::move(index));
  shards.inner_chunk = meta.chunk;
  meta.chunk = shard;
  meta.codecs = std::move(shards);
  return meta;
}

Box ZarrWriter::Impl::box_of(int64_t timepoint,
                             const std::array<int64_t, 4>& begin,
                             const Shape& size) const {
  Box box;
  box.size.fill(1);
  box.begin[0] = timepoint;  // or the first axis', without time
  for (std::size_t i = 0; i < axes.size(); ++i) {
    box.begin[first + i] = begin[axes[i]];
    box.size[first + i] = size[axes[i]];
  }
  return box;
}

Extent ZarrWriter::Impl::strides_of(const Shape& shape) const {
  const Shape all{shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
  Extent strides{};
  for (std::size_t i = 0; i < axes.size(); ++i) strides[first + i] = all[axes[i]];
  return strides;
}

/// The shape that is compressed at once.
Shape ZarrWriter::Impl::unit_of(const ZarrMeta& meta) const {
  const Extent& chunk = meta.codecs.inner ? meta.codecs.inner_chunk : meta.chunk;
  Shape unit{1, 1, 1, 1};
  for (std::size_t i = 0; i < axes.size(); ++i) unit[axes[i]] = chunk[first + i];
  return unit;
}

void ZarrWriter::Impl::note_ranges(const Image& pixels) {
  const std::size_t channels = ranges.size();
  Ranges found =
      Ranges(channels,
             {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()});
  with_type(info.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* value = reinterpret_cast<const T*>(pixels.pixels.data());
    const std::size_t count = static_cast<std::size_t>(pixels.count()) / channels;
    for (auto& [low, high] : found) {
      T least = std::numeric_limits<T>::max(), most = std::numeric_limits<T>::lowest();
      for (std::size_t i = 0; i < count; ++i, ++value) {
        if (!std::isfinite(static_cast<double>(*value))) continue;
        least = std::min(least, *value);
        most = std::max(most, *value);
      }
      if (least <= most) low = static_cast<double>(least), high = static_cast<double>(most);
    }
  });
  const std::lock_guard<std::mutex> lock(mutex);
  for (std::size_t c = 0; c < channels; ++c) {
    ranges[c].first = std::min(ranges[c].first, found[c].first);
    ranges[c].second = std::max(ranges[c].second, found[c].second);
  }
}

/// Writes level 0 chunk by chunk, on several threads where the region completes any; when several
/// threads write, each does all of its own.
void ZarrWriter::Impl::write_level_0(const Region& region,
                                     const Shape& shape,
                                     const unsigned char* samples,
                                     int64_t timepoint) {
  const Extent strides = strides_of(shape);
  const std::array<int64_t, 4> begin{0, region.begin[0], region.begin[1], region.begin[2]};
  Shape step = shape, end{};
  const Shape unit = unit_of(meta_of(0));
  bool is_complete = true;
  for (std::size_t i = 0; i < 4; ++i) {
    end[i] = begin[i] + shape[i];
    step[i] = unit[i];
    is_complete = is_complete && (end[i] == info.shape[i] || end[i] / unit[i] > begin[i] / unit[i]);
  }
  std::unique_lock<std::mutex> lock(jobs_mutex, std::defer_lock);
  if (!is_complete || !lock.try_lock())
    return level_0.write(box_of(timepoint, begin, shape), samples, strides);
  for_each_step(begin, end, step, [&](const Shape& at, const Shape& size) {
    Box box = box_of(timepoint, at, size);
    for (std::size_t i = 0; i < axes.size(); ++i)
      box.offset += (at[axes[i]] - begin[axes[i]]) * strides[first + i];
    jobs.post([this, box, samples, strides]() -> OrderedJobs::Result {
      level_0.write(box, samples, strides);
      return [] {};
    });
  });
  jobs.drain();
}

/// Makes a level from the one before, a chunk at a time.
void ZarrWriter::Impl::write_level(std::size_t level) const {
  const PyramidLevel &large = levels[level - 1], &small = levels[level];
  const ZarrStore store(folder.temporary());
  const ZarrArray from(store, std::to_string(level - 1), meta_of(level - 1));
  const ZarrMeta meta = meta_of(level);
  ZarrArrayWriter into(folder, std::to_string(level), meta);
  std::array<int64_t, 3> factor{};
  for (std::size_t i = 0; i < 3; ++i) factor[i] = small.factor[i] / large.factor[i];
  OrderedJobs level_jobs;
  int64_t t = 0;
  const auto step = [&](const Shape& at, const Shape& size) {
    level_jobs.post([&, t, at, size]() -> OrderedJobs::Result {
      Image part;
      part.dtype = info.dtype;
      Shape begin = at;
      for (std::size_t i = 0; i < 4; ++i) {
        const int64_t times = i == 0 ? 1 : factor[i - 1];
        begin[i] = at[i] * times;
        part.shape[i] = std::min(size[i] * times, large.shape[i] - begin[i]);
      }
      part.pixels.resize(part.bytes());
      from.read({box_of(t, begin, part.shape)}, {part.pixels.data(), strides_of(part.shape)});
      const Image less = shrink(part, factor, options.is_labels);
      into.write(box_of(t, at, less.shape), less.pixels.data(), strides_of(less.shape));
      return [] {};
    });
  };
  for (; t < info.timepoints; ++t) for_each_step({}, small.shape, unit_of(meta), step);
  level_jobs.drain();
  into.finish();
}

void ZarrWriter::Impl::write_metadata() {
  for (auto& [low, high] : ranges) {
    if (low > high) low = high = 0;
  }
  const Json ome = ome_attributes(image_name(folder.path()),
                                  info,
                                  levels,
                                  ranges,
                                  options.is_labels,
                                  !options.labels.empty(),
                                  is_v3());
  for (std::size_t level = 0; level < levels.size(); ++level) {
    const ZarrMeta meta = meta_of(level);
    const std::string key = std::to_string(level);
    if (is_v3()) {
      folder.write(key + "/zarr.json", zarr_v3_json(meta).dump(1));
    } else {
      folder.write(key + "/.zarray", zarr_v2_json(meta).dump(1));
    }
  }
  if (is_v3()) return folder.write("zarr.json", written(group_json(ome)));
  folder.write(".zattrs", written(ome));
  folder.write(".zgroup", Json{{"zarr_format", 2}}.dump());
}

ZarrWriter::ZarrWriter(const std::string& path, const ImageInfo& info, const ZarrOptions& options)
    : impl_(std::make_unique<Impl>(path, info, options)) {}

ZarrWriter::~ZarrWriter() = default;

void ZarrWriter::write(const Region& asked, const Image& pixels, int64_t timepoint) {
  const Region region = within(asked, impl_->info.shape, impl_->path);
  const Shape shape{impl_->info.shape[0], region.size[0], region.size[1], region.size[2]};
  if (pixels.dtype != impl_->info.dtype || pixels.shape != shape || timepoint < 0 ||
      timepoint >= impl_->info.timepoints || pixels.pixels.size() != pixels.bytes())
    throw std::logic_error("pixels of another type or size than the region of a Zarr image");
  if (!impl_->info.channel_names.empty()) impl_->note_ranges(pixels);
  impl_->write_level_0(region, shape, pixels.pixels.data(), timepoint);
}

void ZarrWriter::finish() {
  impl_->level_0.finish();
  for (std::size_t level = 1; level < impl_->levels.size(); ++level) impl_->write_level(level);
  impl_->write_metadata();
  impl_->folder.commit();
  if (!impl_->options.labels.empty()) list_labels(impl_->path, impl_->options);
}

void write_ome_zarr(const std::string& path, const Image& image, const ZarrOptions& options) {
  ZarrWriter writer(path, writable_info(image), options);
  writer.write({}, image);
  writer.finish();
}

}  // namespace cytra::io
