#include "cli/mcp/tools.h"

#include <algorithm>
#include <filesystem>

#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "config/overrides/overrides.h"

namespace cytra::cli::mcp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTools = R"json([
{"name": "describe", "title": "What something is",
 "description": "Says what a data set holds (`path` of a folder or table: every image is read once; shapes, types, voxel sizes, classes, problems), what an image or a checkpoint is (`path` of a file), or what an option, component or group means (`name`: trainer.max_epochs, DynUNet, loss): type, default, range.",
 "inputSchema": {"type": "object", "additionalProperties": false, "properties": {
  "name": {"type": "string", "description": "an option by its key, a component (DynUNet), a kind of component (loss), or a group"},
  "program": {"type": "string", "enum": ["train", "predict", "export_model"], "default": "train", "description": "whose options `name` means"},
  "path": {"type": "string", "description": "a data set (a folder of images, a folder with train.csv, a table), an image, or a checkpoint"},
  "overrides": {"type": "array", "items": {"type": "string"}, "description": "with a data set: how it is read, as for train (data.columns=..., source_col=...)"}}},
 "annotations": {"readOnlyHint": true, "openWorldHint": false}},
{"name": "check", "title": "Check a training's configuration",
 "description": "Finds every mistake in the configuration of a training without starting it: unknown keys with the nearest name, values out of range, missing paths.",
 "inputSchema": {"type": "object", "additionalProperties": false, "required": ["overrides"], "properties": {
  "overrides": {"type": "array", "items": {"type": "string"}, "description": "as for train"},
  "config_dir": {"type": "string", "description": "a further folder of configs, such as the one that plan wrote to (local)"}}},
 "outputSchema": {"type": "object", "required": ["ok"], "properties": {"ok": {"const": true}}},
 "annotations": {"readOnlyHint": true, "openWorldHint": false}},
{"name": "plan", "title": "Plan a training for these images",
 "description": "Looks at the images and the free memory and writes an experiment (network, patch, batch size, augmentation) by nnU-Net's rules. Train with it by config_dir and experiment=NAME, which the messages name.",
 "inputSchema": {"type": "object", "additionalProperties": false, "required": ["path"], "properties": {
  "path": {"type": "string", "description": "the data set"},
  "output": {"type": "string", "description": "the file to write, FOLDER/experiment/NAME.yaml"},
  "overrides": {"type": "array", "items": {"type": "string"}, "description": "as for train"}}},
 "outputSchema": {"type": "object", "required": ["plan"], "properties": {"plan": {"type": "string", "description": "the file that was written"}}},
 "annotations": {"destructiveHint": false, "openWorldHint": false}},
{"name": "train", "title": "Train a model",
 "description": "Trains a model and waits for its end, with progress; cancelling the request ends it, and its state is saved. With background=true the answer comes at once with the name of a job for report and stop, which lives as long as this server. Example of overrides: experiment=im2im/segmentation, data.path=my_data, trainer.max_epochs=10.",
 "inputSchema": {"type": "object", "additionalProperties": false, "required": ["overrides"], "properties": {
  "overrides": {"type": "array", "items": {"type": "string"}, "description": "key=value and group=option, one a text, in Hydra's form"},
  "config_dir": {"type": "string", "description": "a further folder of configs, such as the one that plan wrote to (local)"},
  "output": {"type": "string", "description": "the run's folder; without it one below logs/train/runs"},
  "background": {"type": "boolean", "default": false, "description": "answer at once with the name of a job"}}},
 "outputSchema": {"type": "object", "properties": {
  "job": {"type": "string"}, "output_dir": {"type": "string"}, "best_checkpoint": {"type": "string"}, "last_checkpoint": {"type": "string"},
  "best_metric": {"type": "string"}, "best_score": {"type": ["number", "null"]}, "steps": {"type": "integer"}, "seconds": {"type": "number"}}},
 "annotations": {"destructiveHint": false, "openWorldHint": false}},
{"name": "predict", "title": "Predict images with a trained model",
 "description": "Runs a trained model over an image, a folder of images or a table, and writes masks (or what the model gives) in the format of the images; with data.with_target=true it scores them.",
 "inputSchema": {"type": "object", "additionalProperties": false, "required": ["checkpoint", "path"], "properties": {
  "checkpoint": {"type": "string", "description": "a checkpoint of train, or another model"},
  "path": {"type": "string", "description": "an image, a folder of images or a table"},
  "output": {"type": "string", "description": "the folder for results; without it one below logs/predict/runs"},
  "overrides": {"type": "array", "items": {"type": "string"}, "description": "predict.save=probability, predict.measurements=true, inference_args.overlap=0.5, ..."}}},
 "outputSchema": {"type": "object", "properties": {"output_dir": {"type": "string"}}},
 "annotations": {"destructiveHint": false, "openWorldHint": false}},
{"name": "report", "title": "How a run went, or how a job is",
 "description": "The summary of a run's folder (command, metrics of each epoch, best values, checkpoints, files, last messages), or the state of a job that train started in the background.",
 "inputSchema": {"type": "object", "additionalProperties": false, "properties": {
  "folder": {"type": "string", "description": "a run's folder"},
  "job": {"type": "string", "description": "a job that train with background=true has named"}}},
 "outputSchema": {"type": "object", "properties": {
  "folder": {"type": "string"}, "program": {"type": "string"}, "command": {"type": "string"}, "epochs": {"type": "array", "items": {"type": "object"}},
  "best": {"type": "object"}, "checkpoints": {"type": "array", "items": {"type": "string"}}, "files": {"type": "array", "items": {"type": "string"}},
  "messages": {"type": "array", "items": {"type": "string"}},
  "job": {"type": "string"}, "state": {"enum": ["running", "done", "failed", "stopped"]}, "exit_code": {"type": "integer"},
  "progress": {"type": "object"}, "result": {"type": "object"}}},
 "annotations": {"readOnlyHint": true, "openWorldHint": false}},
{"name": "stop", "title": "Stop a job",
 "description": "Tells a training in the background to end; it saves its state first. report says when it has ended.",
 "inputSchema": {"type": "object", "additionalProperties": false, "required": ["job"], "properties": {
  "job": {"type": "string", "description": "a job that train with background=true has named"}}},
 "outputSchema": {"type": "object", "required": ["job", "state"], "properties": {"job": {"type": "string"}, "state": {"type": "string"}}},
 "annotations": {"destructiveHint": false, "idempotentHint": true, "openWorldHint": false}}
])json";

