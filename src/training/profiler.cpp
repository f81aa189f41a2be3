#include "training/profiler.h"

#include "config/registry.h"
#include "training/callback.h"

namespace cytra::training {

std::shared_ptr<Callback> make_profiler(const config::Node& given, const std::string& folder) {
  using config::Node;
  if (given.is_null()) return nullptr;
  Node node = given;
  if (given.kind == config::Kind::string) {
    const char* const type = given.string == "simple"     ? "SimpleProfiler"
                             : given.string == "advanced" ? "AdvancedProfiler"
                             : given.string == "pytorch"  ? "PyTorchProfiler"
                                                          : nullptr;
    node = Node::make_map();
    if (type != nullptr) node.set("_target_", Node::make_string(type));
  }
  if (!node.has("_target_"))
    config::throw_bad_value(given, "simple, advanced, pytorch, null or a component (_target_)");
  if (node.get<std::string>("dirpath", "").empty()) node.set("dirpath", Node::make_string(folder));
  std::shared_ptr<Callback> profiler = make<Callback>(node);
  profiler->name = kProfilerName;
  return profiler;
}

}  // namespace cytra::training
