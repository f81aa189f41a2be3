#include "config/registry.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"

namespace cytra {

std::string registered_name(const config::Node& node,
                            const std::vector<std::string>& names,
                            const char* what) {
  const config::Node* target = node.find_direct("_target_");
  if (target == nullptr) {
    throw ConfigError(node.where() + ": no '_target_', expected the name of a " + what +
                      ". Choices: " + join(names, ", ") + ".");
  }
  std::string name = target->as<std::string>();
  if (std::find(names.begin(), names.end(), name) != names.end()) return name;
  for (const char* module : {"torch.", "monai.", "cyto_dl.", "lightning.", "cytra."}) {
    if (starts_with(name, module)) name.erase(0, name.rfind('.') + 1);
  }
  if (std::find(names.begin(), names.end(), name) != names.end()) return name;
  throw ConfigError(target->where() + ": no " + what + " '" + name +
                    "', expected a registered one." + suggestion(name, names));
}

}  // namespace cytra
