// Infers from the data what a configuration leaves open: layout, columns, channels, planes,
// classes, and the experiment that learns their targets. The values become overrides before the
// typed ones, so that typed ones win and the run's configuration holds all of them.
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/run/entry.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "cli/infer_request.h"
#include "config/overrides/overrides.h"
#include "config/registry.h"
#include "data/datamodules/description.h"
#include "data/layout/layout.h"
#include "data/survey/guess_targets.h"
#include "io/formats.h"
#include "tasks/suited.h"

namespace cytra::app {
namespace {

using config::Node;

/// A part of the tree as the program gets it; null where it can't be resolved, which the program
/// reports.
Node part_of(const Node& root, const std::string& key) {
  try {
    return config::evaluate(root, key);
  } catch (const ConfigError&) {
    return {};
  }
}

std::string text_value(const Node& root, const std::string& key) {
  const Node node = part_of(root, key);
  return node.kind == config::Kind::string ? node.string : "";
}

class Inference {
 public:
  explicit Inference(cli::InferRequest& request)
      : request_(request), typed_(request.overrides), own_(config_folder()) {
    for (const std::string& word : typed_)
      typed_keys_.push_back(config::parse_override(word).full_key());
    compose();
  }

  void run() {
    const std::string path = text_value(root(), "data.path");
    const Node& origin = root();  // nothing is inferred for other programs
    if (path.empty() || !path_exists(path) || !is_own_file(origin, "train.yaml")) return;
    take_layout(path);
    std::shared_ptr<data::DataModule> module = make_module();
    std::vector<data::Sample> items = items_of(module);
    if (items.empty()) return;
    data::ImageHeaders images = data::look_at_images(items, text_value(root(), "source_col"));
    if (take_pages(images, items)) {
      items = items_of(module = make_module());
      if (items.empty()) return;
      images = data::look_at_images(items, text_value(root(), "source_col"));
    }
    take_image(images);
    take_target(*module, items);
  }

 private:
  const Node& root() const { return composition_.root; }
  static bool is_first_process() {
    const char* const rank = std::getenv("LOCAL_RANK");
    return rank == nullptr || std::string(rank) == "0";
  }

  void compose() { composition_ = request_.composer.load(request_.primary, request_.overrides); }

  bool is_typed(const std::string& key) const { return contains(typed_keys_, key); }

  /// Whether the node is written in our own configs: in `name`, or in any of them.
  bool is_own_file(const Node& node, const std::string& name = "") const {
    if (!node.origin.file || node.is_set_by_user()) return false;
    return name.empty() || are_same_file(*node.origin.file, own_ + "/" + name);
  }
  /// Whether the user has not set a value: it is the primary config's, or that of an experiment of
  /// ours.
  bool is_open(const std::string& key, bool also_in_experiments = false) const {
    const Node* node = root().find(key);
    return node != nullptr && is_own_file(*node, also_in_experiments ? "" : "train.yaml");
  }

  /// Puts overrides before the typed ones, and says so.
  void take(const std::vector<std::string>& words, const std::string& why) {
    inferred_.insert(inferred_.end(), words.begin(), words.end());
    request_.overrides = inferred_;
    request_.overrides.insert(request_.overrides.end(), typed_.begin(), typed_.end());
    std::string line;
    for (const std::string& word : words) line += " " + shell_quote(word);
    if (is_first_process()) log::info("from the data:{} ({})", line, why);
    compose();
  }

  std::string choice_of(const std::string& group) const {
    for (const auto& [name, option] : composition_.choices)
      if (name == group) return option == "null" ? "" : option;
    return "";
  }

