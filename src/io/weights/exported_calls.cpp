// Part of io/weights/exported_json.h: the calls of a graph, with those of the graphs that it calls.
#include <algorithm>
#include <set>

#include "io/weights/exported_json.h"

namespace cytra::io {
namespace {

using Json = nlohmann::json;
using Argument = ExportedArgument;

constexpr std::size_t kMostCalls = 200'000;
constexpr int kMostGraphDepth = 32;

/// The calls of a graph and, in their places, those of the graphs that higher-order operators call
/// (torch/_higher_order_ops/wrap.py, torch/_export/passes): what they do is the same without them,
/// but for autocast that is off, which the calls note, and derivatives that are, which end at a
/// detach().
class InlinedCalls {
 public:
  using Names = std::map<std::string, std::string>;
  InlinedCalls(const std::vector<ExportedInput>& inputs, std::vector<ExportedCall>& calls)
      : calls_(calls) {
    for (const ExportedInput& input : inputs)
      if (input.kind == ExportedInput::Kind::buffer) buffers_.insert(input.value);
  }
  /// `names`: what values are called outside; gets the names of what is inlined.
  void add(const Json& nodes, Names& names) { add(nodes, names, {}); }

 private:
  struct Region {
    std::string prefix;  // of the names that are made in it; empty: the whole graph
    bool has_no_derivatives = false, is_outside_autocast = false;
  };

  void add(const Json& nodes, Names& names, const Region& region) {
    for (const Json& node : nodes) {
      if (calls_.size() >= kMostCalls) throw DataError("more than {} calls", kMostCalls);
      ExportedCall call = exported_call_of(node);
      call.is_outside_autocast = region.is_outside_autocast;
      if (is_inlined(call.target)) {
        inline_graph(node, call, names, region);
        continue;
      }
      if (region.has_no_derivatives) expect_own_change(call, names);
      for (Argument& argument : call.inputs) rename(argument, names, region);
      for (Argument& argument : call.outputs) rename(argument, names, region);
      calls_.push_back(std::move(call));
    }
  }

  static bool is_inlined(const std::string& target) {
    for (const char* name : {"wrap_with_autocast",
                             "wrap_with_set_grad_enabled",
                             "wrap_activation_checkpoint",
                             "tag_activation_checkpoint"})
      if (target == std::string("torch.ops.higher_order.") + name) return true;
    return false;
  }

  void inline_graph(const Json& node,
                    const ExportedCall& call,
                    Names& outside,
                    const Region& around) {
    if (++depth_ > kMostGraphDepth) throw DataError("graphs within graphs");
    Region region = around;
    region.prefix = fmt::format("{}region{}.", around.prefix, regions_++);
    const auto is_graph = [](const Json& input) { return input.at("arg").contains("as_graph"); };
    const Json& inputs = node.at("inputs");
    const auto at =
        static_cast<std::size_t>(std::ranges::find_if(inputs, is_graph) - inputs.begin());
    if (at == inputs.size()) refuse(call, "it has no graph");
    if (call.target.ends_with("set_grad_enabled")) {
      const bool is_on = flag_at(call, 0);
      if (is_on && around.has_no_derivatives)
        refuse(call, "derivatives that are on within a part where they are off");
      region.has_no_derivatives = !is_on;
    }
    if (call.target.ends_with("autocast")) {
      if (flag_at(call, 2))
        refuse(
            call,
            "autocast that is on, expected it outside of the network: trainer.precision says it");
      region.is_outside_autocast = true;
    }
    const Json& graph = inputs[at].at("arg").at("as_graph").at("graph");
    Names names;
    std::size_t given = at;
    for (const Json& parameter : graph.at("inputs")) {
      ++given;
      if (given >= call.inputs.size() || call.inputs[given].kind != Argument::Kind::value)
        refuse(call, "an argument of its graph that is no tensor");
      names[exported_argument_of(parameter).text] =
          renamed(call.inputs[given].text, outside, around);
    }
    add(graph.at("nodes"), names, region);
    std::vector<Argument> results;
    for (const Argument& output : call.outputs) {
      if (output.kind == Argument::Kind::list)
        results.insert(results.end(), output.items.begin(), output.items.end());
      else
        results.push_back(output);
    }
    if (results.size() != graph.at("outputs").size())
      refuse(call, "its graph gives another number of results");
    for (std::size_t i = 0; i < results.size(); ++i) {
      Argument made = exported_argument_of(graph.at("outputs")[i]);
      if (made.kind == Argument::Kind::none || results[i].kind == Argument::Kind::none) continue;
      if (made.kind != Argument::Kind::value || results[i].kind != Argument::Kind::value)
        refuse(call, "a result of its graph that is no tensor");
      rename(made, names, region);
      if (region.has_no_derivatives && !around.has_no_derivatives) made = detached(made, region, i);
      outside[results[i].text] = made.text;
    }
    --depth_;
  }

  Argument detached(Argument value, const Region& region, std::size_t number) {
    value.parameter = "self";
    Argument result;
    result.kind = Argument::Kind::value;
    result.text = fmt::format("{}detached{}", region.prefix, number);
    calls_.push_back({"torch.ops.aten.detach.default", "", {value}, {result}});
    return result;
  }

  /// Without derivatives a change in place of a value that has some would need more than inlining.
  void expect_own_change(const ExportedCall& call, const Names& names) const {
    const std::string name = call.target.substr(0, call.target.rfind('.'));
    if (!name.ends_with("_") || call.inputs.empty()) return;
    const auto outer = names.find(call.inputs[0].text);
    if (outer != names.end() && buffers_.count(outer->second) == 0)
      refuse(call, "a change in place of a tensor from outside of torch.no_grad()");
  }

  bool flag_at(const ExportedCall& call, std::size_t place) const {
    if (place >= call.inputs.size() || call.inputs[place].kind != Argument::Kind::boolean)
      refuse(call, "other arguments than those of PyTorch 2.7 to 2.15");
    return call.inputs[place].integer != 0;
  }
  [[noreturn]] static void refuse(const ExportedCall& call, const std::string& what) {
    throw DataError("{}{}: {}", call.target, call.place.empty() ? "" : " in " + call.place, what);
  }

  static std::string renamed(const std::string& name, const Names& names, const Region& region) {
    const auto found = names.find(name);
    return found == names.end() ? region.prefix + name : found->second;
  }
  static void rename(Argument& argument, const Names& names, const Region& region) {
    if (argument.kind == Argument::Kind::value)
      argument.text = renamed(argument.text, names, region);
    for (Argument& item : argument.items) rename(item, names, region);
  }

  std::vector<ExportedCall>& calls_;
  std::set<std::string> buffers_;
  int regions_ = 0, depth_ = 0;
};

}  // namespace

std::map<std::string, std::string> add_exported_calls(const nlohmann::json& nodes,
                                                      ExportedGraph& to) {
  InlinedCalls::Names names;
  InlinedCalls(to.inputs, to.calls).add(nodes, names);
  return names;
}

}  // namespace cytra::io
