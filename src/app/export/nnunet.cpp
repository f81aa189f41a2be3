#include "app/export/nnunet.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <ATen/ATen.h>
#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>
#include <fmt/format.h>

#include "app/export/bioimageio_operations.h"
#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/json.h"
#include "export/torch_file.h"
#include "inference/decoder.h"
#include "inference/trained_head.h"
#include "io/compression/zip_writer.h"
#include "nn/model.h"
#include "nn/nnunet.h"
#include "ops/windows/sums.h"

namespace cytra::app {
namespace {

using config::Node;

Node string_node(const std::string& value) {
  return Node::make_string(value);
}

[[noreturn]] void refuse_for_nnunet(const std::string& what) {
  throw ConfigError("format=nnunet: " + what);
}

std::string dataset_name_of(const NnunetOptions& options, const std::string& output) {
  return options.dataset_name.empty() ? std::filesystem::path(output).stem().string()
                                      : options.dataset_name;
}

/// The reader that nnU-Net has for the images.
std::string reader_of(const std::string& ending, int64_t spatial_dims) {
  const std::vector<std::string> medical{".nii.gz", ".nii", ".nrrd", ".mha", ".gipl"};
  if (std::find(medical.begin(), medical.end(), ending) != medical.end()) return "SimpleITKIO";
  if (spatial_dims == 3) {
    if (ending == ".tif" || ending == ".tiff") return "Tiff3DIO";
    refuse_for_nnunet("nnunet.file_ending=" + ending + ", expected .tif, .tiff or one of " +
                      join(medical, ", "));
  }
  if (ending == ".png" || ending == ".bmp" || ending == ".tif") return "NaturalImage2DIO";
  refuse_for_nnunet("nnunet.file_ending=" + ending + ", expected .png, .bmp, .tif or one of " +
                    join(medical, ", "));
}

/// How nnU-Net normalizes one channel.
class ChannelScheme {
 public:
  void scale(double gain, double offset) {
    if (has_statistics()) refuse_for_nnunet("a change of the values after their normalization");
    if (gain <= 0) refuse_for_nnunet("values that are multiplied by a number that is not positive");
    gain_ *= gain;
    offset_ = offset_ * gain + offset;
  }
  void clip(double low, double high) {
    if (has_statistics()) refuse_for_nnunet("a clip after the normalization");
    low_ = std::max(low_, (low - offset_) / gain_);
    high_ = std::min(high_, (high - offset_) / gain_);
  }
  void take(const char* statistics) {
    if (has_statistics() || is_clipped())
      refuse_for_nnunet("more than one of a clip and a normalization by the image itself");
    name_ = statistics;
  }
  std::string name() const {
    if (has_statistics()) return name_;
    return is_clipped() || gain_ != 1 || offset_ != 0 ? "CTNormalization" : "NoNormalization";
  }
  /// The numbers of CTNormalization: clip, then (value - mean) / std.
  Node intensities() const {
    const auto real = [](double value) { return Node::make_real(value); };
    return map_of({{"mean", real(-offset_ / gain_)},
                   {"std", real(1 / gain_)},
                   {"median", real(-offset_ / gain_)},
                   {"min", real(low_)},
                   {"max", real(high_)},
                   {"percentile_00_5", real(low_)},
                   {"percentile_99_5", real(high_)}});
  }

