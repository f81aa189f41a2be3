// cytra: starts each of the other programs, so that one name on PATH is enough. See `cytra --help`.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/version.h"
#include "cli/mcp/server.h"
#include "cli/models_at_hand.h"

namespace {

struct Line {
  const char *name, *summary;
};
constexpr Line kPrograms[] = {
#include "cytra_programs.inc"  // CMake writes it, from the first lines of tools/*.cpp
    {"models", "lists trained models that checkpoint.ckpt_path takes by name"},
    {"mcp", "lets an agent use Cytra in one folder: a server of the Model Context Protocol"},
};

std::string path_of(const std::string& program) {
  return cytra::program_folder() + "/" + program;
}

/// An installation may hold some of the programs only.
bool is_here(const std::string& program) {
  return program == "mcp" || program == "models" || ::access(path_of(program).c_str(), X_OK) == 0;
}

std::string help() {
  std::string text =
      "cytra - train and run deep-learning models on microscopy and medical images\n\n"
      "Usage: cytra PROGRAM [arguments of the program]\n\nPrograms:\n";
  for (const Line& line : kPrograms)
    if (is_here(line.name)) text += fmt::format("  {:<22} {}\n", line.name, line.summary);
  return text +
         "\ncytra PROGRAM --help shows what a program takes, cytra --version the version,\n"
         "cytra --licenses those of the libraries that came with it.\n";
}

/// A package lists the libraries it carries; a build from source uses those of the system.
std::string licenses() {
  const std::string list = cytra::program_folder() + "/../share/cytra/licenses.txt";
  return "Cytra is under the Apache License 2.0.\n" +
         (::access(list.c_str(), R_OK) == 0
              ? "These libraries came with it:\n\n" + cytra::read_file(list)
              : "It uses libraries of this system, whose packages tell their licences.\n");
}

int serve_agent(int argc, char** argv) {
  CLI::App app(
      "A server of the Model Context Protocol on stdin and stdout: an agent describes data, trains "
      "and predicts in one folder. Nothing outside of it is written, and nothing is read but what "
      "--read names.",
      "cytra mcp");
  std::string folder = ".";
  std::vector<std::string> readable;
  app.add_option("FOLDER", folder, "where all is read and written (default: the working folder)");
  app.add_option("--read", readable, "a further folder to read; may be given again")
      ->type_size(1)
      ->allow_extra_args(false);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return cytra::cli::mcp::serve(folder, readable);
}

int start(int argc, char** argv) {
  const std::string word = argc < 2 ? "" : argv[1];
  if (word == "--version") {
    std::printf("cytra %s\n", cytra::version());
    return 0;
  }
  if (word == "--licenses") {
    std::fputs(licenses().c_str(), stdout);
    return 0;
  }
  if (word.empty() || word == "--help" || word == "-h") {
    std::fputs(help().c_str(), word.empty() ? stderr : stdout);
    return word.empty() ? 2 : 0;
  }
  if (word == "mcp") return serve_agent(argc - 1, argv + 1);
  if (word == "models") {
    const bool json = argc > 2 && std::string(argv[2]) == "--json";
    if (argc > (json ? 3 : 2))
      throw cytra::ConfigError("cytra models: {}: expected --json or nothing", argv[argc - 1]);
    std::fputs(cytra::cli::list_of_models(json).c_str(), stdout);
    return 0;
  }
  std::vector<std::string> names;
  for (const Line& line : kPrograms)
    if (is_here(line.name)) names.emplace_back(line.name);
  if (std::ranges::find(names, word) == names.end())
    throw cytra::ConfigError("no program {}.{}", word, cytra::suggestion(word, names));
  std::string path = path_of(word);
  ::setenv(cytra::kLauncherVariable, argv[0], 1);  // for command lines that the program prints
  argv[1] = path.data();
  ::execv(path.c_str(), argv + 1);
  cytra::throw_errno("can't be started", path, errno);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return start(argc, argv);
  } catch (const std::exception& error) {
    cytra::log::write(cytra::log::Level::error, error.what());
    return cytra::exit_code(error);
  }
}
