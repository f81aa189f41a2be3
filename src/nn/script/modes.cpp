#include "nn/script/modes.h"

#include <algorithm>
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

/// A call with a constant mode, in a method of a module.
struct ModeCall {
  jit::Node* node;
  std::size_t argument;
  bool trains;
  bool is_rate;  // a dropout's, which is 0 in evaluation
};

const std::string kDrawsRandom = "it draws random numbers in evaluation, too: ";

class ModeFinder {
 public:
  /// `needs_mode`: of modules that know whether they train.
  explicit ModeFinder(const jit::Module& module, bool needs_mode) {
    std::set<c10::ClassTypePtr> seen;
    for (const auto& item : module.named_modules()) {
      if (!seen.insert(item.value.type()).second) continue;
      if (needs_mode && !item.value.hasattr("training")) continue;
      for (jit::Function* method : item.value.type()->methods()) {
        if (jit::GraphFunction* code = jit::tryToGraphFunction(*method))
          find(item.name, code->graph()->block());
      }
    }
  }
  std::vector<ModeCall> calls;
  std::vector<std::string> random;

 private:
  void find(const std::string& module, jit::Block* block) {
    for_each_node(block, [&](jit::Node& node) {
      if (!starts_with(node.kind().toQualString(), "aten::")) return;
      const std::string name = node.kind().toUnqualString();
      if (is_random(name) && node.owningBlock() == block)  // not in training alone
        random.push_back(fmt::format("{}: {}", module.empty() ? "forward" : module, name));
      const bool is_attention = name == "scaled_dot_product_attention";
      const bool is_recurrent =
          name == "lstm" || name == "gru" || name == "rnn_tanh" || name == "rnn_relu";
      const std::string argument = is_attention   ? "dropout_p"
                                   : is_recurrent ? "train"
                                                  : training_argument(name);
      if (argument.empty()) return;
      const c10::FunctionSchema& schema = node.schema();
      const auto statistics = schema.argumentIndexWithName("running_mean");
      if (statistics && node.input(static_cast<std::size_t>(*statistics))->mustBeNone()) return;
      const auto at = static_cast<std::size_t>(schema.argumentIndexWithName(argument).value());
      const auto constant = jit::toIValue(node.input(at));
      if (!constant || (is_attention && constant->toDouble() == 0)) return;
      calls.push_back({&node, at, is_attention || constant->toBool(), is_attention});
    });
  }
};

void follow_training(const ModeCall& call) {
  jit::Graph& graph = *call.node->owningGraph();
  const jit::WithInsertPoint before(call.node);
  jit::Value* mode = graph.insertGetAttr(graph.inputs()[0], "training");
  if (call.is_rate) {
    mode = graph.insert(c10::aten::mul,
                        {call.node->input(call.argument), graph.insert(c10::aten::Int, {mode})});
  }
  call.node->replaceInput(call.argument, mode);
}

/// Makes a batch norm count the batches of training, and no others.
void count_in_training(const ModeCall& call) {
  jit::Graph& graph = *call.node->owningGraph();
  jit::Value* self = graph.inputs()[0];
  const char* const counter = "num_batches_tracked";
  const auto type = self->type()->expect<c10::ClassType>();
  if (call.node->kind() != c10::aten::batch_norm || !type->hasAttribute(counter) ||
      type->getAttribute(counter)->kind() != c10::TypeKind::TensorType)
    return;
  jit::Node* counting = nullptr;
  for (jit::Node* node : graph.nodes()) {
    if (node->kind() == c10::aten::add_ && !node->hasUses() && node->isBefore(call.node) &&
        node->input(0)->node()->kind() == c10::prim::GetAttr &&
        node->input(0)->node()->s(c10::attr::name) == counter)
      counting = node;
  }
  jit::Node* in_training = graph.create(c10::prim::If, {call.node->input(call.argument)}, 0);
  in_training->insertBefore(call.node);
  jit::Block* block = in_training->addBlock();
  in_training->addBlock();
  if (counting != nullptr) return counting->moveBefore(block->return_node());
  const jit::WithInsertPoint inside(block);
  graph.insert(c10::aten::add_, {graph.insertGetAttr(self, counter), 1});
}

/// "2 batch_norm, 1 dropout"
std::string counted(const std::vector<ModeCall>& calls, bool trains) {
  std::map<std::string, int> counts;
  for (const ModeCall& call : calls)
    if (call.trains == trains) ++counts[call.node->kind().toUnqualString()];
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) parts.push_back(fmt::format("{} {}", count, name));
  return join(parts, ", ");
}

}  // namespace

std::vector<std::string> turn_modes(const jit::Module& module) {
  const ModeFinder found(module, true);
  std::vector<std::string> remarks;
  const bool is_of_training = std::any_of(
      found.calls.begin(), found.calls.end(), [](const ModeCall& call) { return call.trains; });
  for (const ModeCall& call : found.calls) {
    if (call.trains != is_of_training) continue;
    follow_training(call);
    count_in_training(call);
  }
  if (is_of_training) {
    const std::string frozen = counted(found.calls, false);
    remarks.push_back(
        fmt::format("traced in training mode; its calls ({}) follow train() and eval() here{}",
                    counted(found.calls, true),
                    frozen.empty() ? "" : "; frozen in evaluation mode: " + frozen));
  } else if (!found.calls.empty()) {
    remarks.push_back(fmt::format(
        "traced in evaluation mode; its calls ({}) follow train() and eval() here; what forward() "
        "does in training alone is not in the file: torch.jit.script, or a trace after train(), "
        "has it",
        counted(found.calls, false)));
  }
  if (!found.random.empty()) remarks.push_back(kDrawsRandom + join(found.random, ", "));
  return remarks;
}

std::vector<std::string> end_training_modes(const jit::Module& module) {
  const ModeFinder found(module, false);
  std::vector<std::string> remarks;
  for (const ModeCall& call : found.calls) {
    if (!call.trains) continue;
    jit::Graph& graph = *call.node->owningGraph();
    const jit::WithInsertPoint before(call.node);
    call.node->replaceInput(call.argument,
                            call.is_rate ? graph.insertConstant(0.0) : graph.insertConstant(false));
  }
  if (const std::string calls = counted(found.calls, true); !calls.empty())
    remarks.push_back(fmt::format(
        "its code has calls in training mode ({}), which are in evaluation mode here", calls));
  if (!found.random.empty()) remarks.push_back(kDrawsRandom + join(found.random, ", "));
  return remarks;
}

}  // namespace cytra::nn
