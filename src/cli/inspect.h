#pragma once
// Answers about a configuration: what --cfg, --info, --explain and --diff print.
#include <string>

#include "cli/arguments.h"
#include "config/composer.h"

namespace cytra::cli {

/// --cfg job|hydra|all [--package KEY] [--resolve]: YAML that composes to the same tree again.
/// Throws: ConfigError when there is no such part.
std::string composed_text(const config::Composition& composition, const Arguments& arguments);
/// --info defaults|groups|config|searchpath|all. Throws: ConfigError for another word.
std::string info_text(const config::Composer& composer,
                      const config::Composition& composition,
                      const std::string& what);
/// --explain KEY: a line for each file and override that set it; the last one won.
std::string explain_text(const config::Composer& composer,
                         const std::string& primary,
                         const std::vector<std::string>& overrides,
                         const std::string& key);
/// --diff FILE [--resolve]: what differs from a YAML file or a run's folder.
std::string diff_text(const config::Composition& composition,
                      const std::string& other,
                      bool resolve);

}  // namespace cytra::cli
