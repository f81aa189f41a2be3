#include "app/plan/file.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"

namespace cytra::app {

using config::Node;
namespace fs = std::filesystem;

namespace {

void write_value(const std::string& key,
                 const Node& value,
                 const std::string& indent,
                 std::string& text) {
  text += indent + key + ":";
  if (!value.is_map()) {
    text += " " + config::to_json(value) + "\n";
    return;
  }
  text += "\n";
  for (const auto& [name, below] : value.map) write_value(name, below, indent + "  ", text);
}

}  // namespace

Node numbers(double value) {
  return config::parse_value(fmt::format("{:.6g}", value), {});
}

void ExperimentFile::set(const std::string& key, Node value, const std::string& comment) {
  const std::vector<std::string> parts = split(key, '.');
  auto section =
      std::ranges::find_if(sections_, [&](const auto& one) { return one.key == parts[0]; });
  if (section == sections_.end()) section = sections_.insert(section, {parts[0], {}, ""});
  Node* place = &section->value;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (!place->is_map()) *place = Node::make_map();
    Node* below = place->find_direct(parts[i]);
    place = below != nullptr ? below : &place->set(parts[i], {});
  }
  *place = std::move(value);
  if (!comment.empty()) section->comment += comment + "\n";
}

std::string ExperimentFile::text() const {
  std::string text;
  for (const Section& section : sections_) {
    if (!section.comment.empty()) text += "\n";
    for (std::string line = section.comment; !line.empty();) {
      const std::size_t end = line.find('\n');
      text += "# " + line.substr(0, end) + "\n";
      line.erase(0, end + 1);
    }
    write_value(section.key, section.value, "", text);
  }
  return text;
}

bool Carried::has(const std::string& key) const {
  return std::ranges::any_of(values, [&](const auto& value) { return value.first == key; });
}

Carried carried_by(const cli::Run& run) {
  Carried carried;
  const Node* choices = run.composed.find("hydra.runtime.choices");
  for (const std::string& text : run.overrides) {
    std::string key = text.substr(0, text.find('='));
    key.erase(0, key.find_first_not_of('+'));
    const std::string root = key.substr(0, key.find_first_of("./@"));
    if (root == "plan" || root == "hydra" || root == "experiment" || root == "paths") continue;
    const Node* choice = choices == nullptr ? nullptr : choices->find_direct(key);
    if (choice != nullptr) {
      carried.groups.emplace_back(key, choice->is_null() ? "null" : choice->as<std::string>());
    } else if (const Node* value = run.composed.find(key)) {
      carried.values.emplace_back(key, *value);
    } else {
      log::warn("{}: is left out of the plan; add it to the file by hand", text);
    }
  }
  return carried;
}

PlanTarget plan_target(const PlanOptions& options, const std::string& data_path) {
  fs::path path = options.output.value_or("");
  if (!options.output) {
    std::string name = fs::path(data_path).lexically_normal().stem().string();
    if (name.empty()) name = fs::path(data_path).lexically_normal().parent_path().stem().string();
    for (char& c : name)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-') c = '_';
    path = fs::path("local") / "experiment" / (name + ".yaml");
  }
  const auto folder = std::ranges::find(path, "experiment");
  if (path.extension() != ".yaml" || folder == path.end() || std::next(folder) == path.end()) {
    throw ConfigError(
        "plan.output: {}, expected FOLDER/experiment/NAME.yaml, where `train --config-dir FOLDER "
        "experiment=NAME` finds it",
        path.string());
  }
  if (fs::exists(path)) {
    throw ConfigError("plan.output: {} exists; remove it, or name another file (--plan-output)",
                      path.string());
  }
  PlanTarget target{path.string(), "", ""};
  fs::path before, below;
  for (auto part = path.begin(); part != folder; ++part) before /= *part;
  for (auto part = std::next(folder); part != path.end(); ++part) below /= *part;
  target.folder = before.empty() ? "." : before.string();
  target.name = below.replace_extension().string();
  return target;
}

}  // namespace cytra::app
