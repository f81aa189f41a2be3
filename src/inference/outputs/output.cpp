#include "inference/outputs/output.h"

#include <map>

#include "base/error.h"
#include "base/strings.h"

namespace cytra::inference {
namespace {

struct KnownOutput {
  std::string group;
  MakeOutput make;
};

std::map<std::string, KnownOutput>& known_outputs() {
  static std::map<std::string, KnownOutput> outputs;
  return outputs;
}

}  // namespace

bool add_result_output(const char* group, const char* name, MakeOutput make) {
  return known_outputs().emplace(name, KnownOutput{group, make}).second;
}

std::vector<std::string> result_outputs(const std::string& group) {
  std::vector<std::string> names;
  for (const auto& [name, output] : known_outputs())
    if (output.group == group) names.push_back(name);
  return names;
}

std::unique_ptr<ResultOutput> make_result_output(const std::string& name,
                                                 const OutputPlace& place) {
  const auto found = known_outputs().find(name);
  if (found != known_outputs().end()) return found->second.make(place);
  const std::vector<std::string> names = keys_of(known_outputs());
  throw ConfigError("{}: not a kind of output, expected one of {}.{}",
                    name,
                    join(names, ", "),
                    suggestion(name, names));
}

}  // namespace cytra::inference
