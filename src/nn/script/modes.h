#pragma once
// The modes of traced modules. Include only from .cpp files.
#include <string>
#include <vector>

#include <torch/csrc/jit/api/module.h>

namespace cytra::nn {

/// Puts the calls of a module that was traced or written in training mode into evaluation mode, for
/// a prediction. Returns what there is to say of these, and of other random numbers.
std::vector<std::string> end_training_modes(const torch::jit::Module& module);

}  // namespace cytra::nn