  void take_layout(const std::string& path) {
    const std::string choice = choice_of("data");
    const bool is_default = choice == "dataframe" && !is_typed("data");
    const bool is_folder = choice == "folder" && part_of(root(), "data.regex").is_null();
    const bool is_classes = choice == "class_folders" && !is_typed("class_names");
    if (!is_default && !is_folder && !is_classes && choice != "dataframe") return;
    const bool is_joined = !part_of(root(), "data.source_keys").list.empty();
    if (is_joined) return;  // a user who names the columns of channels names the others
    data::DataNeeds needs;
    needs.source_col = text_value(root(), "source_col");
    needs.target_col = text_value(root(), "target_col");
    const Node columns = part_of(root(), "data.columns");
    std::vector<std::string> usual = {needs.source_col, needs.target_col}, names;
    for (const Node& name : columns.list) names.push_back(name.as<std::string>());
    needs.has_target = names.size() != 1;
    if (!needs.has_target) usual.pop_back();
    if (names != usual) return;
    needs.prefers_annotations = is_detection();
    const bool has_experiment = !choice_of("experiment").empty() || is_typed("task");
    needs.is_any_task = !has_experiment;
    needs.may_be_classes =
        is_classes || (is_default && (!has_experiment || target() == tasks::kClassOfImage));
    for (const Node& name : part_of(root(), "data.folders").list)
      needs.folders.push_back(name.as<std::string>());
    const std::optional<data::Layout> layout = data::layout_of(path, needs);
    if (!layout) return;
    const bool is_other = layout->module != (is_default ? "" : choice);
    if (is_other && !is_default && !(choice == "dataframe" && layout->module.empty())) return;
    std::vector<std::string> words;
    if (!layout->experiment.empty() && !has_experiment)
      words.push_back("experiment=" + layout->experiment);
    if (is_default && !layout->module.empty()) words.push_back("data=" + layout->module);
    for (const auto& [key, texts] : layout->settings) {
      const bool is_list = key == "data.folders" || key == "data.regex" || key == "class_names";
      const bool is_parted = is_typed("data.split_column") || is_typed("data.split_map");
      if (is_typed(key) || (key == "data.folds" && is_parted)) continue;
      if (!key.starts_with("data.") && !is_list && !is_open(key, true)) continue;
      const bool is_name = key.ends_with("_col") || key == "data.split_column";
      words.push_back(key + "=" +
                      (is_list   ? config::override_text(Node::make_list(texts))
                       : is_name ? config::override_text(Node::make_string(texts[0]))
                                 : texts[0]));
    }
    if (!words.empty()) take(words, layout->text);
  }

  static std::vector<data::Sample> items_of(const std::shared_ptr<data::DataModule>& module) {
    try {
      return module ? data::items_of(*module, data::Split::train) : std::vector<data::Sample>();
    } catch (const Error&) {  // the training reports it
      return {};
    }
  }

  static bool may_be_named(const std::string& image) {
    const io::Format* format = io::format_of_name(image);
    return format != nullptr && !format->names_own_axes;
  }

  /// Takes pages as channels, where the target of several is one plane; false for others.
  bool take_pages(const data::ImageHeaders& images, const std::vector<data::Sample>& items) {
    const bool may_be_pages = images.least_planes > 1 &&
                              images.most_planes == images.least_planes && images.channels == 1 &&
                              may_be_named(images.example) && is_open("spatial_dims") &&
                              part_of(root(), "data.axes").is_null();
    if (!may_be_pages) return false;
    const data::ImageHeaders targets =
        data::look_at_images(items, text_value(root(), "target_col"));
    if (targets.most_planes != 1) return false;
    take({"data.axes=CYX"},
         fmt::format("{} has {} pages, and its target one: they are channels",
                     images.example,
                     images.example_planes));
    return true;
  }

  std::shared_ptr<data::DataModule> make_module() const {
    try {
      return make<data::DataModule>(part_of(root(), "data"));
    } catch (const Error&) {
      return nullptr;
    }
  }

  bool takes_colours() const {
    try {
      const Node transforms = part_of(root(), "data.transforms.valid");
      return std::ranges::any_of(transforms.list, [](const Node& one) {
        return make<data::Transform>(one)->takes_colours();
      });
    } catch (const Error&) {  // the training will say it
      return false;
    }
  }

  void take_image(const data::ImageHeaders& facts) {
    const Node* transforms = root().find("data.transforms.valid");
    const bool are_ours = transforms != nullptr && is_own_file(*transforms);
    if (facts.example.empty() || !are_ours) return;
    const bool is_deep = facts.least_planes > 1;
    const bool is_flat = facts.most_planes == 1;
    const Node dims = part_of(root(), "spatial_dims");
    if (is_open("spatial_dims") && is_deep && dims.kind == config::Kind::integer &&
        dims.integer == 2) {
      take({"spatial_dims=3"},
           fmt::format(
               "{} has {} planes{}",
               facts.example,
               facts.example_planes,
               may_be_named(facts.example) ? "; data.axes=TYX where they are time points" : ""));
    } else if ((is_deep && dims.integer == 2) || (is_flat && dims.integer == 3)) {
      log::warn("spatial_dims={}, but {} has {} plane{}: spatial_dims={} fits the images",
                dims.integer,
                facts.example,
                facts.example_planes,
                facts.example_planes == 1 ? "" : "s",
                is_deep ? 3 : 2);
    }
    if (takes_colours()) return;
    const Node channels = part_of(root(), "raw_im_channels");
    if (facts.all_channels.size() > 1 && text_value(root(), "data.on_error") == "fail" &&
        is_first_process()) {
      log::warn(
          "images have {} channels: LoadImaged's channel: [0] takes the first of each, and "
          "--check-data names those that differ",
          fmt::join(facts.all_channels, ", "));
    }
    if (!facts.channels || channels.kind != config::Kind::integer ||
        *facts.channels == channels.integer)
      return;
    if (is_open("raw_im_channels")) {
      take({fmt::format("raw_im_channels={}", *facts.channels)},
           fmt::format("{} has {} channels", facts.example, *facts.channels));
    }
  }

