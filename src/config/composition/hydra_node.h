#pragma once
// The `hydra` node of a composed tree: Hydra calls it HydraConf.
#include <string>
#include <utility>
#include <vector>

#include "config/composition/defaults.h"
#include "config/node.h"

namespace cytra::config {

struct HydraFacts {
  std::string job_name, config_name;
  const std::vector<Override>& overrides;
  const std::vector<std::pair<std::string, std::string>>& choices;
  const std::vector<std::string>& folders;
};

/// Gives Hydra's settings the types they have there: job.num: '3' is 3, job.name: 3 is text.
/// Throws: ConfigError for a value that can't be one.
void set_hydra_types(Node& hydra);
/// Writes overrides, choices, working folder, version, sources and the job's name into root.hydra.
void fill_hydra(Node& root, const HydraFacts& facts);
/// Checks the keys of `hydra`. Throws: ConfigError for a key that Hydra does not have; launcher,
/// sweeper, callbacks and logging may have any.
void check_hydra_keys(const Node& hydra, const Node& known, const std::string& path = "hydra");
/// hydra.searchpath of the command line, or else of the primary config: more folders to search.
/// Throws: ConfigError unless a list of texts.
std::vector<std::string> searchpath_of(const Node& primary, const std::vector<Override>& overrides);

}  // namespace cytra::config
