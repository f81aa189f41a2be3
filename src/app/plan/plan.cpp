// `train --plan`: reads every image of the data set once, chooses patch, network, batch, spacing
// and normalisation by nnU-Net's rules, and writes them as an experiment whose comments tell why.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/plan/file.h"
#include "app/plan/tasks.h"
#include "app/setup/train_data.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strings.h"
#include "config/overrides/overrides.h"
#include "data/survey/described_classes.h"
#include "nn/plan_unet.h"
#include "tasks/annotation_targets.h"

namespace cytra::app {
namespace {

using config::Node;

constexpr double kMostMemoryGb = 8;  // nnU-Net's target: more takes longer, and seldom learns more
constexpr double kShareOfMemory = 0.7;  // the rest is for images, workers and the system
/// Images of whole numbers from below -500 to above 300 are taken for Hounsfield units.
constexpr double kLowestHounsfield = -500, kHighestHounsfield = 300;

/// The properties of the data set that the plan is made from.
struct Fingerprint {
  nn::DataFacts data;
  bool has_spacing = false, is_ct = false;
  int64_t channels = 0;
  std::vector<data::ClassFacts> labels;  // empty: no image of classes
  data::Histogram intensities;
};

/// The fingerprint of training and validation, whose images cross-validation exchanges.
Fingerprint fingerprint_of(const data::Survey& survey,
                           const std::string& image_key,
                           const std::string& label_key) {
  Fingerprint print;
  data::KeyFacts labels;
  bool is_whole = true;
  for (const data::SplitFacts& split : survey.splits) {
    if (split.split == data::Split::test) continue;
    if (split.split == data::Split::train && !split.error.empty()) throw DataError(split.error);
    if (const auto found = split.keys.find(label_key); found != split.keys.end()) {
      const data::KeyFacts& more = found->second;
      labels.images.insert(labels.images.end(), more.images.begin(), more.images.end());
      for (std::size_t bin = 0; bin < data::Histogram::kBins; ++bin) {
        labels.histogram.counts[bin] += more.histogram.counts[bin];
        labels.images_with[bin] += more.images_with[bin];
      }
    }
    const auto found = split.keys.find(image_key);
    if (found == split.keys.end()) continue;
    for (std::size_t bin = 0; bin < data::Histogram::kBins; ++bin)
      print.intensities.counts[bin] += found->second.histogram.counts[bin];
    for (const data::ImageFacts& image : found->second.images) {
      if (image.shape.empty()) continue;
      if (print.channels != 0 && image.shape[0] != print.channels) {
        throw DataError("{}: {} channels, others have {}; expected the same in all",
                        image.path,
                        image.shape[0],
                        print.channels);
      }
      print.channels = image.shape[0];
      print.data.shapes.emplace_back(image.shape.begin() + 1, image.shape.end());
      const std::size_t dims = image.shape.size() - 1;
      print.data.spacings.emplace_back(image.spacing_um.end() - static_cast<std::ptrdiff_t>(dims),
                                       image.spacing_um.end());
      is_whole = is_whole && image.is_whole;
    }
  }
  if (print.data.shapes.empty())
    throw DataError("no image of '" + image_key + "' can be read; --check-data tells why");
  std::vector<std::vector<double>>& spacings = print.data.spacings;
  print.has_spacing = std::ranges::all_of(
      spacings, [](const auto& spacing) { return *std::ranges::min_element(spacing) > 0; });
  if (!print.has_spacing)
    for (auto& spacing : spacings) std::ranges::fill(spacing, 1.0);
  print.labels = labels.classes();
  print.is_ct = is_whole && print.intensities.percentile(0) < kLowestHounsfield &&
                print.intensities.percentile(1) > kHighestHounsfield;
  return print;
}

std::string size_text(const std::vector<double>& size) {
  return join(mapped(size, [](double value) { return fmt::format("{:.4g}", value); }), " x ");
}
std::string size_text(const nn::Sizes& size) {
  return fmt::format("{}", fmt::join(size, " x "));
}

/// Memory in nnU-Net's GB, which hold for mixed precision.
struct Memory {
  double gb;
  std::string why;
};
Memory memory_for(const TrainConfig& config, c10::Device device) {
  if (const auto& asked = config.plan.memory_gb) return {*asked, "plan.memory_gb"};
  if (!device.is_cpu())
    return {kMostMemoryGb, "nnU-Net's target for a GPU; plan.memory_gb sets another"};
  const AvailableMemory at_hand = available_memory();
  const double gb = static_cast<double>(at_hand.bytes) / 1e9;
  const bool is_half = config.trainer.precision.find("16") != std::string::npos;
  const double usable = kShareOfMemory * gb / (is_half ? 1 : 2);
  if (at_hand.bytes == INT64_MAX || usable >= kMostMemoryGb)
    return {kMostMemoryGb, "nnU-Net's target; plan.memory_gb sets another"};
  return {usable,
          fmt::format("{:.3g} GB are left by {}: 70 % of it{}",
                      gb,
                      at_hand.limit,
                      is_half ? "" : ", half as many values in 32 bit")};
}

std::string network_comment(std::size_t levels, bool has_outputs) {
  std::string text = fmt::format(
      "The U-Net has {} levels: an axis is halved while 4 voxels or more are left of it and its "
      "spacing is\n"
      "within twice the finest; until then kernels are 1 along it. Features double up to a limit.",
      levels);
  if (levels > 2 && has_outputs)
    text += "\nAll levels but the lowest have an output in training: deep supervision.";
  return text;
}

void add_patch(const nn::UNetPlan& plan,
               const std::vector<double>& median,
               const Memory& memory,
               ExperimentFile& file) {
  const nn::Sizes& patch = plan.topology.patch;
  bool is_whole = true;
  for (std::size_t d = 0; d < patch.size(); ++d)
    is_whole = is_whole && static_cast<double>(patch[d]) >= median[d];
  const std::string what =
      plan.first_patch != patch
          ? fmt::format(
                "Two patches of {} are too much for {:.3g} GB ({}):\nthey are shortened where they "
                "are longest in relation to the image",
                size_text(plan.first_patch),
                memory.gb,
                memory.why)
      : is_whole ? "A patch holds it whole"
                 : "A patch is as large as nnU-Net's ever are, with sides of equal length";
  const std::string why = fmt::format(
      "The median image has {} voxels at this spacing. {},\nto multiples of {}, for the strides: "
      "{:.3g} million values of features.",
      size_text(median),
      what,
      size_text(plan.topology.divisor),
      plan.values / 1e6);
  file.set("patch_shape", numbers(patch), why);
  const int64_t longest = *std::ranges::max_element(patch);
  const int64_t shortest = *std::ranges::min_element(patch);
  if (patch.size() == 2) {
    const bool is_long = 2 * longest > 3 * shortest;
    file.set("rotation",
             numbers<double>({is_long ? 0.26 : 3.14}),
             is_long ? "Turns by 15 degrees at most: the patch is long." : "Turns by any angle.");
  } else if (patch[0] * 3 < longest) {
    file.set(
        "rotation",
        numbers<double>({3.14, 0, 0}),
        "Turns about the first axis alone: the patch is flat, as nnU-Net's dummy 2D augmentation.");
  } else {
    file.set("rotation",
             numbers<double>({0.52, 0.52, 0.52}),
             "Turns by 30 degrees at most about each axis.");
  }
}

void add_spacing(const Fingerprint& print,
                 const std::vector<double>& spacing,
                 ExperimentFile& file) {
  if (!print.has_spacing) {
    file.set(
        "target_spacing",
        numbers<double>({0}),
        "The files do not all tell their voxels' size: images stay as they are, and every axis "
        "counts as equally fine.");
    return;
  }
  const auto is_alike = [&](const std::vector<double>& one) {
    for (std::size_t d = 0; d < spacing.size(); ++d)
      if (std::abs(one[d] - spacing[d]) > 1e-3 * spacing[d]) return false;
    return true;
  };
  const auto others =
      std::ranges::count_if(print.data.spacings, [&](const auto& one) { return !is_alike(one); });
  if (others == 0) {
    file.set(
        "target_spacing",
        numbers<double>({0}),
        fmt::format("All images have voxels of {} um: they stay as they are.", size_text(spacing)));
    return;
  }
  const std::vector<double> mm = mapped(spacing, [](double um) { return um / 1000; });
  file.set(
      "target_spacing",
      numbers(mm),
      fmt::format("Images are resampled to voxels of {} um (here in mm): the median of all, of "
                  "which {} differ;\nalong an axis more than 3 times as coarse as the others "
                  "and as short, the finest tenth.",
                  size_text(spacing),
                  others));
}

/// Mean and deviation of values clipped to [low, high].
std::array<double, 2> clipped_moments(const data::Histogram& histogram, double low, double high) {
  double count = 0, sum = 0, squares = 0;
  for (std::size_t bin = 0; bin < data::Histogram::kBins; ++bin) {
    if (histogram.counts[bin] == 0) continue;
    const auto n = static_cast<double>(histogram.counts[bin]);
    const double value = std::clamp(static_cast<double>(data::Histogram::value_of(bin)), low, high);
    count += n;
    sum += n * value;
    squares += n * value * value;
  }
  const double mean = sum / count;
  return {mean, std::sqrt(std::max(squares / count - mean * mean, 1e-12))};
}

void add_intensities(const Fingerprint& print, ExperimentFile& file) {
  const data::Histogram& values = print.intensities;
  const double low = values.percentile(0.005), high = values.percentile(0.995);
  const std::string range = fmt::format("{:.6g} to {:.6g}, 0.5 to 99.5 % of them {:.6g} to {:.6g}",
                                        values.percentile(0),
                                        values.percentile(1),
                                        low,
                                        high);
  if (!print.is_ct) {
    file.set(
        "_normalization.mean",
        numbers(std::vector<double>{}),
        fmt::format("Intensities are {}:\neach channel of each image gets mean 0 and deviation 1.",
                    range));
    return;
  }
  const auto [mean, deviation] = clipped_moments(values, low, high);
  file.set(
      "_normalization.low",
      numbers(low),
      fmt::format("Intensities are whole numbers, {}: Hounsfield units of a CT.\nThey are clipped "
                  "to that range, and all images get the same scale. For a microscope's images "
                  "remove these lines.",
                  range));
  file.set("_normalization.high", numbers(high));
  file.set("_normalization.mean", numbers<double>({mean}));
  file.set("_normalization.std", numbers<double>({deviation}));
}

ExperimentFile plan_experiment(const TrainConfig& config,
                               Learned learned,
                               const Fingerprint& print,
                               const Memory& memory,
                               const Carried& carried,
                               const std::string& name) {
  ExperimentFile file;
  file.set("experiment_name", Node::make_string(name));
  nn::DataFacts data = print.data;
  const std::size_t dims = data.shapes.front().size();
  file.set("spatial_dims", Node::make_integer(static_cast<int64_t>(dims)));
  file.set("raw_im_channels", Node::make_integer(print.channels));
  const bool has_classes = learned == Learned::classes;
  int64_t classes = 1;
  if (has_classes) {
    std::string why = "As the command line said.";
    classes = carried.has("num_classes") ? config.task.get<int64_t>("num_classes")
                                         : data::classes_of(print.labels, why);
    file.set("num_classes", Node::make_integer(classes), why);
  }
  data.outputs = has_classes ? std::max<int64_t>(classes, 2)  // nnU-Net's has the background
                             : config.task.get<int64_t>("model.out_channels");

  const std::vector<double> spacing = nn::target_spacing(data),
                            median = nn::median_shape(data, spacing);
  const nn::UNetPlan plan = nn::plan_unet(data, spacing, median, memory.gb);
  add_spacing(print, spacing, file);
  add_intensities(print, file);
  add_patch(plan, median, memory, file);
  const nn::Topology& net = plan.topology;
  if (has_classes) {
    file.set("loss.batch",
             Node::make_boolean(dims == 2),
             dims == 2 ? "Dice over all slices of a batch: single ones may hold nothing."
                       : "Dice of each patch.");
  }
  if (classes > 1 && !config.task.get<bool>("multilabel", false)) {
    file.set("loss.include_background",
             Node::make_boolean(false),
             "The Dice leaves out the background.");
  }
  file.set("data.batch_size",
           Node::make_integer(plan.batch_size),
           plan.batch_size == 2
               ? "2 is the least; more do not fit, or have more than 5 % of all voxels."
               : "As many as fit, with 5 % of all voxels at most.");
  file.set(
      "model.strides", numbers(net.strides), network_comment(plan.features.size(), has_classes));
  file.set("model.upsample_kernel_size",
           numbers(std::vector<nn::Sizes>(net.strides.begin() + 1, net.strides.end())));
  file.set("model.kernel_size", numbers(net.kernels));
  file.set("model.filters", numbers(plan.features));
  const auto coarser = std::ssize(plan.features) - 2;  // than the finest output
  if (coarser > 0 && has_classes) {
    file.set("model.deep_supervision", Node::make_boolean(true));
    file.set("model.deep_supr_num", Node::make_integer(coarser));
  }
  return file;
}

int plan_data(cli::Run run, const TrainConfig& config) {
  const Learned learned = learned_by(config.task);
  const PlanTarget target = plan_target(config.plan, config.data.get<std::string>("path"));
  const c10::Device device = choose_device(config);
  Node data_config = config.data, task = config.task;
  tasks::fit_to_annotations(data_config, task);
  const auto data = make<data::DataModule>(data_config);
  const data::Survey survey = survey_of(*data);
  if (!survey.misfits.empty()) throw DataError(survey.misfits.front());
  for (const std::string& problem : survey.problems) log::warn("{}", problem);
  Fingerprint print = fingerprint_of(
      survey, config.task.get<std::string>("x_key"), config.task.get<std::string>("y_key"));
  const data::DatasetDescription description = data::description_of(*data);
  if (learned == Learned::classes) data::follow(description, print.labels, print.is_ct);
  const Carried carried = carried_by(run);
  const Memory memory = memory_for(config, device);
  ExperimentFile file =
      learned == Learned::boxes
          ? plan_detection(print.data, print.channels, memory.gb, memory.why, target.name)
          : plan_experiment(config, learned, print, memory, carried, target.name);
  if (description.ignored && learned == Learned::classes) {
    file.set("ignore_index",
             Node::make_integer(*description.ignored),
             description.place + " calls this label ignore: it is neither learned nor scored.");
  }
  for (const auto& [key, value] : carried.values) file.set(key, value);
  const std::string choice = config::override_word("experiment", target.name);
  const std::string train =
      fmt::format("train --config-dir {} {}", shell_quote(target.folder), shell_quote(choice));
  std::string text = fmt::format(
      "# @package _global_\n"
      "# {} images with {} channel{}, planned{}:\n#   {}\n"
      "# Train:             {}\n"
      "{}"
      "defaults:\n{}",
      print.data.shapes.size(),
      print.channels,
      print.channels == 1 ? "" : "s",
      learned == Learned::boxes ? "" : " by nnU-Net's rules (Isensee et al. 2021)",
      run.command_line,
      train,
      cross_validation(config.data, print.data.shapes.size(), train),
      defaults_of(learned));
  for (const auto& [group, choice] : carried.groups)
    text += fmt::format("  - override /{}: {}\n", group, choice);
  if (const std::size_t end = target.file.rfind('/'); end != std::string::npos)
    make_folders(target.file.substr(0, end));
  write_file(target.file, text + file.text());
  log::info("train with it:  {}", command("train", {"--config-dir", target.folder, choice}));
  cli::Results results(run.json);
  results.add("plan", target.file);
  results.print();
  return 0;
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_plan(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::plan_data);
}
