#include "inference/models/trained_head.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace cytra::inference {

using config::Node;

namespace {

/// Removes a key from transforms; transforms without other keys are removed.
void leave_out(Node& transforms, const std::string& key) {
  for (auto& [split, steps] : transforms.map) {
    std::vector<Node> kept;
    for (Node& step : steps.list) {
      Node* keys = step.find_direct("keys");
      const bool has_keys = keys != nullptr && keys->kind == config::Kind::list;
      if (has_keys) {
        const auto is_it = [&](const Node& one) { return one.string == key; };
        std::erase_if(keys->list, is_it);
      }
      if (!has_keys || !keys->list.empty()) kept.push_back(std::move(step));
    }
    steps.list = std::move(kept);
  }
}

}  // namespace

std::vector<std::string> heads_of(const Node& task) {
  std::vector<std::string> names;
  const Node* heads = task.find("model.heads");
  if (heads == nullptr || !task.has("heads")) return names;
  for (const auto& [name, head] : heads->map) {
    if (head.is_map()) names.push_back(name);
  }
  return names;
}

Node head_channels(const Node& model, const std::string& head) {
  const Node* channels = model.find("heads." + head + ".out_channels");
  if (channels == nullptr || channels->is_null()) channels = model.find("backbone.out_channels");
  return channels == nullptr ? Node() : *channels;
}

LoadedModel head_of(const LoadedModel& model, const std::string& head) {
  LoadedModel one = model;
  Node task = model.config.at("task");
  const std::vector<std::string> names = heads_of(task);
  const auto found = std::ranges::find(names, head);
  const Node* own = task.find("heads." + head);
  if (found == names.end() || own == nullptr || !own->is_map()) {
    throw ConfigError("predict.heads: '{}', but {} has the heads {}{}",
                      head,
                      model.path,
                      fmt::join(names, ", "),
                      suggestion(head, names));
  }
  const Node channels = head_channels(task.at("model"), head);
  if (!channels.is_null()) one.out_channels = channels.as<int64_t>();
  for (const auto& [key, value] : own->map) {
    if (key != "_target_") task.set(key, value);
  }
  if (task.find("num_classes") == nullptr || task.at("num_classes").is_null())
    task.set("num_classes", Node::make_integer(one.out_channels));
  task.set("model", Node::make_map());  // its out_channels are of another output
  one.config.set("task", task);
  Node* transforms = one.config.find("data.transforms");
  for (const auto& [name, other] : model.config.at("task.heads").map) {
    const auto key = other.is_map() ? other.get<std::string>("y_key", "seg") : "";
    if (transforms != nullptr && !key.empty() && key != task.get<std::string>("y_key", "seg"))
      leave_out(*transforms, key);  // the other heads' targets
  }
  const auto output = static_cast<std::size_t>(found - names.begin());
  one.forward = [forward = model.forward, output, path = model.path](const at::Tensor& windows) {
    const std::vector<at::Tensor> outputs = forward(windows);
    if (output < outputs.size()) return std::vector<at::Tensor>{outputs[output]};
    throw DataError(
        "{}: the network gives {} outputs, and its configuration has more heads; export the "
        "checkpoint again (format=torchscript)",
        path,
        outputs.size());
  };
  one.features = {};
  one.torchscript = {};  // it has all outputs
  one.onnx = {};
  one.fingerprint += " " + head;
  return one;
}

}  // namespace cytra::inference
