#include "pipelines/predict/joined_frames.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/files.h"
#include "base/own_files.h"
#include "io/csv.h"
#include "io/reader.h"
#include "io/writer.h"

namespace cytra::pipelines {
namespace {

using io::Dtype;

/// The values, unsigned of 8 or 16 bits, in a type with more bits.
io::Image widened(io::Image image, Dtype dtype) {
  if (image.dtype == dtype) return image;
  const std::size_t from = io::size_of(image.dtype), to = io::size_of(dtype);
  std::vector<unsigned char> wide(static_cast<std::size_t>(image.count()) * to);
  for (std::size_t i = 0; i * to < wide.size(); ++i) {
    uint32_t value = 0;
    std::memcpy(&value, image.pixels.data() + i * from, from);
    std::memcpy(wide.data() + i * to, &value, to);
  }
  image.dtype = dtype;
  image.pixels = std::move(wide);
  return image;
}

bool is_label_type(Dtype dtype) {
  return dtype == Dtype::u8 || dtype == Dtype::u16 || dtype == Dtype::u32;
}

}  // namespace

const io::Format& joined_format(const std::string& format, const std::string& source) {
  const io::Format* const own = io::format_of_name(source);
  const io::Format* const chosen =
      io::find_format(format != "auto" || own == nullptr ? format : own->written_as);
  return chosen != nullptr && chosen->holds_time ? *chosen : *io::find_format("ome_tiff");
}

void join_timepoints(const std::vector<std::string>& paths,
                     const std::string& into,
                     bool is_labels) {
  // One file is open at a time: a system limits how many may be.
  io::ImageInfo info = io::open_image(paths.at(0))->info();
  for (const std::string& path : paths) {
    const io::ImageInfo own = io::open_image(path)->info();
    if (own.shape != info.shape) {
      throw DataError("{}: {} (C, Z, Y, X), expected {} as the first time point {}",
                      path,
                      fmt::join(own.shape, " x "),
                      fmt::join(info.shape, " x "),
                      paths.front());
    }
    if (own.dtype == info.dtype) continue;
    if (!is_label_type(own.dtype) || !is_label_type(info.dtype))
      throw std::logic_error("time points of types that do not go together");
    if (io::size_of(own.dtype) > io::size_of(info.dtype)) info.dtype = own.dtype;
  }
  info.timepoints = std::ssize(paths);
  info.scenes = info.levels = 1;
  io::OutputOptions options;
  options.is_labels = is_labels && is_label_type(info.dtype);
  const auto writer = io::create_image(into, info, options);
  constexpr int64_t kRows = 512;
  const std::size_t axis = info.shape[1] > 1 ? 0 : 1;
  const int64_t step = axis == 0 ? 1 : kRows;
  for (const std::string& path : paths) {
    const auto frame = io::open_image(path);
    for (int64_t first = 0; first < writer->rows(); first += step) {
      io::Region region;
      region.begin[axis] = first;
      region.size[axis] = std::min(step, writer->rows() - first);
      writer->write(widened(frame->read(region), info.dtype));
    }
  }
  writer->finish();
}

JoinedFrames::JoinedFrames(std::string image, std::string stem, std::string stamp, int64_t frames)
    : image_(std::move(image)), stem_(std::move(stem)), stamp_(std::move(stamp)), frames_(frames) {}

bool JoinedFrames::add(int64_t timepoint, const inference::ResultFiles& files) {
  const std::lock_guard lock(mutex_);
  done_[timepoint] = files;
  return is_last();
}

bool JoinedFrames::leave_out() {
  const std::lock_guard lock(mutex_);
  ++failed_;
  return is_last();
}

inference::ResultFiles JoinedFrames::files() const {
  inference::ResultFiles all;
  for (const auto& [timepoint, files] : done_) all.insert(all.end(), files.begin(), files.end());
  return all;
}

std::vector<std::string> JoinedFrames::paths(const std::string& kind) const {
  std::vector<std::string> found;
  for (const auto& [own, path] : files())
    if (own == kind) found.push_back(path);
  return found;
}

inference::ResultFiles JoinedFrames::join() const {
  inference::ResultFiles joined;
  const std::vector<std::string> images = paths("prediction"), tables = paths("measurements");
  const std::string image = stem_ + io::format_of_name(images.at(0))->output_ending;
  join_timepoints(images, image, is_label_type(io::open_image(images[0])->info().dtype));
  joined.emplace_back("prediction", image);
  if (!tables.empty()) {
    std::vector<std::string> columns;
    std::vector<std::vector<std::string>> rows;
    for (std::size_t t = 0; t < tables.size(); ++t) {
      const io::Table table = io::read_table(tables[t]);
      if (t == 0) columns = table.columns;
      for (std::vector<std::string> row : table.rows) {
        row.insert(row.begin(), std::to_string(t));
        rows.push_back(std::move(row));
      }
    }
    columns.insert(columns.begin(), "timepoint");
    io::write_table(stem_ + ".csv", columns, rows);
    joined.emplace_back("measurements", stem_ + ".csv");
  }
  for (const auto& [kind, path] : files()) {
    if (kind != "prediction" && kind != "measurements") {
      joined.emplace_back(kind, path);
      continue;
    }
    if (may_replace(path)) remove_all_quietly(path);
  }
  return joined;
}

}  // namespace cytra::pipelines
