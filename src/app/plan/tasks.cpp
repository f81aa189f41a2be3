#include "app/plan/tasks.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "config/schema.h"
#include "tasks/suited.h"

namespace cytra::app {

using config::Node;

Learned learned_by(const Node& task_config) {
  const std::string task = config::own_name(task_config.get<std::string>("_target_"));
  const std::string model = config::own_name(task_config.get<std::string>("model._target_"));
  const std::string_view target = tasks::target_of(task_config);
  const bool has_boxes = target == tasks::kBoxes, has_objects = target == tasks::kObjects;
  if (!has_boxes && !has_objects && target != tasks::kClasses) {
    throw ConfigError(
        "plan: task {}, expected a segmentation, instances (experiment=im2im/instance) or a "
        "detection (experiment=detection/cells)",
        task);
  }
  if (!has_boxes && model != "DynUNet")
    throw ConfigError("plan: model {}, expected DynUNet, nnU-Net's", model);
  return has_boxes ? Learned::boxes : has_objects ? Learned::objects : Learned::classes;
}

const char* defaults_of(Learned learned) {
  switch (learned) {
    case Learned::objects:
      return "  - im2im/instance\n  - im2im/nnunet\n  - override /loss: null\n";
    case Learned::boxes:
      return "  - detection/cells\n";
    default:
      return "  - im2im/nnunet\n";
  }
}

ExperimentFile plan_detection(const nn::DataFacts& data,
                              int64_t channels,
                              double memory_gb,
                              const std::string& memory_why,
                              const std::string& name) {
  constexpr int64_t kDivisor = 32, kLongest = 512, kMostImages = 16;
  constexpr double kBytes = 1000;  // about what a training step takes for each pixel
  ExperimentFile file;
  file.set("experiment_name", Node::make_string(name));
  file.set("raw_im_channels", Node::make_integer(channels));
  if (data.shapes.front().size() != 2)
    throw ConfigError(
        "plan: the images are stacks, but detection works on planes; use "
        "experiment=im2im/instance");
  const std::vector<double> median = nn::median_shape(data, nn::target_spacing(data));
  nn::Sizes patch;
  double pixels = 1, all = 0;
  const auto shortest = static_cast<int64_t>(*std::ranges::min_element(median));
  for (std::size_t axis = 0; axis < median.size(); ++axis) {
    patch.push_back(std::clamp(shortest / kDivisor * kDivisor, kDivisor, kLongest));
    pixels *= static_cast<double>(patch.back());
  }
  for (const auto& shape : data.shapes)
    all += static_cast<double>(shape[0]) * static_cast<double>(shape[1]);
  file.set("patch_shape",
           numbers(patch),
           fmt::format("The median image has {} pixels: the patch is a square of its shorter side, "
                       "to multiples of {}, {} at most.",
                       fmt::join(median, " x "),
                       kDivisor,
                       kLongest));
  const double most = std::min(memory_gb * 1e9 / (pixels * kBytes), 0.05 * all / pixels);
  file.set(
      "data.batch_size",
      Node::make_integer(std::clamp(static_cast<int64_t>(most), int64_t{2}, kMostImages)),
      fmt::format("As many as fit into {:.3g} GB ({}), with 5 % of all pixels at most, 2 to {}.",
                  memory_gb,
                  memory_why,
                  kMostImages));
  return file;
}

std::string cross_validation(const Node& data, std::size_t images, const std::string& train) {
  const bool has_folds = data.find("folds") != nullptr;
  const bool is_nnunet = config::own_name(data.get<std::string>("_target_")) == "NnUnetDatamodule";
  if ((!has_folds && !is_nnunet) || images < 2) return "";
  const std::size_t folds = std::min<std::size_t>(images, 5);
  std::string numbers;
  for (std::size_t fold = 0; fold < folds; ++fold)
    numbers += fmt::format("{}{}", fold == 0 ? "" : ",", fold);
  return fmt::format("# Cross-validation:  {} -m{} data.fold={}\n",
                     train,
                     has_folds ? fmt::format(" data.folds={}", folds) : "",
                     numbers);
}

}  // namespace cytra::app