bool fits(const Json& schema, const Json& value) {
  const std::string type = schema.at("type");
  if (type == "boolean") return value.is_boolean();
  if (type == "array")
    return value.is_array() && std::ranges::all_of(value, [&](const Json& item) {
             return fits(schema.at("items"), item);
           });
  const auto choices = schema.find("enum");
  // A program's argument would end at a zero byte.
  return value.is_string() && value.get_ref<const std::string&>().find('\0') == std::string::npos &&
         (choices == schema.end() || std::ranges::find(*choices, value) != choices->end());
}

std::string expected(const Json& schema) {
  if (const auto choices = schema.find("enum"); choices != schema.end()) return choices->dump();
  const std::string type = schema.at("type");
  return type == "array" ? "a list of texts" : type == "string" ? "a text" : "true or false";
}

std::string text_of(const Json& arguments, const char* key) {
  return arguments.value(key, std::string());
}

/// The command line of one of our programs, begun.
JobCommand begin_command(const std::string& program, const Borders& borders) {
  const std::string path = program_folder() + "/" + program;
  JobCommand command{path, {path, "--json", "--json-messages"}, {}};
  // What is kept between runs, and what is written for a moment, stays in the folder, too.
  const std::string own = borders.folder() + "/.cytra";
  const std::vector<std::string> ours{"XDG_CACHE_HOME=" + own + "/cache",
                                      "CUDA_CACHE_PATH=" + own + "/cache/cuda",
                                      "TMPDIR=" + own + "/tmp"};
  for (char** variable = ::environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const bool is_ours = std::ranges::any_of(ours, [&](const std::string& other) {
      return text.starts_with(other.substr(0, other.find('=') + 1));
    });
    if (!is_ours) command.environment.push_back(text);
  }
  command.environment.insert(command.environment.end(), ours.begin(), ours.end());
  return command;
}

