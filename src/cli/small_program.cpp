// Part of cli/program.h: programs without a configuration.
#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "base/json_log.h"
#include "base/log.h"
#include "base/version.h"
#include "cli/program.h"

namespace cytra::cli {

int run_small(CLI::App& app, int argc, char** argv, const std::function<void(bool json)>& work) {
  bool json = false, quiet = false, verbose = false;
  app.set_version_flag("--version", fmt::format("{} {}", app.get_name(), version()));
  app.add_flag("-q,--quiet", quiet, "warnings and errors only");
  app.add_flag("-v,--verbose", verbose, "more messages");
  app.add_flag("--json", json, "the results as one JSON object");
  app.add_flag_callback(
         "--json-messages", log::set_json, "messages on stderr as JSON, an object a line")
      ->trigger_on_parse();  // for its mistakes, too
  try {
    app.parse(argc, argv);
    log::set_level(quiet ? log::Level::warn : verbose ? log::Level::debug : log::Level::info);
    work(json);
    return std::fflush(stdout) == 0 ? 0 : 4;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    log::write(log::Level::error, fmt::format("{} (see {} --help)", error.what(), app.get_name()));
    return 2;
  } catch (const std::exception& error) {
    log::write(log::Level::error, error.what());
    return exit_code(error);
  }
}

}  // namespace cytra::cli
