#include "app/export/nnunet.h"

#include <algorithm>
#include <filesystem>

#include <ATen/ATen.h>
#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include "app/export/bioimageio_operations.h"
#include "app/export/nnunet_preprocessing.h"
#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/json.h"
#include "inference/decoders/decoder.h"
#include "inference/models/trained_head.h"
#include "io/compression/zip_writer.h"
#include "nn/model.h"
#include "nn/nnunet.h"
#include "ops/windows/sums.h"

namespace cytra::app {
namespace {

using config::Node;

std::string dataset_name_of(const NnunetOptions& options, const std::string& output) {
  return options.dataset_name.empty() ? std::filesystem::path(output).stem().string()
                                      : options.dataset_name;
}

/// The reader that nnU-Net has for the images.
std::string reader_of(const std::string& ending, int64_t spatial_dims) {
  const std::vector<std::string> medical{".nii.gz", ".nii", ".nrrd", ".mha", ".gipl"};
  if (contains(medical, ending)) return "SimpleITKIO";
  if (spatial_dims == 3) {
    if (ending == ".tif" || ending == ".tiff") return "Tiff3DIO";
    refuse_for_nnunet("nnunet.file_ending=" + ending + ", expected .tif, .tiff or one of " +
                      join(medical, ", "));
  }
  if (ending == ".png" || ending == ".bmp" || ending == ".tif") return "NaturalImage2DIO";
  refuse_for_nnunet("nnunet.file_ending=" + ending + ", expected .png, .bmp, .tif or one of " +
                    join(medical, ", "));
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
        patch.size() == dims && std::ranges::all_of(patch, [](int64_t side) { return side > 0; });
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
    if (name.starts_with("decoder.seg_layers.")) tensor = at::cat({at::zeros_like(tensor), tensor});
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
  const std::vector<char> bytes = torch::jit::pickle_save(
      dict_of({{"network_weights", state},
               {"trainer_name", "nnUNetTrainer"},
               {"init_args", dict_of({{"configuration", configuration}, {"fold", int64_t{0}}})},
               {"inference_allowed_mirroring_axes", c10::IValue()}}));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void expect_nnunet_options(const NnunetOptions& options, const std::string& output) {
  if (!output.ends_with(".zip"))
    throw ConfigError("output: " + output +
                      ": expected a name that ends with .zip: nnU-Net's models are folders, which "
                      "it installs from an archive");
  const std::string name = dataset_name_of(options, output);
  const bool is_name =
      name.starts_with("Dataset") && name.size() > 11 && name[10] == '_' &&
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
                      "ResidualEncoderUNet, with the axes of the file");
  }
  const Node& task = model.config.at("task");
  if (!inference::heads_of(task).empty())
    refuse_for_nnunet(model.path + " has several outputs, expected a model of one");
  const auto decoder = inference::decoder_of(task);
  const auto forms = decoder->forms();
  if (!contains(forms, "probability"))
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
  const Node preprocessing = nnunet_preprocessing(model, options, reader);
  const std::vector<int64_t> patch = patch_of(model);

  nn::NnunetNetwork made = network->nnunet();
  if (!are_classes) add_background(made.weights);
  const int64_t classes = are_classes ? model.out_channels : 2;
  const std::string name = dataset_name_of(options, output);
  const std::string configuration = dims == 3 ? "3d_fullres" : "2d";

  Node channel_names = Node::make_map();
  for (int64_t c = 0; c < model.in_channels; ++c)
    channel_names.set(std::to_string(c), text_node(fmt::format("channel {}", c)));
  const Node spacing = preprocessing.at("spacing");
  const Node& resampling = preprocessing.at("resampling_fn_data");
  Node kwargs = preprocessing.at("resampling_fn_data_kwargs"), of_labels = kwargs;
  of_labels.set("is_seg", Node::make_boolean(true));
  Node chosen = map_of({{"data_identifier", text_node("nnUNetPlans_" + configuration)},
                        {"preprocessor_name", text_node("DefaultPreprocessor")},
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
  const Node plans = map_of({{"dataset_name", text_node(name)},
                             {"plans_name", text_node("nnUNetPlans")},
                             {"original_median_spacing_after_transp", Node::make_list(all_spacing)},
                             {"original_median_shape_after_transp", Node::make_list(shape)},
                             {"image_reader_writer", text_node(reader)},
                             {"transpose_forward", Node::make_list(order)},
                             {"transpose_backward", Node::make_list(order)},
                             {"configurations", map_of({{configuration, std::move(chosen)}})},
                             {"experiment_planner_used", text_node("ExperimentPlanner")},
                             {"label_manager", text_node("LabelManager")},
                             {"foreground_intensity_properties_per_channel",
                              preprocessing.at("foreground_intensity_properties_per_channel")}});
  const Node dataset = map_of({{"channel_names", channel_names},
                               {"labels", labels_of(task, classes)},
                               {"numTraining", Node::make_integer(0)},
                               {"file_ending", text_node(ending)},
                               {"overwrite_image_reader_writer", text_node(reader)}});

  const std::string folder = name + "/nnUNetTrainer__nnUNetPlans__" + configuration + "/";
  io::ZipWriter archive(output);
  archive.add(folder + "plans.json", config::to_plain_json(plans));
  archive.add(folder + "dataset.json", config::to_plain_json(dataset));
  archive.add(folder + "fold_0/checkpoint_final.pth", checkpoint_of(made.weights, configuration));
  archive.finish();
}

}  // namespace cytra::app
