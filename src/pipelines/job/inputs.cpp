#include "pipelines/job/inputs.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/files.h"
#include "base/log.h"
#include "config/registry.h"
#include "data/datamodule.h"
#include "data/layout/layout.h"
#include "data/layout/layout_names.h"
#include "data/manifest.h"
#include "data/source_keys.h"
#include "data/transforms/load_image.h"
#include "inference/predictor/predictor.h"
#include "inference/predictor/windowed_model.h"
#include "io/annotations/annotations.h"
#include "io/csv.h"
#include "io/image_folder.h"
#include "io/reader.h"
#include "pipelines/job/table_rows.h"

namespace cytra::pipelines {
namespace {

namespace fs = std::filesystem;
using config::Node;

/// The LoadImaged transforms of the checkpoint's predict list, or valid list.
std::vector<Node> loads_of(const inference::Predictor& predictor) {
  const Node& config = predictor.model().config;
  const Node* list = config.find("data.transforms.predict");
  if (list == nullptr || list->is_null()) list = config.find("data.transforms.valid");
  std::vector<Node> loads;
  if (list == nullptr) return loads;
  for (const Node& transform : list->list)
    if (data::loads_images(transform)) loads.push_back(transform);
  return loads;
}

void add_keys(const Node& load, std::vector<std::string>& into) {
  for (const std::string& key : data::loaded_keys(load)) into.push_back(key);
}

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

/// The class that reads a path that names a data set with a list of its own; "" for others.
std::string module_of(const std::string& path, bool is_folder) {
  const bool has_list = is_folder ? path_exists(fs::path(data::described_in(path)) / "imagesTr")
                                  : path.ends_with(".json") && data::is_there(path);
  if (!has_list) return "";
  data::DataNeeds needs;
  needs.has_target = false;
  const std::optional<data::Layout> layout = data::layout_of(path, needs);
  const std::string module = layout ? layout->module : "";
  for (const auto& [name, target] : {std::pair{"nnunet", "NnUnetDatamodule"},
                                     std::pair{"decathlon", "DecathlonDatamodule"},
                                     std::pair{"coco", "CocoDatamodule"}}) {
    if (module == name) return target;
  }
  return "";
}

/// The test images of a data set; where it has none, those of training.
std::vector<data::Sample> of_data_set(const std::string& module,
                                      const std::string& path,
                                      const std::vector<std::string>& keys) {
  Node config = Node::make_map();
  config.set("_target_", Node::make_string(module));
  config.set("path", Node::make_string(path));
  config.set("columns",
             Node::make_list(std::vector<std::string>{
                 keys.front(), keys.size() > 1 ? keys[1] : keys.front() + "_target"}));
  const auto data_set = make<data::DataModule>(config);
  try {
    return data_set->items(data::Split::predict);
  } catch (const ConfigError& error) {
    log::info("{}; the images of training and validation are predicted", error.what());
  }
  std::vector<data::Sample> samples = data_set->items(data::Split::train);
  for (data::Sample& more : data_set->items(data::Split::valid)) samples.push_back(std::move(more));
  return samples;
}

/// Whether a folder is an image itself: an OME-Zarr, or, for a 3D model, a DICOM series.
bool is_image_folder(const std::string& path, const InputWants& wants) {
  if (path.ends_with(".zarr")) return true;
  for (const char* name : {"zarr.json", ".zattrs", ".zgroup", ".zarray"})
    if (path_exists(fs::path(path) / name)) return true;
  try {
    return wants.spatial_dims == 3 && io::is_one_image(path);
  } catch (const Error&) {  // reported when it is read
    return false;
  }
}

/// Joins nnU-Net's files: CASE_0000.ext, CASE_0001.ext, ... are the channels of one image, where
/// the model has that many.
void put_channels_together(int64_t channels,
                           const std::string& key,
                           std::vector<data::Sample>& samples) {
  if (channels < 2 || samples.size() % static_cast<std::size_t>(channels) != 0) return;
  std::vector<data::Sample> whole;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::string stem = data::stem_of(fs::path(samples[i].id).filename().string());
    const auto number = static_cast<int64_t>(i) % channels;
    if (!stem.ends_with(fmt::format("_{:04}", number))) return;
    if (number == 0) {
      whole.push_back(samples[i]);
    } else {
      data::Source& first = whole.back().sources[key];
      const std::string begin = data::stem_of(fs::path(first.path).filename().string());
      if (begin.compare(0, begin.size() - 4, stem, 0, stem.size() - 4) != 0) return;
      first.more.push_back(samples[i].id);
    }
  }
  samples = std::move(whole);
}

bool has_one_channel(const std::string& path) {
  try {
    return io::open_image(path)->info().shape[0] == 1;
  } catch (const Error&) {  // reported when it is read
    return false;
  }
}

/// The further channels beside nnU-Net's CASE_0000.ext, when that one is named by itself.
std::vector<std::string> further_channels(const std::string& path, int64_t channels) {
  std::vector<std::string> more;
  const std::string mark = "_0000";
  const std::string name = fs::path(path).filename().string();
  const std::size_t at = name.rfind(mark + ".");
  for (int64_t c = 1; at != std::string::npos && c < channels; ++c) {
    std::string other = name;
    other.replace(at, mark.size(), fmt::format("_{:04}", c));
    more.push_back((fs::path(path).parent_path() / other).string());
    if (!data::is_there(more.back())) return {};
  }
  if (!more.empty() && !has_one_channel(path)) return {};
  return more;
}

/// Whether images are in folders of the classes that the model has learned from such.
bool has_class_folders(const std::string& path, const InputWants& wants) {
  return std::ranges::any_of(wants.class_folders, [&](const std::string& name) {
    return folder_exists(fs::path(path) / name);
  });
}
std::vector<data::Sample> of_class_folders(const std::string& path,
                                           const std::string& key,
                                           const InputWants& wants) {
  std::vector<data::Sample> samples;
  for (const std::string& name : wants.class_folders) {
    if (!data::is_there((fs::path(path) / name).string())) continue;
    for (data::Sample& sample : data::list_folder((fs::path(path) / name).string(), key)) {
      sample.columns[wants.class_key] = name;
      samples.push_back(std::move(sample));
    }
  }
  return samples;
}

/// The columns `keys`, and the others that are loaded, of a table that has them.
std::vector<std::string> columns_of(const std::string& path,
                                    std::vector<std::string> keys,
                                    const InputWants& wants) {
  const std::vector<std::string> there = io::read_table(path).columns;
  for (const std::string& key : wants.keys) {
    if (std::ranges::find(keys, key) == keys.end() && std::ranges::find(there, key) != there.end())
      keys.push_back(key);
  }
  return keys;
}

bool has_scene(const data::Source& source, int64_t scene) {
  if (io::is_annotation_path(source.path)) return false;
  try {
    const std::vector<int64_t> scenes = io::scenes_of(source.path);
    return scenes.size() > 1 && std::ranges::find(scenes, scene) != scenes.end();
  } catch (const Error&) {  // reported when it is read
    return false;
  }
}

/// How many time points or planes a sample stands for; 0: it is one image.
std::pair<int64_t, int64_t io::Selection::*> parts_of(const data::Source& source,
                                                      const PartsToTake& chosen) {
  io::Selection selection = source.selection;
  if (selection.axes.empty()) selection.axes = chosen.axes;
  const bool may_be_lapse =
      selection.timepoint < 0 && !source.time_is_channel && !chosen.is_time_chosen;
  if (!may_be_lapse && !chosen.takes_planes) return {};
  if (may_be_lapse) selection.timepoint = 0;
  const io::ImageInfo info = io::open_image(source.path, selection)->info();
  if (may_be_lapse && info.timepoints > 1) return {info.timepoints, &io::Selection::timepoint};
  const bool is_stack = chosen.takes_planes && info.shape[1] > 1;
  return {is_stack ? info.shape[1] : 0, &io::Selection::plane};
}

}  // namespace

