#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/files.h"
#include "base/strings.h"
#include "base/unicode.h"
#include "config/overrides/overrides.h"

namespace cytra::cli {
namespace {

struct Line {
  const char *flag, *help;
};
constexpr Line lines[] = {
    {"-c, --cfg job|hydra|all", "print the composed configuration and stop"},
    {"--resolve", "with --cfg and --diff: ${...} replaced by their values"},
    {"-p, --package KEY", "with --cfg: only this part"},
    {"-i, --info WHAT", "defaults | defaults-tree | groups | config | searchpath | all"},
    {"--explain KEY", "every file and override that set KEY, in order"},
    {"--diff FILE", "compare with another configuration, or with a run's folder"},
    {"--check", "find every mistake in the configuration; start nothing"},
    {"--describe NAME", "the options of a component (DynUNet), a group or a key; what a file is"},
    {"--schema [GROUP]", "JSON schema of the primary config, or of a group's files"},
    {"-m, --multirun", "a job for each combination of values: key=1,2"},
    {"-cd, --config-dir DIR", "also look for configs in DIR"},
    {"-cp, --config-path DIR", "look for configs in DIR only"},
    {"-cn, --config-name NAME", "another primary config"},
    {"-sc, --shell-completion X", "install=bash | install=zsh | install=fish"},
    {"-q, --quiet", "warnings and errors only"},
    {"-v, --verbose", "more messages"},
    {"--json", "results on stdout as one JSON object"},
    {"--json-messages", "messages and progress on stderr as JSON, an object a line"},
    {"--version", "version"},
    {"-h, --help", "this text"},
};

/// Makes `data.path` name the existing file, where its letters are stored in another form of
/// Unicode.
std::string with_stored_name(const std::string& word) {
  constexpr const char* kKey = "data.path";
  if (!word.starts_with(std::string(kKey) + "=")) return word;
  try {
    const config::Override typed = config::parse_override(word);
    if (typed.values.size() != 1 || typed.values[0].kind != config::Kind::string) return word;
    const std::string& path = typed.values[0].string;
    const std::string stored = path_as_stored(path);
    return stored == path ? word : config::override_word(kKey, stored);
  } catch (const ConfigError&) {  // reported when the overrides are composed
    return word;
  }
}

/// The value quoted where needed: a path may hold signs of the grammar.
std::string value_of(const std::string& word) {
  const bool is_plain = word.find_first_of(",[]{}()'\"\\") == std::string::npos;
  return is_plain ? word : config::override_text(config::Node::make_string(word));
}

/// Whether the word after this flag is its value.
bool takes_value(const Program& program, const std::string& word) {
  if (word.find('=') != std::string::npos) return false;
  for (const Flag& flag : program.flags) {
    if (word == flag.name) return flag.takes != Flag::Takes::nothing;
  }
  for (const Line& line : lines) {  // "-c, --cfg job|hydra|all"
    const std::vector<std::string> names = split(line.flag, ' ');
    const bool has_value = !names.back().starts_with("-");
    for (const std::string& name : names) {
      if (word == name || word + "," == name) return has_value;
    }
  }
  return false;
}

/// The value of a flag as an override; with CLI11 a flag of many values takes the overrides after
/// it, too, so those are separated.
void add_flag_override(const Flag& flag,
                       const std::vector<std::string>& words,
                       std::vector<std::string>& overrides) {
  std::vector<std::string> values;
  for (const std::string& word : words) {
    if (word.find('=') == std::string::npos) {
      values.push_back(value_of(word));
    } else {
      overrides.push_back(word);
    }
  }
  if (flag.takes == Flag::Takes::nothing) {
    overrides.push_back(fmt::format("{}=true", flag.key));
  } else if (flag.takes == Flag::Takes::one) {
    overrides.push_back(fmt::format("{}={}", flag.key, value_of(words.back())));
  } else {
    overrides.push_back(fmt::format("{}=[{}]", flag.key, join(values, ",")));
  }
}

/// Writes out Hydra's flags of two letters, which CLI11 does not know.
std::vector<std::string> spelled_out(int argc, char** argv) {
  static const std::vector<std::pair<std::string, std::string>> shorts = {
      {"-cd", "--config-dir"},
      {"-cp", "--config-path"},
      {"-cn", "--config-name"},
      {"-sc", "--shell-completion"}};
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; --i) {  // CLI11 takes them in reverse
    std::string word = argv[i];
    for (const auto& [two, whole] : shorts) {
      const std::size_t name = word.find('=');
      if (word.substr(0, name) == two) word.replace(0, two.size(), whole);
    }
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace

Words::Words(const Program& program, const std::vector<std::string>& keys, int argc, char** argv) {
  std::size_t next = 0;
  bool is_value = false;
  for (int i = 0; i < argc; ++i) {
    std::string word = argv[i];
    const bool is_place = i > 0 && !is_value && !word.empty() && word[0] != '-' &&
                          word.find('=') == std::string::npos && next < keys.size();
    is_value = !is_value && takes_value(program, word);
    words_.push_back(is_place ? keys[next++] + "=" + value_of(word) : std::move(word));
  }
  for (std::string& word : words_) pointers_.push_back(word.data());
  pointers_.push_back(nullptr);
}

std::string flags_help(const Program& program) {
  std::string text;
  for (const Flag& flag : program.flags) {
    const char* value = flag.takes == Flag::Takes::nothing ? ""
                        : flag.takes == Flag::Takes::one   ? " X"
                                                           : " X ...";
    text += fmt::format("  {:<26} {} ({})\n", std::string(flag.name) + value, flag.help, flag.key);
  }
  for (const Mode& mode : program.modes) text += fmt::format("  {:<26} {}\n", mode.flag, mode.help);
  for (const Line& line : lines) text += fmt::format("  {:<26} {}\n", line.flag, line.help);
  return text;
}

std::vector<std::string> flag_names(const Program& program) {
  std::vector<std::string> names;
  for (const Flag& flag : program.flags) names.emplace_back(flag.name);
  for (const Mode& mode : program.modes) names.emplace_back(mode.flag);
  for (const Line& line : lines) {
    const std::string text = line.flag;
    const std::size_t begin = text.find("--");
    names.push_back(text.substr(begin, text.find(' ', begin) - begin));
  }
  return names;
}

Arguments parse_arguments(const Program& program, int argc, char** argv) {
  Arguments arguments;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  arguments.command_line = typed_program(program.name);
  for (int i = 1; i < argc; ++i) arguments.command_line += " " + shell_quote(argv[i]);
  std::string schema;
  bool run = false;  // Hydra's --run is what happens anyway
  app.add_flag("-h,--help", arguments.help);
  app.add_flag("--version", arguments.version);
  app.add_flag("-q,--quiet", arguments.quiet);
  app.add_flag("-v,--verbose", arguments.verbose);
  app.add_flag("--json", arguments.json);
  app.add_flag("--json-messages");  // run() has seen it already
  app.add_flag("--resolve", arguments.resolve);
  app.add_flag("--check", arguments.check);
  app.add_flag("-m,--multirun", arguments.multirun);
  app.add_flag("-r,--run", run);
  app.add_option("-c,--cfg", arguments.cfg)->check(CLI::IsMember({"job", "hydra", "all"}));
  app.add_option("-p,--package", arguments.package);
  app.add_option("-i,--info", arguments.info);
  app.add_option("--explain", arguments.explain);
  app.add_option("--diff", arguments.diff);
  app.add_option("--describe", arguments.describe);
  CLI::Option* with_schema = app.add_option("--schema", schema)->expected(0, 1);
  app.add_option("--config-dir", arguments.config_dir);
  app.add_option("--config-path", arguments.config_path);
  app.add_option("--config-name", arguments.config_name);
  app.add_option("--shell-completion", arguments.completion);
  std::vector<std::vector<std::string>> words(program.flags.size());
  std::vector<CLI::Option*> options;
  for (std::size_t i = 0; i < program.flags.size(); ++i) {
    const Flag& flag = program.flags[i];
    CLI::Option* option = flag.takes == Flag::Takes::nothing ? app.add_flag(flag.name)
                                                             : app.add_option(flag.name, words[i]);
    if (flag.takes == Flag::Takes::one) option->expected(1)->allow_extra_args(false);
    options.push_back(option);
  }
  for (const Mode& mode : program.modes) app.add_flag(mode.flag);
  try {
    app.parse(spelled_out(argc, argv));
  } catch (const CLI::ParseError& error) {
    throw ConfigError("{}; see {} --help", error.what(), program.name);
  }
  arguments.entry = program.entry;
  for (const Mode& mode : program.modes) {
    if (app.count(mode.flag) > 0) arguments.entry = mode.entry;
  }
  if (with_schema->count() > 0) {
    arguments.schema = schema;
    if (schema.find('=') != std::string::npos) {  // an override that follows the bare flag
      arguments.overrides.push_back(schema);
      arguments.schema = "";
    }
  }
  for (const std::string& word : app.remaining()) {
    if (word.size() > 1 && word[0] == '-')
      throw ConfigError("unknown flag {}.{}", word, suggestion(word, flag_names(program)));
    arguments.overrides.push_back(word);
  }
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (options[i]->count() > 0) add_flag_override(program.flags[i], words[i], arguments.overrides);
  }
  for (std::string& word : arguments.overrides) word = with_stored_name(word);
  return arguments;
}

void print_help(const Program& program, const config::Composer& composer) {
  std::string text = fmt::format(
      "{} - {}\n\nUsage: {} [group=option ...] [key.sub=value ...] "
      "[flags]\n\nExamples:\n{}\n\nConfig groups (choose with group=option):\n",
      program.name,
      program.summary,
      program.name,
      program.examples);
  for (const config::Group& group : composer.groups())
    text += fmt::format("  {:<18} {}\n", group.name, join(group.options, ", "));
  text +=
      "\nFlags:\n" + flags_help(program) +
      "\nResults go to stdout, messages to stderr. Exit codes: 0 done, 1 a fault of this program, "
      "2 bad input,\n"
      "4 the system failed (disk full), 5 out of memory, 6 loss not finite, 130/143 interrupted.\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

/// Prints the two most common command lines, for a program that is started without arguments.
void print_short_help(const Program& program) {
  const std::vector<std::string> examples = split(program.examples, '\n');
  std::fputs(
      fmt::format("{} - {}\n\n{}\n{}\n\n{} --help shows its configuration groups and flags\n",
                  program.name,
                  program.summary,
                  examples.at(0),
                  examples.at(1),
                  program.name)
          .c_str(),
      stderr);
}

}  // namespace cytra::cli
