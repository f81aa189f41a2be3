#pragma once
// The tools of `cytra mcp`: what they are called with, and the command lines that do their work.
#include <string>

#include <nlohmann/json.hpp>

#include "cli/mcp/borders.h"
#include "cli/mcp/job.h"

namespace cytra::cli::mcp {

using Json = nlohmann::ordered_json;

/// The list of tools, as tools/list answers it: name, description, inputSchema, ...
const Json& tools();
/// The tool of this name; null where there is none.
const Json* find_tool(const std::string& name);
/// Throws: ConfigError that names the argument, where `arguments` do not fit the tool's
/// inputSchema.
void expect_arguments(const Json& tool, const Json& arguments);
/// The program that does a tool's work. Throws: ConfigError for arguments that lead out of the
/// borders, and for overrides that are none.
JobCommand command_of(const std::string& tool, const Json& arguments, const Borders& borders);

}  // namespace cytra::cli::mcp