bool InputOptions::is_manifest() const {
  return path.ends_with(".csv") || path.ends_with(".tsv");
}

InputWants wants_of(const inference::LoadedModel& model) {
  InputWants wants{model.in_channels};
  const Node* data = model.config.find("data");
  if (data == nullptr || !data->is_map()) return wants;
  wants.source_keys = data->get<std::vector<std::string>>("source_keys", {});
  const auto given = [&](const char* key) {
    const Node* node = data->find_direct(key);
    return node == nullptr ? Node() : *node;
  };
  wants.split_map = given("split_map");
  if (data->get<std::string>("_target_", "").ends_with("ClassFolderDatamodule")) {
    wants.class_folders = data->get<std::vector<std::string>>("class_names", {});
    wants.class_key = data->get<std::vector<std::string>>("columns", {"raw", "label"}).back();
  }
  if (const Node fill = given("fill_nan"); !fill.is_null()) wants.fill_nan = fill.as<double>();
  wants.has_folds = !given("folds").is_null();
  if (const Node column = given("split_column"); !column.is_null())
    wants.split_column = column.as<std::string>();
  return wants;
}

InputWants wants_of(const inference::Predictor& predictor, const Node& inference_args) {
  const Node& trained = predictor.model().config;
  InputWants wants = wants_of(predictor.model());
  wants.time_is_channel =
      trained.get<std::string>("data._target_", "").ends_with("DecathlonDatamodule");
  for (const Node& load : loads_of(predictor)) {
    wants.spatial_dims = load.get<int64_t>("spatial_dims", wants.spatial_dims);
    add_keys(load, wants.keys);
  }
  for (const Node* dim :
       {inference_args.find("spatial_dim"), trained.find("task.inference_args.spatial_dim")})
    if (dim != nullptr && !dim->is_null()) wants.spatial_dims = 3;  // slice by slice
  return wants;
}

