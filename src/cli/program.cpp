#include "cli/program.h"

#include <cstdio>
#include <filesystem>
#include <iterator>

#include <CLI/CLI.hpp>
#include <dlfcn.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/version.h"
#include "config/composer.h"

namespace cytra::cli {
namespace {

struct Arguments {
  std::vector<std::string> overrides;
  std::string print;  // "job" with --cfg
  std::string config_folder, config_path, config_name;
  bool help = false, version = false, quiet = false, json = false;
  int verbose = 0;
};

/// The value of a flag as an override; CLI11 lets a flag that takes many eat overrides too, so
/// those are told apart.
void add_flag_override(const Flag& flag,
                       const std::vector<std::string>& words,
                       std::vector<std::string>& overrides) {
  std::vector<std::string> values;
  for (const std::string& word : words) {
    (word.find('=') == std::string::npos ? values : overrides).push_back(word);
  }
  if (flag.takes == Flag::Takes::nothing) {
    overrides.push_back(fmt::format("{}=true", flag.key));
  } else if (flag.takes == Flag::Takes::one) {
    overrides.push_back(fmt::format("{}={}", flag.key, words.back()));
  } else {
    overrides.push_back(fmt::format("{}=[{}]", flag.key, join(values, ",")));
  }
}

/// First names of the ${...} in a tree, and of keys added with +.
void add_variables(const config::Node& node, std::vector<std::string>& names) {
  const std::string& text = node.string;
  for (std::size_t at = 0; (at = text.find("${", at)) != std::string::npos; at += 2)
    names.push_back(text.substr(at + 2, text.find_first_of(".:}", at) - at - 2));
  for (const config::Node& item : node.list) add_variables(item, names);
  for (const auto& [key, child] : node.map) add_variables(child, names);
}

Arguments parse_arguments(const Program& program, int argc, char** argv) {
  Arguments arguments;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.add_flag("-h,--help", arguments.help);
  app.add_flag("--version", arguments.version);
  app.add_flag("-q,--quiet", arguments.quiet);
  app.add_flag("-v,--verbose", arguments.verbose);
  app.add_flag("--json", arguments.json);
  app.add_option("-c,--cfg", arguments.print)->check(CLI::IsMember({"job"}));
  app.add_option("--config-dir", arguments.config_folder);
  app.add_option("--config-path", arguments.config_path);
  app.add_option("--config-name", arguments.config_name);
  std::vector<std::vector<std::string>> words(program.flags.size());
  std::vector<CLI::Option*> options;
  for (std::size_t i = 0; i < program.flags.size(); ++i) {
    const Flag& flag = program.flags[i];
    CLI::Option* option = flag.takes == Flag::Takes::nothing ? app.add_flag(flag.name)
                                                             : app.add_option(flag.name, words[i]);
    if (flag.takes == Flag::Takes::one) option->expected(1)->allow_extra_args(false);
    options.push_back(option);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    throw ConfigError(fmt::format("{}; see {} --help", error.what(), program.name));
  }
  std::vector<std::string> known{"--help",
                                 "--version",
                                 "--quiet",
                                 "--verbose",
                                 "--json",
                                 "--cfg",
                                 "--config-dir",
                                 "--config-path",
                                 "--config-name"};
  for (const Flag& flag : program.flags) known.emplace_back(flag.name);
  for (const std::string& word : app.remaining()) {
    if (word.size() > 1 && word[0] == '-') {
      throw ConfigError(fmt::format("unknown flag {}.{}", word, suggestion(word, known)));
    }
    arguments.overrides.push_back(word);
  }
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (options[i]->count() > 0) add_flag_override(program.flags[i], words[i], arguments.overrides);
  }
  return arguments;
}

std::vector<std::string> config_folders(const Arguments& arguments) {
  std::vector<std::string> folders;
  if (!arguments.config_folder.empty()) folders.push_back(arguments.config_folder);
  folders.push_back(arguments.config_path.empty() ? config_folder() : arguments.config_path);
  for (const std::string& folder : folders) {
    if (!std::filesystem::is_directory(folder))
      throw ConfigError(folder + ": no such folder of configs");
  }
  return folders;
}

void print_help(const Program& program, const config::Composer& composer) {
  std::string text = fmt::format(
      "{} - {}\n\nUsage: {} [group=option ...] [key.sub=value ...] "
      "[flags]\n\nExamples:\n{}\n\nConfig groups "
      "(choose with group=option):\n",
      program.name,
      program.summary,
      program.name,
      program.examples);
  for (const config::Group& group : composer.groups()) {
    text += fmt::format("  {:<18} {}\n", group.name, join(group.options, ", "));
  }
  text += "\nFlags:\n";
  for (const Flag& flag : program.flags) {
    const char* value = flag.takes == Flag::Takes::nothing ? ""
                        : flag.takes == Flag::Takes::one   ? " X"
                                                           : " X ...";
    text += fmt::format("  {:<22} {} ({})\n", std::string(flag.name) + value, flag.help, flag.key);
  }
  text +=
      "  -c, --cfg job          print the composed configuration and stop\n"
      "  --config-dir DIR       also look for configs in DIR, first\n"
      "  --config-path DIR      look for configs in DIR only\n"
      "  --config-name NAME     primary config instead of " +
      std::string(program.primary) +
      "\n"
      "  -q, --quiet            warnings and errors only\n"
      "  -v, --verbose          more messages\n"
      "  --json                 results on stdout as one JSON object\n"
      "  --version              version\n"
      "  -h, --help             this text\n"
      "\nResults go to stdout, messages to stderr. Exit codes: 0 done, 1 a failure of ours, 2 bad "
      "input,\n"
      "4 the system failed (disk full), 5 out of memory, 6 loss not finite, 130/143 interrupted.\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

using Entry = int (*)(const Run&);

Entry load_engine(const char* name) {
  Dl_info own{};  // the engine lies beside this library
  dladdr(reinterpret_cast<void*>(&load_engine), &own);
  const std::string path =
      (std::filesystem::path(own.dli_fname).parent_path() / "libcytra.so").string();
  void* engine = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (engine == nullptr)
    throw std::runtime_error(fmt::format("can't load the engine: {}", dlerror()));
  auto* entry = reinterpret_cast<Entry>(dlsym(engine, name));
  if (entry == nullptr)
    throw std::runtime_error(fmt::format("libcytra.so has no {}: {}", name, dlerror()));
  return entry;
}

int run_throwing(const Program& program, int argc, char** argv) {
  Arguments arguments = parse_arguments(program, argc, argv);
  if (arguments.version) {
    std::printf("%s %s\n", program.name, version());
    return 0;
  }
  log::set_level(arguments.quiet         ? log::Level::warn
                 : arguments.verbose > 0 ? log::Level::debug
                                         : log::Level::info);
  Run run;
  run.config_folders = config_folders(arguments);
  const config::Composer composer(run.config_folders);
  if (arguments.help) {
    print_help(program, composer);
    return 0;
  }
  const std::string primary =
      arguments.config_name.empty() ? program.primary : arguments.config_name;
  if (!arguments.print.empty()) {
    const std::string text = config::to_yaml(composer.compose(primary, arguments.overrides));
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }
  add_variables(composer.compose_unresolved(primary, arguments.overrides), run.variables);
  for (const std::string& text : arguments.overrides) {
    const std::size_t key = text.find_first_not_of('+');
    if (key != 0 && key != std::string::npos)
      run.variables.push_back(text.substr(key, text.find_first_of(".=", key) - key));
  }
  run.config = composer.compose(primary, arguments.overrides);
  config::require_complete(run.config);
  run.overrides = std::move(arguments.overrides);
  run.program = program.name;
  for (int i = 0; i < argc; ++i) run.command_line += (i == 0 ? "" : " ") + shell_quote(argv[i]);
  run.json = arguments.json;
  return load_engine(program.entry)(run);
}

}  // namespace

std::string shell_quote(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\n'\"\\$`!*?[]{}()<>|&;#~") == std::string::npos)
    return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

void Results::add(const std::string& key, config::Node value) {
  entries_.emplace_back(key, std::move(value));
}

void Results::print() const {
  std::string text;
  if (json_) {
    config::Node object = config::Node::make_map();
    for (const auto& [key, value] : entries_) {
      config::Node* present = object.find(key);
      if (present == nullptr) {
        object.set(key, value);
      } else {  // a second value turns the entry into a list
        if (present->kind != config::Kind::list) {
          config::Node list;
          list.kind = config::Kind::list;
          list.list.push_back(std::move(*present));
          *present = std::move(list);
        }
        present->list.push_back(value);
      }
    }
    text = config::to_json(object) + "\n";
  } else {
    for (const auto& [key, value] : entries_) {
      text += key + ": " +
              (value.kind == config::Kind::string ? value.string : config::to_json(value)) + "\n";
    }
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

int run(const Program& program, int argc, char** argv) {
  try {
    return run_throwing(program, argc, argv);
  } catch (const std::exception& error) {
    const int code = exit_code(error);
    log::write(log::Level::error,
               code == 1 ? fmt::format("internal: {} (please report this)", error.what())
                         : std::string(error.what()));
    return code;
  }
}

}  // namespace cytra::cli
