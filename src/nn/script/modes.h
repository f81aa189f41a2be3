#pragma once
// The modes of traced modules. Include only from .cpp files of nn.
#include <string>
#include <vector>

#include <torch/csrc/jit/api/module.h>

namespace cytra::nn {

/// Makes the calls whose mode is a constant of the code, as tracing writes them, follow train() and
/// eval(): dropouts, batch norms, the dropouts of attention and of recurrent layers. What is in
/// evaluation mode in a module that was traced in training mode is frozen, and stays so. Returns
/// what there is to say, a line each. It must come before the module runs, and once: code that is
/// turned names no mode.
std::vector<std::string> turn_modes(const torch::jit::Module& module);

/// Puts the calls of a module that was traced or written in training mode into evaluation mode, for
/// a prediction. Returns what there is to say of these, and of other random numbers.
std::vector<std::string> end_training_modes(const torch::jit::Module& module);

}  // namespace cytra::nn
