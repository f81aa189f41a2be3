#include "tasks/suited.h"

#include <optional>
#include <utility>

#include "config/schema.h"
#include "tasks/head.h"
#include "training/task.h"

namespace cytra::tasks {
namespace {

using config::Node;

/// The registered class; none where there is no such class, which is reported elsewhere.
std::optional<std::pair<std::string, const char*>> purpose_of(const Node& component,
                                                              const char* kind) {
  if (!component.is_map()) return std::nullopt;
  const config::Components& known = config::components_of(kind);
  try {
    const std::string name = known.name_of(component);
    return std::pair(name, known.types.at(name).purpose);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

}  // namespace

std::string_view target_of(const Node& task) {
  for (const char* kind : {training::Task::kKind, Head::kKind}) {
    if (const auto known = purpose_of(task, kind); known && known->second != nullptr)
      return known->second;
  }
  return "";
}

void expect_image_model(const Node& model) {
  const auto known = purpose_of(model, nn::Model::kKind);
  if (known && known->second != nullptr)
    throw ConfigError("{}: {} gives {}", model.at("_target_").where(), known->first, known->second);
  if (const Node* backbone = model.find("backbone")) expect_image_model(*backbone);
}

void expect_loss_of(const Node& loss, const nn::Compared& learned) {
  const auto known = purpose_of(loss, nn::Loss::kKind);
  if (!known) return;
  const auto& [type, compared] = *known;
  if (compared != nullptr && std::string_view(compared) != learned.what) {
    throw ConfigError("{}: {} compares {}, but this task learns {}; expected {}",
                      loss.at("_target_").where(),
                      type,
                      compared,
                      learned.what,
                      learned.losses);
  }
  for (const auto& [key, value] : loss.map) {  // losses in it, one or several by name
    expect_loss_of(value, learned);
    if (!value.has("_target_") && value.is_map()) {
      for (const auto& [name, inner] : value.map) expect_loss_of(inner, learned);
    }
  }
}

}  // namespace cytra::tasks