void add_overrides(const Json& arguments, const Borders& borders, JobCommand& command) {
  if (const std::string folder = text_of(arguments, "config_dir"); !folder.empty()) {
    borders.expect_within(folder);
    command.arguments.push_back("--config-dir=" + folder);
  }
  for (const auto& word : arguments.value("overrides", std::vector<std::string>())) {
    borders.expect_override(word);
    command.arguments.push_back(word);
  }
}

void add_path(const std::string& key, const std::string& path, JobCommand& command) {
  command.arguments.push_back(config::override_word(key, path));
}

/// Adds `key` with the path that an argument names, where it does.
void add_input(const char* key,
               const std::string& path,
               const Borders& borders,
               JobCommand& command) {
  borders.expect_readable(path);
  add_path(key, path, command);
}

void add_output(const char* key,
                const Json& arguments,
                const Borders& borders,
                JobCommand& command) {
  const std::string path = text_of(arguments, "output");
  if (path.empty()) return;
  borders.expect_within(path);
  add_path(key, path, command);
}

bool is_data_set(const fs::path& path) {
  const std::string end = path.extension().string();
  return folder_exists(path) ? end != ".zarr" : end == ".csv" || end == ".tsv" || end == ".json";
}

JobCommand describe_command(const Json& arguments, const Borders& borders) {
  const bool has_path = arguments.contains("path");
  if (has_path != text_of(arguments, "name").empty())
    throw ConfigError("describe: expected either `name` or `path`");
  JobCommand command = begin_command(arguments.value("program", std::string("train")), borders);
  const std::string path = text_of(arguments, "path");
  if (has_path && !is_data_set(fs::path(borders.folder()) / path)) {
    borders.expect_readable(path);
    command.arguments.push_back("--describe=" + path);
  } else if (has_path) {
    command.arguments.emplace_back("--check-data");
    add_input("data.path", path, borders, command);
    add_overrides(arguments, borders, command);
  } else {
    const std::string name = text_of(arguments, "name");
    if (name.find('/') != std::string::npos || fs::exists(fs::path(borders.folder()) / name))
      throw ConfigError(
          "describe: `name` is an option, a component or a group; a file is a `path`");
    command.arguments.push_back("--describe=" + name);
  }
  return command;
}

}  // namespace

const Json& tools() {
  static const Json list = Json::parse(kTools);
  return list;
}

const Json* find_tool(const std::string& name) {
  for (const Json& tool : tools())
    if (tool.at("name") == name) return &tool;
  return nullptr;
}

void expect_arguments(const Json& tool, const Json& arguments) {
  const Json &schema = tool.at("inputSchema"), &known = schema.at("properties");
  const std::string name = tool.at("name");
  std::vector<std::string> names;
  for (const auto& entry : known.items()) names.push_back(entry.key());
  for (const auto& [key, value] : arguments.items()) {
    const auto found = known.find(key);
    if (found == known.end())
      throw ConfigError("{}: no argument '{}'.{}", name, key, suggestion(key, names));
    if (!fits(*found, value))
      throw ConfigError("{}: {} is {}, expected {}", name, key, value.dump(), expected(*found));
  }
  for (const auto& key : schema.value("required", std::vector<std::string>()))
    if (!arguments.contains(key))
      throw ConfigError(
          "{}: no {}, expected {}", name, key, known.at(key).at("description").get<std::string>());
}

JobCommand command_of(const std::string& tool, const Json& arguments, const Borders& borders) {
  if (tool == "describe") return describe_command(arguments, borders);
  JobCommand command = begin_command(tool == "predict" ? "predict" : "train", borders);
  if (tool == "check") command.arguments.emplace_back("--check");
  if (tool == "plan") {
    command.arguments.emplace_back("--plan");
    add_output("plan.output", arguments, borders, command);
  }
  if (tool == "predict")
    add_input("checkpoint.ckpt_path", text_of(arguments, "checkpoint"), borders, command);
  if (arguments.contains("path"))
    add_input("data.path", text_of(arguments, "path"), borders, command);
  if (tool == "train" || tool == "predict")
    add_output("paths.output_dir", arguments, borders, command);
  add_overrides(arguments, borders, command);
  return command;
}

}  // namespace cytra::cli::mcp
