#include "app/predict_inputs.h"

#include <algorithm>
#include <filesystem>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/strings.h"
#include "data/datamodule.h"
#include "data/manifest.h"
#include "data/source_keys.h"
#include "io/reader.h"

namespace cytra::app {
namespace {

namespace fs = std::filesystem;
using config::Node;

/// Rows whose images are missing go to `leave_out`, unless `all` are wanted.
std::vector<data::Sample> read_rows(const data::Manifest& manifest,
                                    bool all,
                                    const std::vector<std::string>& keys,
                                    const LeaveOut& leave_out) {
  if (all || manifest.rows() == 0) return manifest.samples();
  std::vector<data::Sample> samples;
  for (std::size_t row = 0; row < manifest.rows(); ++row) {
    try {
      for (data::Sample& sample : manifest.samples({row})) samples.push_back(std::move(sample));
    } catch (const DataError& error) {
      leave_out(manifest.cell(row, manifest.column(keys.front())), error);
    }
  }
  return samples;
}

}  // namespace

bool InputOptions::is_manifest() const {
  return ends_with(path, ".csv") || ends_with(path, ".tsv");
}

std::vector<data::Sample> list_inputs(const InputOptions& options,
                                      const std::vector<std::string>& keys,
                                      const LeaveOut& leave_out,
                                      const std::vector<std::string>& channels) {
  const std::string& path = options.path;
  const std::string axes = options.axes.value_or("");
  const std::string folder = path.substr(0, path.find_last_not_of('/') + 1);
  std::error_code ignored;  // a name too long
  std::vector<data::Sample> samples;
  if (fs::is_directory(path, ignored) && !ends_with(folder, ".zarr")) {
    samples = data::list_folder(path, keys.front());
  } else if (!data::is_there(path)) {
    throw ConfigError(fmt::format("data.path: {}: no such image, folder or manifest", path));
  } else if (options.is_manifest()) {
    data::SourceKeyOptions parts{channels};
    const std::vector<std::string> columns = parts.read(keys);
    samples =
        read_rows({path, columns, "", false, axes}, options.on_error == "fail", columns, leave_out);
    data::join_sources(channels, keys.front(), keys, samples);
  } else {
    samples.resize(1);
    samples[0].id = path;
    samples[0].sources[keys.front()].path = path;
  }
  for (data::Sample& sample : samples) {
    if (!options.is_manifest()) sample.sources[keys.front()].selection.axes = axes;
    sample.on_mismatch = data::mismatch_of(options.on_mismatch);
  }
  return samples;
}

data::Sample Frames::operator[](std::size_t number) const {
  data::Sample frame = sample_;
  if (count_ == 0) return frame;
  frame.id = fmt::format("{} (time point {})", sample_.id, number);
  for (auto& [key, one] : frame.sources) {
    if (one.selection.timepoint < 0) one.selection.timepoint = static_cast<int64_t>(number);
  }
  return frame;
}

Frames frames_of(const data::Sample& sample,
                 const std::string& image,
                 const inference::InputTransforms& transforms) {
  const auto found = sample.sources.find(image);
  if (found == sample.sources.end()) return {sample, 0};
  const data::Source& source = found->second;
  io::Selection selection = source.selection;
  if (selection.axes.empty()) selection.axes = transforms.axes();
  if (selection.timepoint >= 0 || source.time_is_channel || transforms.choose_time())
    return {sample, 0};
  selection.timepoint = 0;
  const int64_t count = io::open_image(source.path, selection)->info().timepoints;
  return {sample, count == 1 ? 0 : count};
}

}  // namespace cytra::app
