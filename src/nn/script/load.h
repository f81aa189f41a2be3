#pragma once
// Loads files of TorchScript. Include only from .cpp files.
#include <string>
#include <unordered_map>
#include <vector>

#include <c10/util/Exception.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include "base/foreign_call.h"

namespace cytra::nn {

using ExtraFiles = std::unordered_map<std::string, std::string>;

/// Loads a module in evaluation mode on `device`. It must be loaded there, as a frozen module's
/// weights are constants of its code, which Module::to() does not move. `files`: wanted files
/// beside the code, by name. Nothing of it runs before all of its code was checked. Its methods
/// must be called within a ScriptCall. Throws: DataError unless it can be loaded, and calls only
/// what a model needs: no files, no other processes.
torch::jit::Module load_any_torchscript(const std::string& path,
                                        ExtraFiles& files,
                                        c10::Device device = c10::kCPU);

/// Loads a model's module, as load_any_torchscript(). Throws: DataError also unless its forward()
/// takes one input, and optional ones.
torch::jit::Module load_torchscript(const std::string& path,
                                    ExtraFiles& files,
                                    c10::Device device = c10::kCPU);

/// Sends what a script prints, its warnings and PyTorch's to the log while it lives, without
/// control characters, and marks a call of foreign code.
class ScriptCall {
 public:
  ScriptCall();

 private:
  struct Logged final : c10::WarningHandler {
    void process(const c10::Warning& warning) override;
  };
  ForeignCall call_;
  Logged logged_;
  c10::WarningUtils::WarningHandlerGuard guard_;
};

/// A tensor that forward() returns, with its key in a dict, else its place: "1".
struct ScriptResult {
  std::string name;
  at::Tensor tensor;
};
/// The tensors of a result, also of tuples, lists and dicts, without None. Throws: DataError for
/// other results.
std::vector<ScriptResult> script_results(const std::string& path, const c10::IValue& value);

/// Calls `action` with every node of a block and the blocks in it.
void for_each_node(torch::jit::Block* block, const auto& action) {
  for (torch::jit::Node* node : block->nodes()) {
    action(*node);
    for (torch::jit::Block* inner : node->blocks()) for_each_node(inner, action);
  }
}

/// The weight of the first convolution, of a module or of a frozen one, whose weights are
/// constants; undefined: it has none.
at::Tensor first_kernel(const torch::jit::Module& module);

}  // namespace cytra::nn
