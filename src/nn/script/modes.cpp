#include "nn/script/modes.h"

#include <map>
#include <set>

#include <fmt/format.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include "base/strings.h"
#include "nn/exported/modes.h"
#include "nn/script/load.h"

namespace cytra::nn {
namespace {

namespace jit = torch::jit;

/// The name of the argument that says whether the call trains; "": it has none.
std::string mode_of(const jit::Node& node, const std::string& name) {
  if (name == "scaled_dot_product_attention") return "dropout_p";
  if (name == "lstm" || name == "gru" || name == "rnn_tanh" || name == "rnn_relu") return "train";
  const std::string argument = training_argument(name);
  if (argument.empty()) return "";
  const auto statistics = node.schema().argumentIndexWithName("running_mean");
  const bool has_none =
      statistics && node.input(static_cast<std::size_t>(*statistics))->mustBeNone();
  return has_none ? "" : argument;
}

/// Puts a call into evaluation mode where its mode is a constant of training. Returns whether it
/// was.
bool end_training(jit::Node& node, const std::string& argument) {
  const auto at = static_cast<std::size_t>(node.schema().argumentIndexWithName(argument).value());
  const auto constant = jit::toIValue(node.input(at));
  if (!constant || (constant->isBool() ? !constant->toBool() : constant->toDouble() == 0))
    return false;
  const jit::WithInsertPoint before(&node);
  jit::Graph& graph = *node.owningGraph();
  node.replaceInput(at,
                    constant->isBool() ? graph.insertConstant(false) : graph.insertConstant(0.0));
  return true;
}

}  // namespace

std::vector<std::string> end_training_modes(const jit::Module& module) {
  std::map<std::string, int> trained;  // calls by their names
  std::vector<std::string> random, remarks;
  std::set<c10::ClassTypePtr> seen;
  for (const auto& item : module.named_modules()) {
    if (!seen.insert(item.value.type()).second) continue;
    for (jit::Function* method : item.value.type()->methods()) {
      jit::GraphFunction* code = jit::tryToGraphFunction(*method);
      if (code == nullptr) continue;
      jit::Block* block = code->graph()->block();
      for_each_node(block, [&](jit::Node& node) {
        if (!std::string_view(node.kind().toQualString()).starts_with("aten::")) return;
        const std::string name = node.kind().toUnqualString();
        if (is_random(name) && node.owningBlock() == block)  // not in training alone
          random.push_back(fmt::format("{}: {}", item.name.empty() ? "forward" : item.name, name));
        const std::string argument = mode_of(node, name);
        if (!argument.empty() && end_training(node, argument)) ++trained[name];
      });
    }
  }
  std::vector<std::string> calls;
  for (const auto& [name, count] : trained) calls.push_back(fmt::format("{} {}", count, name));
  if (!calls.empty())
    remarks.push_back(
        fmt::format("its code has calls in training mode ({}), which are in evaluation mode here",
                    join(calls, ", ")));
  if (!random.empty())
    remarks.push_back("it draws random numbers in evaluation, too: " + join(random, ", "));
  return remarks;
}

}  // namespace cytra::nn