  void take_target(const data::DataModule& module, const std::vector<data::Sample>& items) {
    const bool has_experiment =
        !choice_of("experiment").empty() || is_typed("task") || is_typed("experiment");
    const std::string key = text_value(root(), "target_col");
    const bool has_target =
        std::ranges::all_of(items, [&](const auto& item) { return item.sources.count(key) > 0; });
    const bool is_plan = request_.entry == "cytra_plan";
    if (!has_target || ((has_experiment || is_plan) && !wants_classes())) return;
    if (!is_plan && take_description(module, has_experiment)) return;
    const data::TargetGuess guess = data::guess_targets(module, items, key, kMostImages);
    const std::string seen =
        guess.looked_at < items.size()
            ? fmt::format("; {} of {} images looked at", guess.looked_at, items.size())
            : fmt::format(", in {} images, all of them", items.size());
    if (is_plan && guess.box_classes.empty()) return;  // the plan reads all of the images
    if (!has_experiment && !is_plan) {
      if (guess.experiments.empty()) return;
      if (guess.experiments.size() > 1) {
        throw ConfigError("data.path: {} ({}) may be learned in several ways; type {}",
                          key,
                          guess.why,
                          fmt::join(guess.experiments, ", or "));
      }
      std::vector<std::string> words = {"experiment=" + experiment_of(guess.experiments[0])};
      if (words[0] == "experiment=detection/cells" || words[0] == "experiment=im2im/labelfree")
        words.push_back("target_col=" + config::override_text(Node::make_string(key)));
      if (words[0] == "experiment=im2im/instance")
        words.insert(words.end(), guess.objects.begin(), guess.objects.end());
      take(words, guess.why + seen);
    }
    const std::vector<std::string>& classes = is_detection() ? guess.box_classes : guess.classes;
    if (!wants_classes()) return;
    if (!classes.empty()) {
      take(classes, guess.why + seen);
    } else if (!is_detection() && guess.experiments.size() > 1) {
      log::info("{} ({}) is learned as one mask; {} learns more",
                key,
                guess.why,
                fmt::join(guess.experiments, ", or "));
    }
  }

  /// Takes the labels from dataset.json, which counts more than what their values look like.
  bool take_description(const data::DataModule& module, bool has_experiment) {
    data::DatasetDescription description;
    try {
      description = data::description_of(module);
    } catch (const Error&) {  // the training reports it
    }
    if (description.labels.size() < 2 || !description.regions.empty() || is_detection())
      return false;
    const std::string why = "labels of " + description.place;
    if (!has_experiment) take({"experiment=" + experiment_of("=im2im/segmentation")}, why);
    if (!wants_classes()) return true;
    std::vector<std::string> words;
    const int64_t classes = description.labels.rbegin()->first + 1;
    if (classes > 2) words.push_back(fmt::format("num_classes={}", classes));
    if (description.ignored) words.push_back(fmt::format("ignore_index={}", *description.ignored));
    if (!words.empty()) take(words, why);
    return true;
  }

  /// The name of the experiment; stacks have experiments of their own.
  std::string experiment_of(const std::string& words) const {
    const std::string name = words.substr(words.find('=') + 1);
    const Node dims = part_of(root(), "spatial_dims");
    const bool is_3d = dims.kind == config::Kind::integer && dims.integer == 3;
    return name == "im2im/segmentation" && is_3d ? "im2im/segmentation_3d" : name;
  }

  bool follows_classes(const char* key) const {
    const Node* node = root().find(key);
    return node != nullptr && node->kind == config::Kind::string &&
           node->string == "${num_classes}";
  }
  /// Whether a segmentation, or a detection, leaves open what its target means.
  bool wants_classes() const {
    for (const char* key : {"num_classes", "multilabel", "target_values", "ignore_index"})
      if (!is_open(key)) return false;
    if (is_detection())
      return follows_classes("model.num_classes") && part_of(root(), "task.class_key").is_null();
    return target() == tasks::kClasses && follows_classes("model.out_channels") &&
           follows_classes("task.num_classes") &&
           part_of(root(), "task.target_threshold").is_null() &&
           part_of(root(), "task.colours").list.empty();
  }
  std::string_view target() const { return tasks::target_of(part_of(root(), "task")); }
  bool is_detection() const { return target() == tasks::kBoxes; }

  static constexpr int64_t kMostImages = 64;

  cli::InferRequest& request_;
  const std::vector<std::string> typed_;
  const std::string own_;
  std::vector<std::string> typed_keys_, inferred_;
  config::Composition composition_;
};

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_infer(cytra::cli::InferRequest& request) {
  return cytra::device::guarded([&] {
    cytra::app::Inference(request).run();
    return 0;
  });
}
