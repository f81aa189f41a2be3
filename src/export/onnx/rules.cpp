#include "export/onnx/rules.h"

#include <set>

namespace cytra::exporting::onnx {

std::string own_name_of(const Node& node) {
  std::string name = node.kind().toUnqualString();
  if (name.size() > 1 && name.back() == '_') name.pop_back();  // in place
  return name;
}

bool translate(Graph& graph, const Node& node) {
  const c10::Symbol kind = node.kind();
  if (kind == c10::prim::Constant || kind == c10::prim::ListConstruct ||
      kind == c10::prim::TupleConstruct || kind == c10::prim::DictConstruct)
    return true;  // converted where they are used
  const std::string name = own_name_of(node);
  for (const Rules* rules : {&layer_rules(), &value_rules()}) {
    const auto rule = rules->find(name);
    if (rule == rules->end()) continue;
    graph.set(node.output(), rule->second(graph, node));
    static const std::set<std::string> moving{"cat",
                                              "linear",
                                              "matmul",
                                              "bmm",
                                              "reshape",
                                              "view",
                                              "flatten",
                                              "permute",
                                              "unsqueeze",
                                              "squeeze",
                                              "slice",
                                              "select",
                                              "size",
                                              "mean"};
    if (graph.channels(node.output()) == 0 && moving.count(name) == 0)
      graph.set_channels(node.output(), graph.channels(node.input(0)));
    if (std::string(kind.toUnqualString()).back() == '_')
      graph.set(node.input(0), graph.name(node.output()));  // later readers get the result
    return true;
  }
  return false;
}

}  // namespace cytra::exporting::onnx
