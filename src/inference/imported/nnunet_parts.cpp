// Part of inference/imported/nnunet.h: models that each predict some classes of one task, as
// TotalSegmentator's.
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "inference/imported/nnunet.h"
#include "inference/imported/totalsegmentator.h"
#include "io/weights/archive.h"

namespace cytra::inference {
namespace {

using config::Node;

std::vector<std::string> class_names_of(const LoadedModel& model) {
  return model.config.get<std::vector<std::string>>("task.class_names", {});
}

/// Throws: ConfigError where images are not read alike, or voxels may have several classes.
void expect_fit(const LoadedModel& first, const LoadedModel& other) {
  const auto text = [](const LoadedModel& model) {
    Node steps = model.config.at("data.transforms.valid");
    steps.list.pop_back();  // nnU-Net's preprocessing may differ
    return fmt::format("{} {} {} {}",
                       config::to_json(steps),
                       model.in_channels,
                       model.spatial_dims,
                       model.config.get<bool>("task.multilabel", false));
  };
  if (text(first) == text(other) && !first.config.get<bool>("task.multilabel", false)) return;
  throw ConfigError(
      "checkpoint.ckpt_path: {} and {} have other classes, which can't be joined: expected the "
      "same reader, channels and dimensions, and no regions",
      first.path,
      other.path);
}

/// Throws: ConfigError where a part of a task of TotalSegmentator is missing, or not in its place.
void expect_all_parts(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    const auto model = totalsegmentator_model(folder);
    if (!model || model->parts.empty() || model->parts == folders) continue;
    throw ConfigError(
        "checkpoint.ckpt_path: {}; {} is of TotalSegmentator's {}, expected these in this order, "
        "or one alone, whose classes then begin at 1",
        join(folders, ", "),
        folder,
        join(model->parts, ", "));
  }
}

}  // namespace

void join_nnunet(std::vector<LoadedModel>& models, const std::vector<std::size_t>& firsts) {
  std::vector<std::string> names, folders;
  std::set<std::string> known;
  for (const std::size_t first : firsts) {
    const LoadedModel& model = models[first];
    expect_fit(models.front(), model);
    const std::filesystem::path folder = io::nnunet_folder(model.path);
    folders.push_back(folder.parent_path().filename().string());
    for (std::string& name : class_names_of(model)) {
      if (!known.insert(name).second) {
        throw ConfigError(
            "checkpoint.ckpt_path: {} has the class '{}', as a model before it, and others that "
            "differ; expected models of the same classes, which are averaged, or of other ones, "
            "which are joined",
            model.path,
            name);
      }
      names.push_back(std::move(name));
    }
  }
  expect_all_parts(folders);
  log::info("{} models of {} classes together; where several find one, that of the last is taken",
            firsts.size(),
            names.size());
  // The image of each further part is a copy with another end.
  Node copy = config::parse_value("{_target_: CopyItemsd, keys: [raw]}", {});
  copy.set("times", Node::make_integer(std::ssize(firsts) - 1));
  std::vector<Node>& steps = models.front().config.find("data.transforms.valid")->list;
  steps.insert(steps.end() - 1, std::move(copy));
  for (std::size_t part = 1; part < firsts.size(); ++part) {
    Node end = models[firsts[part]].config.at("data.transforms.valid").list.back();
    end.set("keys", Node::make_list(std::vector<std::string>{fmt::format("raw_{}", part - 1)}));
    steps.push_back(std::move(end));
  }
  Node& task = *models.front().config.find("task");
  Node decoder = Node::make_map();
  decoder.set("_target_", Node::make_string("ClassDecoder"));
  decoder.set("num_classes", Node::make_integer(std::ssize(names) + 1));
  decoder.set("labels_only", Node::make_boolean(true));
  task.set("num_classes", Node::make_integer(std::ssize(names) + 1));
  task.set("class_names", Node::make_list(std::move(names)));
  task.set("decoder", std::move(decoder));
}

}  // namespace cytra::inference