std::string source_key(const inference::Predictor& predictor) {
  std::vector<std::string> keys;
  for (const Node& load : loads_of(predictor)) add_keys(load, keys);
  const std::string y_key = predictor.windowed().y_key, x_key = predictor.windowed().x_key;
  if (keys.empty() || std::ranges::find(keys, x_key) != keys.end()) return x_key;
  const auto found =
      std::ranges::find_if(keys, [&](const std::string& key) { return key != y_key; });
  return found == keys.end() ? x_key : *found;
}

std::vector<data::Sample> list_inputs(const InputOptions& options,
                                      const std::vector<std::string>& keys,
                                      const LeaveOut& leave_out,
                                      const InputWants& wants) {
  const std::string path = without_slashes(options.path);
  const std::string axes = options.axes.value_or("");
  const std::string& key = keys.front();
  const bool is_folder = folder_exists(path);
  const std::string module = module_of(path, is_folder);
  std::vector<data::Sample> samples;
  if (options.split.value_or("all") != "all" && !options.is_manifest() && data::is_there(path)) {
    throw ConfigError(
        "data.split={}: {} is no table, whose rows it names; leave it out", *options.split, path);
  }
  if (!module.empty()) {
    samples = of_data_set(module, path, keys);
  } else if (is_folder && has_class_folders(path, wants)) {
    samples = of_class_folders(path, key, wants);
  } else if (is_folder && !is_image_folder(path, wants)) {
    samples = data::list_folder(path, key);
    put_channels_together(wants.channels, key, samples);
  } else if (!data::is_there(path)) {
    throw ConfigError("data.path: {}: no such image, folder or manifest", options.path);
  } else if (options.is_manifest()) {
    data::SourceKeyOptions parts{wants.source_keys};
    const std::vector<std::string> columns = parts.read(columns_of(path, keys, wants));
    samples =
        read_rows({path, columns, "", false, axes}, options, wants, columns.front(), leave_out);
    data::join_sources(wants.source_keys, key, keys, samples);
  } else {
    samples.resize(1);
    samples[0].id = path;
    samples[0].sources[key].path = path;
    samples[0].sources[key].more = further_channels(path, wants.channels);
  }
  for (data::Sample& sample : samples) {
    if (!options.is_manifest()) sample.sources[key].selection.axes = axes;
    if (wants.time_is_channel) sample.sources[key].time_is_channel = true;
    sample.on_mismatch = data::mismatch_of(options.on_mismatch);
    sample.fill_nan = options.fill_nan ? options.fill_nan : wants.fill_nan;
  }
  return samples;
}

