#include "app/predict_inputs.h"

#include <algorithm>
#include <filesystem>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/strings.h"
#include "config/schema.h"
#include "data/datamodule.h"
#include "data/manifest.h"
#include "io/reader.h"

namespace cytra::app {
namespace {

namespace fs = std::filesystem;
using config::Node;

/// LoadImaged says which time points it wants.
bool chooses_time(const Node& transform) {
  const Node* as_channels = transform.find("time_as_channels");
  if (as_channels != nullptr && as_channels->kind == config::Kind::boolean && as_channels->boolean)
    return true;
  for (const char* key : {"timepoint", "reader.T"}) {
    const Node* chosen = transform.find(key);
    if (chosen != nullptr && !chosen->is_null()) return true;
  }
  return false;
}

/// Takes the key out of what the transform works on. True: nothing is left.
bool is_idle_without(Node& transform, const std::string& key) {
  const auto is_key = [&](const Node& node) {
    return node.kind == config::Kind::string && node.string == key;
  };
  Node* keys = transform.find("keys");
  if (keys == nullptr) return false;
  if (keys->kind != config::Kind::list) return is_key(*keys);
  keys->list.erase(std::remove_if(keys->list.begin(), keys->list.end(), is_key), keys->list.end());
  return keys->list.empty();
}

void set_spacing(const std::vector<double>& spacing_um, io::Geometry& geometry) {
  for (std::size_t d = 0; d < spacing_um.size(); ++d) {
    const std::size_t axis = 3 - spacing_um.size() + d;  // of Z, Y, X
    double& spacing = geometry.spacing_um[axis];
    if (spacing > 0) {
      for (std::size_t row = 0; row < 12; row += 4)
        geometry.affine[row + 2 - axis] *= spacing_um[d] / spacing;
    }
    spacing = spacing_um[d];
  }
}

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
                                      const LeaveOut& leave_out) {
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
    return read_rows({path, keys, "", false, axes}, options.on_error == "fail", keys, leave_out);
  } else {
    samples.resize(1);
    samples[0].id = path;
    samples[0].sources[keys.front()].path = path;
  }
  for (data::Sample& sample : samples) sample.sources[keys.front()].selection.axes = axes;
  return samples;
}

InputTransforms::InputTransforms(const Node& config, const std::string& left_out) {
  Node transforms = config;
  const data::Split split = transforms.has("predict") && !transforms.at("predict").is_null()
                                ? data::Split::predict
                                : data::Split::valid;
  if (Node* list = transforms.find(data::name_of(split)); list != nullptr) {
    if (!left_out.empty()) {
      list->list.erase(
          std::remove_if(list->list.begin(),
                         list->list.end(),
                         [&](Node& transform) { return is_idle_without(transform, left_out); }),
          list->list.end());
    }
    choose_time_ = std::any_of(list->list.begin(), list->list.end(), chooses_time);
    for (const Node& transform : list->list) {
      const Node* axes = transform.find("axes");
      if (axes != nullptr && axes->kind == config::Kind::string) axes_ = axes->string;
    }
  }
  const auto lists = config::parse<data::SplitTransforms>(transforms);
  transforms_ = data::make_transforms(lists, split);
  if (transforms_.empty()) data::throw_no_transforms(lists, split);
}

at::Tensor InputTransforms::apply(data::Sample& sample,
                                  const std::string& image,
                                  const std::vector<double>& spacing_um) const {
  Rng unused(0);
  at::Tensor shown;
  for (const auto& transform : transforms_) {
    const bool is_loaded = sample.has(image);
    transform->apply(sample, unused);
    if (!is_loaded) set_spacing(spacing_um, sample.geometry);
    const at::Tensor& now = sample.at(image);
    if (!shown.defined() || shown.sizes() != now.sizes()) shown = now;
  }
  return shown;
}

Input open_input(const data::Sample& sample,
                 const std::string& image,
                 const InputTransforms& transforms) {
  const auto found = sample.sources.find(image);
  if (found == sample.sources.end()) return {{sample}, 0};
  const data::Source& source = found->second;
  io::Selection selection = source.selection;
  if (selection.axes.empty()) selection.axes = transforms.axes();
  const bool is_chosen =
      selection.timepoint >= 0 || source.time_is_channel || transforms.choose_time();
  if (selection.timepoint < 0) selection.timepoint = 0;
  const io::ImageInfo info = io::open_image(source.path, selection)->info();
  Input input;
  input.bytes = static_cast<int64_t>(io::size_of(info.dtype) + sizeof(float));
  for (const int64_t side : info.shape) input.bytes *= side;
  if (is_chosen || info.timepoints == 1) {
    input.frames = {sample};
    return input;
  }
  for (int64_t t = 0; t < info.timepoints; ++t) {
    data::Sample frame = sample;
    frame.id = fmt::format("{} (time point {})", sample.id, t);
    for (auto& [key, one] : frame.sources) {
      if (one.selection.timepoint < 0) one.selection.timepoint = t;
    }
    input.frames.push_back(std::move(frame));
  }
  return input;
}

}  // namespace cytra::app
