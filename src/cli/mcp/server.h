#pragma once
#include <string>
#include <vector>

namespace cytra::cli::mcp {

/// Answers an agent's requests on stdin by lines on stdout, until stdin ends or a signal comes;
/// programs that then still work are ended. The working folder becomes `folder`, where all is
/// written; `readable`: further folders that may be read. Returns the exit code. Throws:
/// ConfigError for what is no folder.
/// Source: Model Context Protocol, https://modelcontextprotocol.io/specification, the revisions of
/// 2026-07-28 (every request names its revision) and of 2025-11-25 and earlier (`initialize`).
int serve(const std::string& folder, const std::vector<std::string>& readable);

}  // namespace cytra::cli::mcp
