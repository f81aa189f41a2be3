#pragma once
// Which models and losses suit a task: others would train without learning it.
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "config/registry.h"
#include "nn/loss.h"
#include "nn/model.h"

namespace cytra::tasks {

/// What the target of a task, or of a head, is: its Options::kPurpose.
inline constexpr const char *kClasses = "classes", *kObjects = "objects", *kBoxes = "boxes",
                            *kClassOfImage = "the class of an image",
                            *kValuesOfImage = "values of an image";
/// The purpose of the task, or head, of a configuration; "": it says none, or there is no such.
std::string_view target_of(const config::Node& task);

/// Throws: ConfigError for a network that gives no image of its input: one that reconstructs hidden
/// patches, finds objects or takes prompts.
void expect_image_model(const config::Node& model);

/// The network as the kind M of nn::Model that a task needs. Throws: ConfigError that says
/// `refusal` for another kind.
template <class M>
std::shared_ptr<M> make_model_of(const config::Node& model, const std::string& refusal) {
  if (auto network = std::dynamic_pointer_cast<M>(make<nn::Model>(model))) return network;
  throw ConfigError("task.model: " + refusal);
}

/// Throws: ConfigError for a loss, or one in it, that compares something else than what a task's
/// outputs are compared with. Those that do not say what they compare pass.
void expect_loss_of(const config::Node& loss, const nn::Compared& learned);

}  // namespace cytra::tasks
