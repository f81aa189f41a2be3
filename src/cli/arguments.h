#pragma once
// The command line: Hydra's flags, ours, and overrides.
#include <optional>
#include <string>
#include <vector>

#include "cli/program.h"

namespace cytra::cli {

struct Arguments {
  std::vector<std::string> overrides;
  std::string config_dir, config_path, config_name;
  std::string cfg, package, info;       // --cfg job, --package model, --info defaults
  std::string explain, diff, describe;  // a key, a file or folder, a component
  std::optional<std::string> schema;    // a group; "" for the primary config
  std::string completion;               // install=bash, uninstall=bash, query=bash
  std::string entry;                    // the entry of the program, or of the chosen mode
  bool help = false, version = false, quiet = false, json = false, resolve = false, check = false,
       multirun = false;
  int verbose = 0;
  std::string command_line;  // all of it, ready to paste
};

/// Turns words of a command line that are neither flags, nor values of flags, nor overrides into
/// keys: `program IN OUT` is `program video.input=IN video.output=OUT`. Words beyond the number of
/// `keys` are left.
class Words {
 public:
  Words(const Program& program, const std::vector<std::string>& keys, int argc, char** argv);
  int count() const { return static_cast<int>(words_.size()); }
  char** data() { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

/// Parses the command line. Throws: ConfigError for an unknown flag or a flag without its value.
Arguments parse_arguments(const Program& program, int argc, char** argv);
/// The flags with their help, a line each.
std::string flags_help(const Program& program);
/// Prints all groups and flags; the two most common command lines, for a program without arguments.
void print_help(const Program& program, const config::Composer& composer);
void print_short_help(const Program& program);
/// Every flag, for completion and messages: "--help", ...
std::vector<std::string> flag_names(const Program& program);

}  // namespace cytra::cli
