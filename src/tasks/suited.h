#pragma once
// Which models and losses suit a task, by name: with others a training would not learn it.
#include "config/node.h"

namespace cytra::tasks {

/// What a task's outputs are compared with.
enum class Learned { masks, values, flows, stars };

/// Throws: ConfigError for a network that gives no image of its input: one that reconstructs hidden
/// patches, finds objects or takes prompts.
void expect_image_model(const config::Node& model);

/// Throws: ConfigError for a loss, or one in it, that compares something else. The user's own
/// losses are accepted.
void expect_loss_of(const config::Node& loss, Learned learned);

}  // namespace cytra::tasks
