#include "training/profiler.h"

#include <set>

#include "base/log.h"
#include "config/registry.h"
#include "training/callback.h"

namespace cytra::training {
namespace {
using config::Node;

Node component_of(const Node& given, const std::string& folder) {
  Node node = given;
  if (given.kind == config::Kind::string) {
    const char* const type = given.string == "simple"      ? "SimpleProfiler"
                             : given.string == "advanced"  ? "AdvancedProfiler"
                             : given.string == "pytorch"   ? "PyTorchProfiler"
                             : given.string == "transfers" ? "TransferProfiler"
                                                           : nullptr;
    node = Node::make_map();
    if (type != nullptr) node.set("_target_", Node::make_string(type));
  }
  if (!node.has("_target_"))
    config::throw_bad_value(given,
                            "simple, advanced, pytorch, transfers, null or a component (_target_)");
  if (node.get<std::string>("dirpath", "").empty()) node.set("dirpath", Node::make_string(folder));
  return node;
}

/// Warns of options of the profiler that have no effect, once: its configuration is read several
/// times.
void tell_unused(const Node& profiler) {
  static std::set<std::string> told;
  config::Problems problems;
  const config::Components& known = Registry<Callback>::instance().components();
  known.types.at(known.name_of(profiler)).check(profiler, problems);
  for (const std::string& note : problems.notes()) {
    if (told.insert(note).second) log::warn("{}", note);
  }
}

}  // namespace

std::vector<std::shared_ptr<Callback>> make_profilers(const Node& given,
                                                      const std::string& folder,
                                                      const std::string& forbid_transfers) {
  Node profiler = given, guard;
  if (!given.is_null()) profiler = component_of(given, folder);
  if (!forbid_transfers.empty()) {
    // Only one component watches transfers: that of trainer.profiler, where it is one.
    const bool is_watched =
        !profiler.is_null() &&
        config::own_name(profiler.get<std::string>("_target_")) == "TransferProfiler";
    if (!is_watched) {
      guard = Node::make_map();
      guard.set("_target_", Node::make_string("TransferProfiler"));
    }
    (is_watched ? profiler : guard).set("forbid", Node::make_string(forbid_transfers));
  }
  std::vector<std::shared_ptr<Callback>> callbacks;
  const auto add = [&](const Node& node, const char* name) {
    if (node.is_null()) return;
    callbacks.push_back(make<Callback>(node));
    callbacks.back()->name = name;
  };
  add(guard, "performance.forbid_transfers");
  add(profiler, kProfilerName);
  if (!profiler.is_null()) tell_unused(profiler);
  return callbacks;
}

}  // namespace cytra::training