std::vector<data::Sample> scenes_of(const data::Sample& sample,
                                    const std::string& image,
                                    const PartsToTake& chosen) {
  const auto found = sample.sources.find(image);
  if (found == sample.sources.end()) return {sample};
  std::vector<int64_t> scenes;
  if (found->second.selection.scene < 0 && !chosen.is_scene_chosen)
    scenes = io::scenes_of(found->second.path);
  if (scenes.size() < 2) return {sample};
  std::vector<data::Sample> parts;
  const std::vector<std::string> places = io::plate_images(found->second.path);
  for (const int64_t scene : scenes) {
    data::Sample& one = parts.emplace_back(sample);
    one.id = fmt::format("{} (scene {})", sample.id, scene);
    if (!places.empty()) {
      one.id = sample.id + "/" + places.at(static_cast<std::size_t>(scene));
      one.sources.at(image).path += "/" + places[static_cast<std::size_t>(scene)];
    }
    for (auto& [key, other] : one.sources) {
      if (key == image && !places.empty()) continue;
      const bool is_same = key == image || has_scene(other, scene);
      if (other.selection.scene < 0 && is_same) other.selection.scene = scene;
    }
  }
  return parts;
}

PartsToTake parts_to_take(const inference::Predictor& predictor) {
  const inference::InputTransforms& transforms = predictor.windowed().transforms;
  const std::vector<Node> loads = loads_of(predictor);
  const bool is_scene_chosen = std::ranges::any_of(loads, [](const Node& load) {
    const Node* scene = load.find("scene");
    return scene != nullptr && !scene->is_null();
  });
  return {transforms.axes(), transforms.choose_time(), is_scene_chosen};
}

std::size_t Frames::size() const {
  std::size_t count = 0;
  for (const Several& image : images_) count += image.size();
  return count;
}

data::Sample Frames::operator[](std::size_t number) const {
  auto image = images_.begin();
  for (; number >= image->size(); ++image) number -= image->size();
  data::Sample frame = image->sample;
  if (image->count == 0) return frame;
  const char* word = image->part == &io::Selection::plane ? "plane" : "time point";
  frame.id = fmt::format("{} ({} {})", frame.id, word, number);
  for (auto& [key, one] : frame.sources) {
    int64_t& part = one.selection.*image->part;
    if (part < 0) part = static_cast<int64_t>(number);
  }
  return frame;
}

Frames frames_of(const data::Sample& sample, const std::string& image, const PartsToTake& chosen) {
  Frames frames;
  const std::vector<data::Sample> scenes = scenes_of(sample, image, chosen);
  for (const data::Sample& one : scenes) {
    const auto found = one.sources.find(image);
    try {
      const auto [count, part] = found == one.sources.end()
                                     ? std::pair<int64_t, int64_t io::Selection::*>()
                                     : parts_of(found->second, chosen);
      frames.add(one, count, part);
    } catch (const DataError&) {  // reported when it is read: others are good
      if (scenes.size() == 1) throw;
      frames.add(one, 0, nullptr);
    }
  }
  return frames;
}

}  // namespace cytra::pipelines
