#pragma once
// The configuration of one run, and the `.hydra` folder that keeps it.
#include <string>

#include "config/node.h"

namespace cytra::config {

/// The tree that the program gets from a composed one: every ${...} resolved, and without `hydra`.
Node job_config(Node root);
Node without_hydra(Node root);
/// A resolved configuration that others may read: values from the environment (${oc.env:NAME},
/// perhaps a password) are again written as in `composed`, from which it was made.
Node keep_environment(Node config, const Node& composed);
/// Undoes keep_environment(); a variable that is not set stays ${oc.env:NAME}.
void fill_in_environment(Node& config);
/// Sets ${hydra:runtime.output_dir} to the absolute form of hydra.run.dir, unless it is set.
void set_output_dir(Node& root);
/// The folder the run writes to: paths.output_dir where the tree has one, else
/// hydra.runtime.output_dir. It is absolute or relative as in the tree.
std::string output_dir(const Node& root);
/// Lets the run write to `folder` instead.
void move_output(Node& root, const std::string& folder);

/// Writes folder/.hydra/{config,hydra,overrides}.yaml (${...} as written, as Hydra does) and
/// command.sh, the line that starts the run again. hydra.output_subdir names the folder; with null
/// nothing is written.
void save_run_config(const std::string& folder, const Node& root, const std::string& command);
/// Loads a configuration from a YAML file, or from a run's folder (.hydra/config.yaml).
/// `resolved`: every ${...} is resolved, references into `hydra` by the hydra.yaml beside it.
/// Throws: ConfigError.
Node load_run_config(const std::string& path, bool resolved);

}  // namespace cytra::config
