#pragma once
// Answers questions about a configuration: the texts that --cfg, --info, --explain and --diff
// print.
#include <string>

#include "cli/arguments.h"
#include "config/composer.h"

namespace cytra::cli {

/// The text of --cfg job|hydra|all [--package KEY] [--resolve]: YAML that composes to the same
/// tree again.
/// Throws: ConfigError when there is no such part.
std::string composed_text(const config::Composition& composition, const Arguments& arguments);
/// The text of --info defaults|groups|config|searchpath|all. Throws: ConfigError for another word.
std::string info_text(const config::Composer& composer,
                      const config::Composition& composition,
                      const std::string& what);
/// The text of --explain KEY: a line for each file and override that set the key; the last one
/// won.
std::string explain_text(const config::Composer& composer,
                         const std::string& primary,
                         const std::vector<std::string>& overrides,
                         const std::string& key);
/// The text of --diff FILE [--resolve]: the differences from a YAML file or a run's folder.
std::string diff_text(const config::Composition& composition,
                      const std::string& other,
                      bool resolve);

}  // namespace cytra::cli
