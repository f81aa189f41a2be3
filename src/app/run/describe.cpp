// `--describe` and `--schema` of every program, from the one declaration of each option; and what a
// file is.
#include <filesystem>

#include "app/run/entry.h"
#include "base/files.h"
#include "config/json_schema.h"
#include "inference/models/trained_model.h"
#include "io/reader.h"
#include "nn/model.h"

namespace cytra::app {
namespace {

using config::Node;

void describe_image(const std::string& path, cli::Results& results) {
  io::Selection first;
  first.timepoint = 0;  // the others are counted
  const io::ImageInfo info = io::open_image(path, first)->info();
  results.add("image", path);
  results.add("shape", Node::make_list(info.shape));
  results.add("type", std::string(io::name_of(info.dtype)));
  results.add("channels", Node::make_list(info.channel_names));
  results.add("spacing_um", Node::make_list(info.geometry.spacing_um));
  results.add("has_affine", Node::make_boolean(info.geometry.has_affine()));
  results.add("scenes", Node::make_integer(info.scenes));
  results.add("levels", Node::make_integer(info.levels));
  results.add("timepoints", Node::make_integer(info.timepoints));
}

void describe_model(const std::string& path, cli::Results& results) {
  const inference::LoadedModel model = inference::load_models({{path}, std::nullopt}).at(0);
  const auto type_of = [&](const char* key) {
    return config::own_name(model.config.get<std::string>(key, ""));
  };
  results.add("checkpoint", path);
  if (const std::string task = type_of("task._target_"); !task.empty()) results.add("task", task);
  if (const std::string net = type_of("task.model._target_"); !net.empty())
    results.add("model", net);
  if (model.network)
    results.add("parameters", Node::make_integer(nn::count_parameters(*model.network)));
  results.add("spatial_dims", Node::make_integer(model.spatial_dims));
  results.add("in_channels", Node::make_integer(model.in_channels));
  results.add("out_channels", Node::make_integer(model.out_channels));
  for (const char* key : {"patch_shape", "class_names"}) {
    const Node* value = model.config.find(key);
    if (value != nullptr && value->kind == config::Kind::list) results.add(key, *value);
  }
  if (model.temperature) results.add("temperature", *model.temperature);
  results.add("fingerprint", model.fingerprint);
}

/// What an image or a trained model is: shape, type, voxel size; task, network, channels, classes.
/// As `key: value` lines, or with `json` as an object. None where `name` is no file with an ending
/// and no image in a folder. Throws: as io::open_image() or inference::load_models().
std::optional<std::string> describe_file(const std::string& name, bool json) {
  const std::filesystem::path path(name);
  const bool is_image = path_exists(io::file_of(name)) && io::is_image_path(name);
  if (!is_image && (!path.has_extension() || !file_exists(path))) return std::nullopt;
  cli::Results results(json);
  is_image ? describe_image(name, results) : describe_model(name, results);
  return results.text();
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_describe(cytra::cli::DescribeRequest& request) {
  using namespace cytra;
  if (!request.schema) {
    if (const auto text = app::describe_file(request.what, request.json)) {
      request.text = *text;
      return 0;
    }
  }
  const config::Components& programs = config::components_of("program");
  config::Node target = config::Node::make_map();
  target.set("_target_", config::Node::make_string(request.program));
  const config::OptionsType& program = programs.types.at(programs.name_of(target));
  request.text = request.schema ? config::json_schema(program, request.what)
                                : config::describe_text(program, request.what);
  return 0;
}
