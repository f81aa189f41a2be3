// Part of inference/imported/imported_model.h: MONAI's bundles,
// https://docs.monai.io/en/stable/mb_specification.html. Their configurations are
// programs; what is read of them are values, references to values (@a::b, @a#b) and the names of
// transforms. MONAI's axes are (X,Y[,Z]), ours ([Z,]Y,X): windows are turned for the network, and
// so are arguments that have one number per axis.
#include <algorithm>
#include <filesystem>
#include <set>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "config/registry.h"
#include "config/schema.h"
#include "data/sample/sample.h"
#include "data/transforms/load_image.h"
#include "inference/imported/imported_model.h"
#include "nn/fingerprint.h"
#include "nn/model.h"
#include "nn/weights.h"

namespace cytra::inference {
namespace {

namespace fs = std::filesystem;
using config::Node;

[[noreturn]] void refuse_bundle(const Node& node, const std::string& what) {
  throw ConfigError(node.where() + ": " + what);
}

std::string own_target(const Node& node) {
  const Node* target = node.is_map() ? node.find_direct("_target_") : nullptr;
  if (target == nullptr || target->kind != config::Kind::string) return "";
  return target->string.substr(target->string.rfind('.') + 1);
}

/// The configuration configs/inference.json, or a part of it.
class BundleConfig {
 public:
  explicit BundleConfig(Node root) : root_(std::move(root)) {}

  /// The value of a key with its references replaced; null where there is none. Throws:
  /// ConfigError for Python in it, and for references that make it too large for a configuration.
  Node get(const char* key) const {
    const Node* found = root_.find_direct(key);
    return found == nullptr ? Node() : resolved(*found, 0);
  }
  bool has(const char* key) const { return root_.find_direct(key) != nullptr; }

 private:
  const Node& target_of(const Node& reference) const {
    std::string path = reference.string.substr(1);
    for (std::size_t at = path.find("::"); at != std::string::npos; at = path.find("::"))
      path.replace(at, 2, "#");
    const Node* found = &root_;
    for (const std::string& part : split(path, '#')) {
      found = part.empty() || !found->is_container() ? nullptr : found->find(part);
      if (found == nullptr) refuse_bundle(reference, "there is no '" + reference.string + "'");
    }
    return *found;
  }
  Node resolved(const Node& node, int depth) const {
    if (depth > 32) refuse_bundle(node, "references that lead to themselves");
    resolved_ += 1 + std::ssize(node.string) / 64;
    if (resolved_ > kMostResolved) {
      refuse_bundle(node,
                    fmt::format("references that stand for more than {} values", kMostResolved));
    }
    if (node.kind == config::Kind::string && !node.string.empty()) {
      // "$@a" is "@a".
      Node reference = node;
      if (node.string.starts_with("$@")) reference.string = node.string.substr(1);
      if (reference.string[0] == '@' &&
          reference.string.find_first_of(" .()[]+-*/") == std::string::npos)
        return resolved(target_of(reference), depth + 1);
      if (node.string[0] == '$' || node.string[0] == '%') {
        refuse_bundle(node,
                      fmt::format("'{}' is Python, which is not run; expected a value, or a "
                                  "reference as @key",
                                  printable(node.string)));
      }
    }
    Node copy = node;
    for (Node& item : copy.list) item = resolved(item, depth + 1);
    for (auto& [key, value] : copy.map) value = resolved(value, depth + 1);
    return copy;
  }

