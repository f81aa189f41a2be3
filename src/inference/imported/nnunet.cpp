#include "inference/imported/nnunet.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/warn_once.h"
#include "config/json.h"
#include "inference/imported/totalsegmentator.h"
#include "nn/nnunet.h"

namespace cytra::inference {
namespace {

namespace fs = std::filesystem;
using config::Node;

/// The labels of dataset.json: how many channels the network has, and their names.
struct NnunetLabels {
  bool are_regions = false;
  std::vector<std::string> names;  // of the classes from 1 on, or of the regions

  explicit NnunetLabels(const Node& dataset) {
    std::vector<std::pair<int64_t, std::string>> found;
    for (const auto& [name, value] : dataset.at("labels").map) {
      if (name == "ignore") continue;
      const bool is_list = value.kind == config::Kind::list;
      are_regions = are_regions || (is_list && value.list.size() > 1);
      const int64_t number =
          is_list && !value.list.empty() ? value.list[0].as<int64_t>() : value.as<int64_t>();
      if (number != 0 || (is_list && value.list.size() > 1)) found.emplace_back(number, name);
    }
    if (!are_regions) std::ranges::sort(found);
    for (const auto& [number, name] : found) names.push_back(name);
  }
  int64_t channels() const { return std::ssize(names) + (are_regions ? 0 : 1); }
};

/// The configuration, by the name of the folder.
std::string configuration_of(const fs::path& folder, const Node& plans) {
  const std::string name = folder.filename().string();
  const std::vector<std::string> known = plans.at("configurations").keys();
  const std::string last =
      name.substr(name.rfind("__") == std::string::npos ? 0 : name.rfind("__") + 2);
  if (contains(known, last)) return last;
  if (known.size() == 1) return known[0];
  throw ConfigError(
      "{}: a folder that does not say which configuration its network is of; expected a name such "
      "as nnUNetTrainer__nnUNetPlans__{}",
      folder.string(),
      known.empty() ? "2d" : known[0]);
}

/// The configuration's list of a number for each axis. Throws: ConfigError for anything else.
Node of_each_axis(const Node& configuration, const char* key, std::size_t axes, double least) {
  constexpr double kMost = 8192;
  const Node& node = configuration.at(key);
  const auto numbers = node.as<std::vector<double>>();
  if (numbers.size() == axes && std::ranges::all_of(numbers, [&](double number) {
        return number >= least && number <= kMost && (least < 1 || number == std::floor(number));
      }))
    return node;
  throw ConfigError("{}: {}: expected {} numbers from {} to {}, got {}",
                    node.where(),
                    key,
                    axes,
                    least,
                    kMost,
                    printable(config::to_json(node)));
}

/// The value of each axis of the image, from values in the network's order.
Node turned_back(const Node& values, const std::vector<int64_t>& order) {
  if (order.empty()) return values;
  Node turned = values;
  for (std::size_t i = 0; i < order.size(); ++i)
    turned.list.at(static_cast<std::size_t>(order[i])) = values.list.at(i);
  return turned;
}

/// The program that read the images of the training. Throws: ConfigError for others than nnU-Net's.
std::string reader_of(const Node& plans, const std::string& plans_file) {
  const auto reader = plans.get<std::string>("image_reader_writer", "SimpleITKIO");
  const std::vector<std::string> readers{"SimpleITKIO",
                                         "SimpleITKIOWithReorient",
                                         "NibabelIO",
                                         "NibabelIOWithReorient",
                                         "NaturalImage2DIO",
                                         "Tiff3DIO"};
  if (contains(readers, reader)) return reader;
  throw ConfigError("{}: image_reader_writer: '{}', expected {}",
                    plans_file,
                    printable(reader),
                    join(readers, ", "));
}

/// TotalSegmentator's description of a model, with a word about it; none: it is another one.
std::optional<TotalSegmentatorModel> totalsegmentator_of(const fs::path& folder, bool is_planar) {
  const std::string name = folder.parent_path().filename().string();
  auto found = is_planar ? std::nullopt : totalsegmentator_model(name);
  if (!found) return found;
  const auto& [x, y, z] = found->spacing_mm;
  log::info("{}: a model of TotalSegmentator; as there, images are turned to RAS{}",
            name,
            x > 0 ? fmt::format(" and resampled to {:.4g} x {:.4g} x {:.4g} mm", x, y, z) : "");
  if (found->is_cropped)
    warn_once(name + ": TotalSegmentator crops images to what another model finds; here they stay");
  if (found->is_changed)
    warn_once(name + ": TotalSegmentator changes labels and objects afterwards; here they stay");
  return found;
}

/// What is done to an image before the network gets it: reading, a turn, nnU-Net's preprocessing.
Node steps_of(const Node& plans,
              const Node& configuration,
              const std::string& reader,
              const std::optional<TotalSegmentatorModel>& totalsegmentator,
              const Node& spacing) {
  Node load = config::parse_value("{_target_: LoadImaged, keys: [raw, seg]}", {});
  load.set("spatial_dims", Node::make_integer(reader == "NaturalImage2DIO" ? 2 : 3));
  std::vector<Node> steps{std::move(load)};
  if (reader.ends_with("WithReorient") || totalsegmentator)
    steps.push_back(config::parse_value("{_target_: Orientationd, keys: [raw], axcodes: RAS}", {}));
  Node process = config::parse_value("{_target_: NnunetPreprocessingd, keys: [raw]}", {});
  for (const char* key : {"normalization_schemes",
                          "use_mask_for_norm",
                          "resampling_fn_data",
                          "resampling_fn_data_kwargs"})
    process.set(key, configuration.at(key));
  for (const char* key : {"foreground_intensity_properties_per_channel",
                          "foreground_intensity_properties_by_modality"}) {
    if (const Node* found = plans.find_direct(key))
      process.set("foreground_intensity_properties_per_channel", *found);
  }
  process.set("spacing", spacing);
  if (totalsegmentator && totalsegmentator->spacing_mm[0] > 0) {
    const auto& [x, y, z] = totalsegmentator->spacing_mm;
    process.set("change_spacing", Node::make_list(std::vector<double>{z, y, x}));
  }
  steps.push_back(std::move(process));
  return Node::make_list(std::move(steps));
}

/// How many times as coarse as the finest axis one is along which scores are brought back to the
/// file by the nearest voxel; 0: none.
double separate_z_of(const Node& configuration) {
  constexpr double kThreshold = 3;  // nnU-Net's ANISO_THRESHOLD
  const auto name = configuration.get<std::string>("resampling_fn_probabilities", "");
  const Node* how = configuration.find_direct("resampling_fn_probabilities_kwargs");
  if (name != "resample_data_or_seg_to_shape" || how == nullptr ||
      how->get<int64_t>("order_z", 0) > 0)
    return 0;
  const Node* forced = how->find_direct("force_separate_z");
  if (forced == nullptr || forced->is_null())
    return how->get<double>("separate_z_anisotropy_threshold", kThreshold);
  return forced->as<bool>() ? 1 : 0;
}

}  // namespace

std::vector<std::string> nnunet_checkpoints(const std::string& folder) {
  for (const char* name : {"checkpoint_final.pth", "checkpoint_best.pth"}) {
    std::vector<std::string> found;
    for (int fold = 0; fold < 100; ++fold) {
      const fs::path file = fs::path(folder) / fmt::format("fold_{}", fold) / name;
      if (fs::exists(file)) found.push_back(file.string());
    }
    if (const fs::path all = fs::path(folder) / "fold_all" / name; found.empty() && fs::exists(all))
      found.push_back(all.string());
    if (!found.empty()) return found;
  }
  throw DataError(folder + ": no fold_0/checkpoint_final.pth, the weights of a model of nnU-Net");
}

NnunetModelFile read_nnunet(const std::string& checkpoint) {
  const fs::path folder = fs::absolute(checkpoint).lexically_normal().parent_path().parent_path();
  const std::string plans_file = (folder / "plans.json").string();
  const std::string dataset_file = (folder / "dataset.json").string();  // may name every image
  const Node plans = config::load_yaml(plans_file);
  const Node dataset = config::parse_json(read_file(dataset_file), dataset_file);
  const std::string name = configuration_of(folder, plans);
  const Node configuration = nn::nnunet_configuration(plans, plans_file, name);
  const Node* previous = configuration.find_direct("previous_stage");
  if (previous != nullptr && !previous->is_null()) {
    throw ConfigError(
        "{}: '{}' takes the result of '{}' beside the image, and cascades are not run here; "
        "expected 2d, 3d_lowres or 3d_fullres",
        plans_file,
        printable(name),
        printable(previous->as<std::string>()));
  }
  const NnunetLabels labels(dataset);
  const Node* channels = dataset.find_direct("channel_names");
  if (channels == nullptr) channels = &dataset.at("modality");
  Node model = nn::nnunet_model(configuration, plans_file);
  model.set("in_channels", Node::make_integer(std::ssize(channels->map)));
  model.set("out_channels", Node::make_integer(labels.channels()));
  const bool is_planar = model.get<int64_t>("spatial_dims") == 2;

  NnunetModelFile file;
  const std::string reader = reader_of(plans, plans_file);
  const bool are_planes = reader == "NaturalImage2DIO";
  const auto totalsegmentator = totalsegmentator_of(folder, is_planar);
  auto order = plans.get<std::vector<int64_t>>("transpose_forward", {0, 1, 2});
  std::vector<int64_t> sorted = order;
  std::ranges::sort(sorted);
  if (sorted != std::vector<int64_t>{0, 1, 2})
    throw ConfigError(plans_file + ": transpose_forward, expected an order of 0, 1, 2");
  if (!is_planar && order != sorted) file.order = order;

  Node args = Node::make_map();
  const std::size_t axes = is_planar ? 2 : 3;
  args.set("roi_size", turned_back(of_each_axis(configuration, "patch_size", axes, 1), file.order));
  args.set("overlap", Node::make_real(totalsegmentator ? 1 - totalsegmentator->tile_step : 0.5));
  args.set("mode", Node::make_string("nnunet"));
  args.set("spacing", Node::make_string("even"));
  Node spacing = of_each_axis(configuration, "spacing", axes, 1e-6);
  if (is_planar && !are_planes) {  // planes of volumes, across the network's first axis
    if (order[1] > order[2])
      throw ConfigError(plans_file + ": transpose_forward, expected planes that are not turned");
    args.set("spatial_dim", Node::make_integer(order[0]));
    spacing.list.insert(spacing.list.begin() + order[0], Node::make_real(0));
  } else {
    spacing = turned_back(spacing, file.order);
  }
  if (are_planes || reader == "Tiff3DIO") {
    // Their spacing is 1, or that of a file beside them.
    if (reader == "Tiff3DIO")
      warn_once(checkpoint + ": images are taken to have the spacing that the model learned");
    spacing = Node::make_list();
  }

  Node transforms = Node::make_map(), data = Node::make_map(), task = Node::make_map();
  transforms.set("valid", steps_of(plans, configuration, reader, totalsegmentator, spacing));
  data.set("transforms", std::move(transforms));
  task.set("x_key", Node::make_string("raw"));
  task.set("y_key", Node::make_string("seg"));
  task.set("num_classes", Node::make_integer(labels.channels()));
  task.set("multilabel", Node::make_boolean(labels.are_regions));
  task.set("class_names", Node::make_list(labels.names));
  task.set("model", std::move(model));
  task.set("inference_args", std::move(args));
  task.set("original_grid", Node::make_boolean(true));
  if (totalsegmentator && totalsegmentator->spacing_mm[0] > 0)
    task.set("grid_mode", Node::make_string("nearest"));
  task.set("separate_z", Node::make_real(separate_z_of(configuration)));
  if (!is_planar) task.set("learned_spacing", spacing);
  file.config = Node::make_map();
  file.config.set("task", std::move(task));
  file.config.set("data", std::move(data));
  file.config.set("patch_shape", Node::make_list());  // so that predict's windows stay nnU-Net's
  return file;
}

}  // namespace cytra::inference
