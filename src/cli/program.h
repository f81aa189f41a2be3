#pragma once
// The parts that all programs share: flags, --help, --cfg, exit codes. Torch-free: the engine
// (libcytra.so) is loaded by name once a configuration has been composed and there is work to do.
#include <functional>
#include <string>
#include <vector>

#include "config/composer.h"
#include "config/node.h"

namespace CLI {
class App;
}

namespace cytra::cli {

/// A flag that stands for an override: `--ckpt x` is `checkpoint.ckpt_path=x`.
struct Flag {
  enum class Takes { nothing, one, many };
  const char* name;  // "--ckpt"
  const char* key;   // "checkpoint.ckpt_path"
  Takes takes;
  const char* help;
};

/// A flag that starts another function of the engine with the same configuration.
struct Mode {
  const char* flag;   // "--check-data"
  const char* entry;  // like Program's
  const char* help;
};

struct Program {
  const char* name;
  const char* summary;
  const char* examples;  // a line each, the commonest first
  const char* primary;   // the primary config: "train" is configs/train.yaml
  const char* entry;  // the function in libcytra.so: extern "C" int entry(const cytra::cli::Run&)
  std::vector<Flag> flags;
  std::vector<Mode> modes = {};
  const char* rest =
      nullptr;  // key of a list that gets the overrides of keys that the program does not have
  bool takes_newest = false;  // without an experiment and data it works on the newest training
  bool needs_words = true;    // without any it shows what it is for
};

/// The engine's input: a composed configuration and how the program was called.
struct Run {
  config::Node config;    // composed, resolved, complete
  config::Node composed;  // as it was written, with `hydra`; saved with the run
  std::vector<std::string> overrides;
  std::vector<std::string> config_folders;
  std::string program;
  std::string command_line;  // ready to paste
  bool json = false;         // results on stdout as one JSON object
  bool check = false;        // check everything, load and create nothing
  // The user's own keys that are no mistake: names that some ${...} refers to, or that the primary
  // config has. Below a section they have dots: "paths.images".
  std::vector<std::string> variables;
  std::vector<config::IncludedFile> files;  // of the composition
};

/// The argument of the engine's `extern "C" int cytra_describe(cytra::cli::DescribeRequest&)`,
/// which fills in `text`. Throws: ConfigError with the nearest name; what reading a file throws.
struct DescribeRequest {
  std::string program;  // "train"
  std::string what;     // a place, component or kind, or a file; with `schema`, a group; "": the
                        // whole program
  bool schema = false;  // JSON schema for editors, else a table
  bool json = false;    // of a file: an object
  std::string text;     // the answer
};

/// Parses the command line, composes the configuration, and prints or runs. Returns the exit code
/// (4 when not all could be written to stdout); never throws.
int run(const Program& program, int argc, char** argv);
/// Runs a program without a configuration: `work`, once the flags of `app` and those that every
/// program has are read. Returns the exit code; never throws.
int run_small(CLI::App& app, int argc, char** argv, const std::function<void(bool json)>& work);

/// Writes results to stdout: `key: value` lines, or one JSON object with --json, in the shape of
/// docs/schema.json. Control characters are escaped.
class Results {
 public:
  explicit Results(bool json) : json_(json) {}
  void add(const std::string& key, config::Node value);
  void add(const std::string& key, const std::string& value) {
    add(key, config::Node::make_string(value));
  }
  /// Adds a number with all its digits.
  void add(const std::string& key, double value);
  /// Adds one of any number of values: a line each, with --json a list, also of one.
  void add_item(const std::string& key, const std::string& value);
  std::string text() const;
  void print() const;

 private:
  bool json_;
  std::vector<std::pair<std::string, config::Node>> entries_;
};

}  // namespace cytra::cli
