#pragma once
// Models of several heads, of a MultiTask, as models of one.
#include <string>
#include <vector>

#include "inference/trained_model.h"

namespace cytra::inference {

/// The heads of a task, in the order of the model's outputs; empty: it has one output without a
/// name.
std::vector<std::string> heads_of(const config::Node& task);

/// Channels of a head of a model, where its configuration says so; null: it doesn't.
config::Node head_channels(const config::Node& model, const std::string& head);

/// The model with that output alone; its task has the head's keys. `head`: one of heads_of().
LoadedModel head_of(const LoadedModel& model, const std::string& head);

}  // namespace cytra::inference
