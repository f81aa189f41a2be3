#pragma once
// Makes a model of one head from one with several heads (MultiTask).
#include <string>
#include <vector>

#include "inference/models/trained_model.h"

namespace cytra::inference {

/// The heads of a task, in the order of the model's outputs; empty: it has a single output without
/// a name.
std::vector<std::string> heads_of(const config::Node& task);

/// The channels of a head of a model by its configuration; null where it does not give them.
config::Node head_channels(const config::Node& model, const std::string& head);

/// The model with this output only; its task has the head's keys. `head`: one of heads_of().
LoadedModel head_of(const LoadedModel& model, const std::string& head);

}  // namespace cytra::inference