 private:
  static constexpr double kMost = 1e30;  // no clip, in the range of float32
  bool has_statistics() const { return !name_.empty(); }
  bool is_clipped() const { return low_ > -kMost || high_ < kMost; }
  std::string name_;
  double gain_ = 1, offset_ = 0, low_ = -kMost, high_ = kMost;
};

std::vector<ChannelScheme> schemes_of(const Node& operations, int64_t channels) {
  std::vector<ChannelScheme> schemes(static_cast<std::size_t>(channels));
  for (const Node& operation : operations.list) {
    const auto id = operation.get<std::string>("id");
    const Node* found = operation.find_direct("kwargs");
    const Node kwargs = found == nullptr ? Node::make_map() : *found;
    const auto of_channel = [&](const char* key, double fallback, std::size_t channel) {
      const Node* value = kwargs.find_direct(key);
      if (value == nullptr || value->is_null()) return fallback;
      return value->is_container() ? value->list.at(channel).as<double>() : value->as<double>();
    };
    const auto is_by_channel = [&] {
      const auto axes = kwargs.get<std::vector<std::string>>("axes", {"channel"});
      return channels == 1 || std::find(axes.begin(), axes.end(), "channel") == axes.end();
    };
    for (std::size_t c = 0; c < schemes.size(); ++c) {
      if (id == "scale_linear") {
        schemes[c].scale(of_channel("gain", 1, c), of_channel("offset", 0, c));
      } else if (id == "clip") {
        schemes[c].clip(of_channel("min", -1e300, c), of_channel("max", 1e300, c));
      } else if (id == "zero_mean_unit_variance" && is_by_channel()) {
        schemes[c].take("ZScoreNormalization");
      } else if (id == "scale_range" && is_by_channel() &&
                 kwargs.get<double>("min_percentile", 0) == 0 &&
                 kwargs.get<double>("max_percentile", 100) == 100) {
        schemes[c].take("RescaleTo01Normalization");
      } else {
        refuse_for_nnunet(
            "an image is normalized by what nnU-Net has no scheme for (" + id +
            "); expected NormalizeIntensityd or ScaleIntensityd of each channel by itself "
            "(channel_wise=true), ScaleIntensityRanged or Clipd");
      }
    }
  }
  return schemes;
}

/// Takes the image's transform of a name out of the model's transforms; null: there is none.
Node taken_transform(Node& config, const std::string& x_key, const std::string& name) {
  Node found;
  for (const char* split : {"predict", "valid"}) {
    Node* list = config.find(std::string("data.transforms.") + split);
    if (list == nullptr || list->is_null()) continue;
    std::vector<Node> left;
    for (const Node& transform : list->list) {
      const auto target = transform.get<std::string>("_target_");
      const Node& keys = transform.at("keys");
      const bool is_ours =
          keys.kind != config::Kind::list || keys.list.empty()
              ? keys.as<std::string>() == x_key
              : std::any_of(keys.list.begin(), keys.list.end(), [&](const Node& key) {
                  return key.as<std::string>() == x_key;
                });
      if (!is_ours || target.substr(target.rfind('.') + 1) != name) {
        left.push_back(transform);
      } else if (found.is_null()) {
        found = transform;
      }
    }
    list->list = std::move(left);
    if (!found.is_null()) break;
  }
  return found;
}

std::vector<double> spacing_of(const NnunetOptions& options,
                               const Node& resampling,
                               const std::string& reader,
                               std::size_t dims) {
  std::vector<double> spacing = options.spacing;
  if (spacing.empty() && !resampling.is_null()) {
    const Node& pixdim = resampling.at("pixdim");
    spacing = pixdim.is_container() ? pixdim.as<std::vector<double>>()
                                    : std::vector<double>{pixdim.as<double>()};
    spacing.resize(dims, spacing.back());
    if (std::all_of(spacing.begin(), spacing.end(), [](double side) { return side <= 0; }))
      spacing.clear();  // as they are
  }
  if (spacing.empty() && reader == "NaturalImage2DIO") spacing.assign(dims, 1);
  const bool are_positive =
      std::all_of(spacing.begin(), spacing.end(), [](double side) { return side > 0; });
  if (spacing.size() == dims && are_positive) return spacing;
  refuse_for_nnunet(
      fmt::format("nnU-Net resamples every image to one distance between voxels, which this model "
                  "does not say; expected nnunet.spacing={}",
                  dims == 3 ? "[3,1,1]" : "[1,1]"));
}

/// The image's preprocessing in the words of plans.json, which are the options of
/// NnunetPreprocessingd.
Node preprocessing_of(const inference::LoadedModel& model,
                      const NnunetOptions& options,
                      const std::string& reader) {
  const auto dims = static_cast<std::size_t>(model.spatial_dims);
  const auto x_key = model.config.get<std::string>("task.x_key");
  inference::LoadedModel rest;  // for the words of its other transforms
  rest.config = model.config;
  rest.spatial_dims = model.spatial_dims;
  Node own = taken_transform(rest.config, x_key, "NnunetPreprocessingd");
  const Node spacing = taken_transform(rest.config, x_key, "Spacingd");
  const PackagePreprocessing before(rest, "nnunet");
  if (!own.is_null()) {
    if (!before.operations.list.empty() || !spacing.is_null())
      refuse_for_nnunet("other changes of the image than NnunetPreprocessingd");
    if (!options.spacing.empty() || own.at("spacing").list.empty())
      own.set("spacing", Node::make_list(spacing_of(options, {}, reader, dims)));
    return own;
  }
  std::vector<std::string> names;
  Node intensities = Node::make_map();
  for (const ChannelScheme& scheme : schemes_of(before.operations, model.in_channels)) {
    intensities.set(std::to_string(names.size()), scheme.intensities());
    names.push_back(scheme.name());
  }
  return map_of({{"normalization_schemes", Node::make_list(names)},
                 {"use_mask_for_norm", Node::make_list(std::vector<bool>(names.size(), false))},
                 {"foreground_intensity_properties_per_channel", intensities},
                 {"spacing", Node::make_list(spacing_of(options, spacing, reader, dims))},
                 {"resampling_fn_data", string_node("resample_data_or_seg_to_shape")},
                 {"resampling_fn_data_kwargs",
                  map_of({{"is_seg", Node::make_boolean(false)},
                          {"order", Node::make_integer(1)},
                          {"order_z", Node::make_integer(0)},
                          {"force_separate_z", Node::make_boolean(false)}})}});
}

/// The size of the windows that predict takes.
std::vector<int64_t> patch_of(const inference::LoadedModel& model) {
  const auto dims = static_cast<std::size_t>(model.spatial_dims);
  for (const char* key : {"task.inference_args.roi_size", "patch_shape"}) {
    const Node* found = model.config.find(key);
    if (found == nullptr || found->is_null()) continue;
    std::vector<int64_t> patch = found->is_container() ? found->as<std::vector<int64_t>>()
                                                       : std::vector<int64_t>{found->as<int64_t>()};
    if (patch.size() == 1) patch.resize(dims, patch[0]);
    const bool are_sides =
        patch.size() == dims &&
        std::all_of(patch.begin(), patch.end(), [](int64_t side) { return side > 0; });
    if (!are_sides) continue;
    for (std::size_t d = 0; d < dims; ++d)
      patch[d] = (patch[d] + model.divisor[d] - 1) / model.divisor[d] * model.divisor[d];
    return patch;
  }
  refuse_for_nnunet(model.path + " does not say the size of its patches (patch_shape)");
}

/// background: 0 and the classes' names.
Node labels_of(const Node& task, int64_t classes) {
  const auto names = task.get<std::vector<std::string>>("class_names", {});
  Node labels = map_of({{"background", Node::make_integer(0)}});
  for (int64_t label = 1; label < classes; ++label) {
    const auto index = static_cast<std::size_t>(label) - 1;
    std::string name = index < names.size() ? names[index] : fmt::format("class {}", label);
    if (labels.find_direct(name) != nullptr || name == "ignore") name += fmt::format(" {}", label);
    labels.set(name, Node::make_integer(label));
  }
  return labels;
}

/// Turns the head of a mask, one logit, into that of two classes: the logits 0 and its own.
void add_background(std::map<std::string, at::Tensor>& weights) {
  for (auto& [name, tensor] : weights) {
    if (starts_with(name, "decoder.seg_layers."))
      tensor = at::cat({at::zeros_like(tensor), tensor});
  }
}

c10::IValue dict_of(const std::vector<std::pair<std::string, c10::IValue>>& entries) {
  c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
  for (const auto& [key, value] : entries) dict.insert(key, value);
  return dict;
}

std::string checkpoint_of(const std::map<std::string, at::Tensor>& weights,
                          const std::string& configuration) {
  c10::Dict<std::string, at::Tensor> state;
  for (const auto& [name, tensor] : weights) state.insert(name, tensor.detach().contiguous());
  return exporting::to_torch_file(
      dict_of({{"network_weights", state},
               {"trainer_name", "nnUNetTrainer"},
               {"init_args", dict_of({{"configuration", configuration}, {"fold", int64_t{0}}})},
               {"inference_allowed_mirroring_axes", c10::IValue()}}));
}

}  // namespace

void expect_nnunet_options(const NnunetOptions& options, const std::string& output) {
  if (!ends_with(output, ".zip"))
    throw ConfigError("output: " + output +
                      ": expected a name that ends with .zip: nnU-Net's models are folders, which "
                      "it installs from an archive");
  const std::string name = dataset_name_of(options, output);
  const bool is_name =
      starts_with(name, "Dataset") && name.size() > 11 && name[10] == '_' &&
      std::all_of(name.begin() + 7, name.begin() + 10, [](char c) { return c >= '0' && c <= '9'; });
  if (is_name && name.find('/') == std::string::npos) return;
  throw ConfigError("nnunet.dataset_name: " + name +
                    ": expected Dataset, three digits and a name, as Dataset042_Cells; or such a "
                    "name of the output file");
}

void write_nnunet(const std::string& output,
                  const NnunetOptions& options,
                  const inference::LoadedModel& model) {
  const auto network = std::dynamic_pointer_cast<nn::NnunetModel>(model.network);
  if (!network) {
    refuse_for_nnunet(model.path +
                      ": nnU-Net can't build its network; expected DynUNet, PlainConvUNet or "
                      "ResidualEncoderUNet");
  }
  const Node& task = model.config.at("task");
  if (!inference::heads_of(task).empty())
    refuse_for_nnunet(model.path + " has several outputs, expected a model of one");
  const auto decoder = inference::decoder_of(task);
  const auto forms = decoder->forms();
  if (std::find(forms.begin(), forms.end(), "probability") == forms.end())
    refuse_for_nnunet(model.path + " makes no masks or classes, which is all that nnU-Net makes");
  const bool are_classes = decoder->finish("probability", 0.5).kind == ops::Finish::Kind::softmax;
  if (!are_classes && model.out_channels > 1)
    refuse_for_nnunet(model.path + ": its masks may overlap, expected classes (multilabel=false)");
  if (const Node* steps = task.find_direct("postprocess"); steps != nullptr && !steps->list.empty())
    log::warn("format=nnunet: the steps of postprocess are not in it");

  const auto dims = static_cast<std::size_t>(model.spatial_dims);
  const std::string ending = !options.file_ending.empty() ? options.file_ending
                             : dims == 3                  ? ".nii.gz"
                                                          : ".png";
  const std::string reader = reader_of(ending, model.spatial_dims);
  const Node preprocessing = preprocessing_of(model, options, reader);
  const std::vector<int64_t> patch = patch_of(model);

  nn::NnunetNetwork made = network->nnunet();
  if (!are_classes) add_background(made.weights);
  const int64_t classes = are_classes ? model.out_channels : 2;
  const std::string name = dataset_name_of(options, output);
  const std::string configuration = dims == 3 ? "3d_fullres" : "2d";

  Node channel_names = Node::make_map();
  for (int64_t c = 0; c < model.in_channels; ++c)
    channel_names.set(std::to_string(c), string_node(fmt::format("channel {}", c)));
  const Node spacing = preprocessing.at("spacing");
  const Node& resampling = preprocessing.at("resampling_fn_data");
  Node kwargs = preprocessing.at("resampling_fn_data_kwargs"), of_labels = kwargs;
  of_labels.set("is_seg", Node::make_boolean(true));
  Node chosen = map_of({{"data_identifier", string_node("nnUNetPlans_" + configuration)},
                        {"preprocessor_name", string_node("DefaultPreprocessor")},
                        {"batch_size", Node::make_integer(2)},
                        {"patch_size", Node::make_list(patch)},
                        {"median_image_size_in_voxels", Node::make_list(patch)},
                        {"spacing", spacing},
                        {"normalization_schemes", preprocessing.at("normalization_schemes")},
                        {"use_mask_for_norm", preprocessing.at("use_mask_for_norm")},
                        {"resampling_fn_data", resampling},
                        {"resampling_fn_data_kwargs", kwargs},
                        {"resampling_fn_seg", resampling},
                        {"resampling_fn_seg_kwargs", of_labels},
                        {"resampling_fn_probabilities", resampling},
                        {"resampling_fn_probabilities_kwargs", kwargs},
                        {"batch_dice", Node::make_boolean(dims == 2)},
                        {"architecture", made.architecture}});
  // Of planes nnU-Net keeps a third axis of one voxel.
  std::vector<int64_t> order{0, 1, 2}, shape = patch;
  auto all_spacing = spacing.as<std::vector<double>>();
  if (dims == 2) {
    shape.insert(shape.begin(), 1);
    all_spacing.insert(all_spacing.begin(), 999);
  }
  const Node plans = map_of({{"dataset_name", string_node(name)},
                             {"plans_name", string_node("nnUNetPlans")},
                             {"original_median_spacing_after_transp", Node::make_list(all_spacing)},
                             {"original_median_shape_after_transp", Node::make_list(shape)},
                             {"image_reader_writer", string_node(reader)},
                             {"transpose_forward", Node::make_list(order)},
                             {"transpose_backward", Node::make_list(order)},
                             {"configurations", map_of({{configuration, std::move(chosen)}})},
                             {"experiment_planner_used", string_node("ExperimentPlanner")},
                             {"label_manager", string_node("LabelManager")},
                             {"foreground_intensity_properties_per_channel",
                              preprocessing.at("foreground_intensity_properties_per_channel")}});
  const Node dataset = map_of({{"channel_names", channel_names},
                               {"labels", labels_of(task, classes)},
                               {"numTraining", Node::make_integer(0)},
                               {"file_ending", string_node(ending)},
                               {"overwrite_image_reader_writer", string_node(reader)}});

  const std::string folder = name + "/nnUNetTrainer__nnUNetPlans__" + configuration + "/";
  io::ZipWriter archive(output);
  archive.add(folder + "plans.json", config::to_plain_json(plans));
  archive.add(folder + "dataset.json", config::to_plain_json(dataset));
  archive.add(folder + "fold_0/checkpoint_final.pth", checkpoint_of(made.weights, configuration));
  archive.finish();
}

}  // namespace cytra::app
