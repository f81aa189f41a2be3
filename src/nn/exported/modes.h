#pragma once
// What an operator's call does beside its arithmetic. Include only from .cpp files of nn.
#include <functional>
#include <optional>

#include "nn/exported/operator_call.h"
#include "ops/norm/norm.h"

namespace cytra::nn {

/// The argument that tells an operator whether it trains; empty: it has none.
const char* training_argument(const std::string& short_name);
/// Whether a call has a mode. A norm without running statistics has none.
bool has_mode(const OperatorCall& op);
/// Whether a call is in training mode in the file.
bool trains(const OperatorCall& op);
/// Whether an operator draws random numbers in evaluation, too.
bool is_random(const std::string& short_name);
/// The activation that a call computes, where one of Cytra's norms can compute it.
std::optional<ops::Activation> activation_of(const OperatorCall& op);

using ExportedRun = std::function<void(Values& values, c10::Device device)>;
/// Turns autocast off while it runs, as `with torch.autocast(..., enabled=False)`.
ExportedRun outside_autocast(ExportedRun run);

}  // namespace cytra::nn