  static constexpr int64_t kMostResolved = 1'000'000;
  Node root_;
  mutable int64_t resolved_ = 0;  // values that references were replaced by so far
};

/// Reverses a list of one number per axis.
void turn_axes(Node& values, int64_t dims) {
  if (values.kind == config::Kind::list && std::ssize(values.list) == dims)
    std::ranges::reverse(values.list);
}

/// Converts a transform of `preprocessing` to ours. Throws: ConfigError naming what is not known
/// here.
void adapt_transform(Node& transform, int64_t dims) {
  const config::Components& known = config::components_of(data::Transform::kKind);
  const std::string name = own_target(transform);
  if (known.types.count(name) == 0) {
    refuse_bundle(transform,
                  fmt::format("the transform '{}' is not one of ours.{}",
                              printable(name),
                              suggestion(name, known.names())));
  }
  static const std::set<std::string> per_axis{"pixdim",
                                              "spatial_size",
                                              "roi_size",
                                              "roi_center",
                                              "roi_start",
                                              "roi_end",
                                              "spatial_border",
                                              "zoom",
                                              "k"};
  static const std::set<std::string> of_axes{"spatial_axis",
                                             "spatial_axes",
                                             "angle",
                                             "rotate_params",
                                             "shear_params",
                                             "translate_params",
                                             "scale_params"};
  for (auto& [key, value] : transform.map) {
    if (per_axis.count(key) != 0) turn_axes(value, dims);
    if (of_axes.count(key) != 0)
      refuse_bundle(value, fmt::format("{} of {} in a bundle: axes run the other way", key, name));
  }
  if (data::loads_images(transform)) transform.set("spatial_dims", Node::make_integer(dims));
  auto& entries = transform.map;
  std::erase_if(entries, [](const auto& entry) {
    return entry.first == "_disabled_" || entry.first == "_desc_" || entry.first == "_mode_";
  });
}

/// The steps of a Compose that are not switched off.
std::vector<Node> steps_of(const BundleConfig& bundle, const char* key) {
  const Node compose = bundle.get(key);
  std::vector<Node> steps;
  const Node* list = compose.is_map() ? compose.find_direct("transforms") : nullptr;
  for (const Node& step : list == nullptr ? compose.list : list->list) {
    const Node* disabled = step.is_map() ? step.find_direct("_disabled_") : nullptr;
    if (disabled == nullptr || !disabled->as<bool>()) steps.push_back(step);
  }
  return steps;
}

Node window_args(const Node& inferer, int64_t dims) {
  Node args = Node::make_map();
  const std::string name = own_target(inferer);
  if (name.empty() || name == "SimpleInferer") return args;
  if (name != "SlidingWindowInferer" && name != "SlidingWindowInfererAdapt") {
    refuse_bundle(inferer,
                  fmt::format("the inferer '{}' is not one of ours; expected SlidingWindowInferer "
                              "or SimpleInferer",
                              printable(name)));
  }
  for (const char* key :
       {"roi_size", "sw_batch_size", "overlap", "mode", "sigma_scale", "padding_mode", "cval"}) {
    const Node* value = inferer.find_direct(key);
    if (value == nullptr) continue;
    turn_axes(args.set(key, *value), dims);
  }
  return args;
}

/// Whether the outputs are masks that may overlap instead of classes: postprocessing then takes
/// logistic functions.
bool is_multilabel(const BundleConfig& bundle) {
  const Node* list = nullptr;
  const Node post = bundle.get("postprocessing");
  if (post.is_map()) list = post.find_direct("transforms");
  for (const Node& step : list == nullptr ? post.list : list->list) {
    if (own_target(step) == "Activationsd" && step.get<bool>("sigmoid", false)) return true;
  }
  return false;
}

}  // namespace

void open_network(ImportedModel& imported, Node definition, const std::string& weights) {
  if (own_target(definition) == "DynUNet" && !definition.has("filters"))
    definition.set("filters", Node());  // MONAI's default has more filters than ours
  const std::shared_ptr<nn::Model> network = make<nn::Model>(definition);
  nn::load_weights(weights, *network);
  network->eval();
  for (at::Tensor& parameter : network->parameters()) parameter.requires_grad_(false);
  imported.fingerprint = nn::fingerprint_of(*network, definition);
  imported.divisor = network->divisor();
  imported.place = [network](c10::Device device, bool on_tensor_cores) {
    nn::place(*network, device, on_tensor_cores);
  };
  imported.forward = [network](const at::Tensor& windows) { return network->all(windows); };
}

ImportedModel open_bundle(const std::string& path) {
  const fs::path folder = path;
  const fs::path metadata_file = folder / "configs" / "metadata.json";
  if (!path_exists(metadata_file)) {
    throw DataError(path +
                    ": a folder without configs/metadata.json; expected a bundle of MONAI, "
                    "or a checkpoint");
  }
  const Node metadata = config::load_yaml(metadata_file.string());
  const Node& inputs = metadata.at("network_data_format").at("inputs");
  if (inputs.map.size() != 1)
    refuse_bundle(inputs, fmt::format("{} inputs, expected one: the image", inputs.map.size()));
  const Node& image = inputs.map[0].second;
  const auto dims = static_cast<int64_t>(image.at("spatial_shape").list.size());
  if (dims != 2 && dims != 3)
    refuse_bundle(image.at("spatial_shape"), fmt::format("{} axes, expected 2 or 3", dims));

  Node settings = Node::make_map();
  for (const char* name : {"inference.json", "inference.yaml", "inference.yml"}) {
    const fs::path file = folder / "configs" / name;
    if (path_exists(file)) {
      settings = config::load_yaml(file.string());
      break;
    }
  }
  const BundleConfig bundle(std::move(settings));
  ImportedModel imported;
  const fs::path script = folder / "models" / "model.ts", weights = folder / "models" / "model.pt";
  for (const fs::path& file : {script, weights}) {
    if (path_exists(file) && !file_exists(file))
      throw DataError(file.string() + ": a folder, pipe, socket or device, expected a file");
  }
  if (path_exists(script)) {
    imported = open_torchscript(script.string());
    imported.torchscript = nullptr;  // it does not turn the axes
    imported.config = Node::make_map();
  } else if (path_exists(weights) && bundle.has("network_def")) {
    open_network(imported, bundle.get("network_def"), weights.string());
  } else {
    throw DataError(path +
                    ": neither models/model.ts nor models/model.pt with network_def in "
                    "configs/inference.json");
  }
  std::ranges::reverse(imported.divisor);
  imported.spatial_dims = dims;
  imported.in_channels = image.get<int64_t>("num_channels");
  std::vector<int64_t> order{0, 1};
  for (int64_t d = dims; d > 0; --d) order.push_back(d + 1);
  imported.forward = [order, run = std::move(imported.forward)](const at::Tensor& windows) {
    std::vector<at::Tensor> outputs = run(windows.permute(order).contiguous());
    for (at::Tensor& output : outputs) output = output.permute(order).contiguous();
    return outputs;
  };

  Node task = Node::make_map(), transforms = Node::make_map(), data = Node::make_map(),
       list = Node::make_list();
  std::string x_key = "image";
  for (Node& step : steps_of(bundle, "preprocessing")) {
    adapt_transform(step, dims);
    if (const auto keys = data::loaded_keys(step); !keys.empty()) x_key = keys[0];
    list.list.push_back(std::move(step));
  }
  task.set("x_key", Node::make_string(x_key));
  task.set("y_key", Node::make_string("pred"));
  task.set("multilabel", Node::make_boolean(is_multilabel(bundle)));
  task.set("inference_args", window_args(bundle.get("inferer"), dims));
  imported.config.set("task", std::move(task));
  if (!list.list.empty()) {
    transforms.set("valid", std::move(list));
    data.set("transforms", std::move(transforms));
    imported.config.set("data", std::move(data));
  }
  return imported;
}

}  // namespace cytra::inference
