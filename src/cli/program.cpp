#include "cli/program.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "base/data_errors.h"
#include "base/end_process.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/expect_threads.h"
#include "base/files.h"
#include "base/json_log.h"
#include "base/log.h"
#include "base/memory_fault.h"
#include "base/nan_sign.h"
#include "base/shared_library.h"
#include "base/strings.h"
#include "base/version.h"
#include "cli/arguments.h"
#include "cli/completion.h"
#include "cli/excerpt.h"
#include "cli/infer_request.h"
#include "cli/inspect.h"
#include "cli/mistakes.h"
#include "cli/named_checkpoints.h"
#include "cli/newest_training.h"
#include "cli/sweep.h"
#include "config/composer.h"
#include "config/json.h"
#include "config/overrides/overrides.h"
#include "config/run_config.h"
#include "config/variables.h"

namespace cytra::cli {
namespace {

using config::Node;

/// Gathers the overrides of keys that `primary` does not have in the list `program.rest`.
std::vector<std::string> with_rest(const Program& program,
                                   const config::Composer& composer,
                                   const std::string& primary,
                                   std::vector<std::string> overrides) {
  const config::Composition own = composer.load(primary, {});
  const auto is_own = [&](const std::string& word) {
    const config::Override override = config::parse_override(word);
    const Node* value = own.root.find(override.key);
    return override.is_hydra() || (value != nullptr && !value->is_map()) ||
           std::ranges::any_of(own.choices, [&](const auto& choice) {
             return choice.first == override.full_key();
           });
  };
  const auto others = std::stable_partition(overrides.begin(), overrides.end(), is_own);
  const Node rest = Node::make_list(std::vector<std::string>(others, overrides.end()));
  overrides.erase(others, overrides.end());
  if (!rest.list.empty())
    overrides.push_back(fmt::format("{}={}", program.rest, config::override_text(rest)));
  return overrides;
}

/// Loads the engine, and with it libgomp, whose threads spin between two pieces of work. Trainings
/// side by side would so take the cores from each other; a short spin costs a single training
/// nothing.
SharedLibrary open_engine() {
  const char* const name = "GOMP_SPINCOUNT";  // libgomp reads it once, while it is loaded
  const bool is_ours = std::getenv(name) == nullptr && std::getenv("OMP_WAIT_POLICY") == nullptr;
  if (is_ours) ::setenv(name, "1000", 1);
  SharedLibrary engine(path_beside(&run, "libcytra.so"), SharedLibrary::Symbols::global);
  if (is_ours) ::unsetenv(name);  // processes started by this one decide for themselves
  return engine;
}

/// A function of the engine by its name.
template <class Argument>
auto load_engine(const char* name) {
  expect_threads();
  SharedLibrary engine = open_engine();
  if (!engine.is_loaded()) {
    const std::string &why = engine.problem(), text = "can't load the engine: " + why;
    const auto has = [&](const char* sign) { return why.find(sign) != std::string::npos; };
    if (has("cannot open shared object file"))
      throw ConfigError(why + "; expected torch with all that it depends on to be installed");
    if (has("failed to map") || has("allocate memory") || has("cannot map"))
      throw MemoryError(text);
    throw std::runtime_error(text);
  }
  const auto entry = engine.find<int (*)(Argument&)>(name);
  if (entry == nullptr)
    throw std::runtime_error(fmt::format("libcytra.so has no {}: {}", name, engine.problem()));
  return entry;
}

std::vector<std::string> config_folders(const Arguments& arguments) {
  std::vector<std::string> folders{arguments.config_path.empty() ? config_folder()
                                                                 : arguments.config_path};
  if (!arguments.config_dir.empty()) folders.push_back(arguments.config_dir);
  std::error_code error;
  const std::string here = std::filesystem::current_path(error).string() + "/";
  for (std::string& folder : folders) {  // this makes messages shorter
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    if (folder.starts_with(here) && folder.size() > here.size()) folder.erase(0, here.size());
  }
  for (const std::string& folder : folders) {
    if (!std::filesystem::is_directory(folder))
      throw ConfigError(folder + ": no such folder of configs");
  }
  return folders;
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

/// Applies those of Hydra's settings that have an effect here, and reports those that have none.
void apply_hydra(const Node& root) {
  for (const auto& [name, value] : root.at("hydra.job.env_set").map)
    ::setenv(name.c_str(),
             config::evaluate(root, "hydra.job.env_set." + name).as<std::string>().c_str(),
             1);
  const Node& verbose = root.at("hydra.verbose");
  if (verbose.kind != config::Kind::boolean || verbose.boolean) log::set_level(log::Level::debug);
  const Node& chdir = root.at("hydra.job.chdir");
  if (chdir.kind == config::Kind::boolean && chdir.boolean)
    log::warn("{}: not supported, the working folder does not change", chdir.where());
  const Node& callbacks = root.at("hydra.callbacks");
  if (callbacks.is_map() && !callbacks.map.empty())
    log::warn("{}: Python callbacks of Hydra are not run", callbacks.map.front().second.where());
}

Run make_run(const Program& program, const Arguments& arguments, config::Composition composition) {
  Run run;
  Node& root = composition.root;
  config::set_output_dir(root);
  run.config = config::job_config(root);
  run.variables = config::variables_of(root, composition.own_keys);
  run.composed = std::move(root);
  run.files = std::move(composition.files);
  run.overrides = arguments.overrides;
  run.config_folders = config_folders(arguments);
  run.program = program.name;
  run.command_line = arguments.command_line;
  run.json = arguments.json;
  run.check = arguments.check;
  name_checkpoints(run);
  return run;
}

/// Whether --multirun is set, or hydra.mode=MULTIRUN in the tree.
bool is_multirun(const Arguments& arguments, const config::Composition& composition) {
  const Node* mode = composition.root.find("hydra.mode");
  return arguments.multirun ||
         (mode != nullptr && mode->kind == config::Kind::string && mode->string == "MULTIRUN");
}

/// Composes the configuration, and shows or runs it.
int compose_and_run(const Program& program,
                    Arguments& arguments,
                    const config::Composer& composer,
                    const std::string& primary) {
  const std::vector<std::string>& overrides = arguments.overrides;
  // A sweep's values are left out of what is shown: they differ from job to job.
  config::Composition composition = composer.load(primary, overrides, arguments.multirun);
  config::Node& root = composition.root;
  if (!arguments.cfg.empty()) {
    if (arguments.resolve) config::set_output_dir(root);
    print(composed_text(composition, arguments));
  } else if (!arguments.info.empty()) {
    print(info_text(composer, composition, arguments.info));
  } else if (!arguments.diff.empty()) {
    if (arguments.resolve) config::set_output_dir(root);
    print(diff_text(composition, arguments.diff, arguments.resolve));
  } else if (is_multirun(arguments, composition)) {
    if (arguments.entry != program.entry) {
      throw ConfigError("{} works on one configuration, leave out --multirun",
                        std::ranges::find_if(program.modes, [&](const Mode& mode) {
                          return mode.entry == arguments.entry;
                        })->flag);
    }
    return run_sweep(program, arguments, composer, primary, [&](config::Composition job) {
      Run run = make_run(program, arguments, std::move(job));
      run.check = true;
      load_engine<const Run>(program.entry)(run);
    });
  } else {
    if (std::string_view(program.primary) == "train") {  // programs that train, or try a training
      InferRequest request{composer, primary, arguments.entry, overrides};
      load_engine<InferRequest>("cytra_infer")(request);
      if (request.overrides.size() > overrides.size()) {
        arguments.overrides = std::move(request.overrides);
        composition = composer.load(primary, overrides);
      }
    }
    apply_hydra(root);
    const int code = load_engine<const Run>(arguments.entry.c_str())(
        make_run(program, arguments, std::move(composition)));
    if (arguments.check && code == 0) print(arguments.json ? "{\"ok\":true}\n" : "ok\n");
    return code;
  }
  return 0;
}

int run_throwing(const Program& program, int argc, char** argv) {
  if (argc == 1 && program.needs_words && !program.takes_newest) {
    print_short_help(program);
    return 2;
  }
  Arguments arguments = parse_arguments(program, argc, argv);
  if (arguments.version) {
    std::printf("%s %s\n", program.name, version());
    return 0;
  }
  log::set_level(arguments.quiet         ? log::Level::warn
                 : arguments.verbose > 0 ? log::Level::debug
                                         : log::Level::info);
  const bool only_tells = arguments.help || arguments.schema || !arguments.completion.empty() ||
                          !arguments.describe.empty();
  if (program.takes_newest && !only_tells && names_no_training(arguments.overrides))
    take_newest_training("logs/train", arguments);
  const config::Composer composer(config_folders(arguments), program.name);
  if (arguments.help) {
    print_help(program, composer);
    return 0;
  }
  const std::string primary =
      arguments.config_name.empty() ? program.primary : arguments.config_name;
  const std::vector<std::string>& overrides = arguments.overrides;
  if (!arguments.completion.empty()) {
    print(shell_completion(program, composer, primary, arguments.completion));
    return 0;
  }
  if (!arguments.describe.empty() || arguments.schema) {
    DescribeRequest request{
        program.name, arguments.describe, arguments.schema.has_value(), arguments.json, ""};
    if (arguments.schema) request.what = *arguments.schema;
    load_engine<DescribeRequest>("cytra_describe")(request);
    print(request.text);
    return 0;
  }
  if (program.rest != nullptr)
    arguments.overrides = with_rest(program, composer, primary, std::move(arguments.overrides));
  if (!arguments.explain.empty()) {
    print(explain_text(composer, primary, overrides, arguments.explain));
    return 0;
  }
  try {
    return compose_and_run(program, arguments, composer, primary);
  } catch (const ConfigError& error) {
    log::set_level(log::Level::error);
    const bool is_shown =
        !arguments.cfg.empty() || !arguments.info.empty() || !arguments.diff.empty();
    const auto check = [&](const std::vector<std::string>& words) {
      std::vector<std::vector<std::string>> jobs{words};
      if (arguments.multirun) jobs = jobs_of(composer, composer.load(primary, words, true), words);
      for (const std::vector<std::string>& job : jobs) {
        config::Composition composition = composer.load(primary, job);
        if (is_shown) return;  // what is shown is not run: its values are not looked at
        Run run = make_run(program, arguments, std::move(composition));
        run.check = true;
        load_engine<const Run>(program.entry)(run);
      }
    };
    throw ConfigError(all_mistakes(error.what(), overrides, check));
  }
}

/// Opens /dev/null in place of a closed stdin, stdout or stderr (`1>&- 2>&-`): else the next file
/// that is opened would get its number, and the messages.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    const int none = ::open("/dev/null", stream == STDIN_FILENO ? O_RDONLY : O_WRONLY);
    if (none < 0 || none == stream) continue;
    ::dup2(none, stream);
    ::close(none);
  }
}

/// Whether the stream is a pipe whose other end is closed (`| head`).
bool has_no_reader(int stream) {
  pollfd state{stream, POLLOUT, 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & POLLERR) != 0;
}

/// Prints one line about the error that ends the program. Returns its exit code.
int report(const std::exception& error) {
  const int code = exit_code(error);
  std::string text = code == 1 ? fmt::format("internal: {} (please report this)", error.what())
                               : with_source(error.what());
  if (const auto* of_a_path = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    text = of_a_path->path1().string() + ": " + of_a_path->code().message();
  // Errors of the configuration and of a table's rows have a line each; others are one line.
  if (dynamic_cast<const ConfigError*>(&error) == nullptr &&
      dynamic_cast<const DataErrors*>(&error) == nullptr)
    text = escaped(text);
  if (code == 5 && text.find(';') == std::string::npos) {
    text = fmt::format(
        "out of memory: {}; try a smaller data.batch_size, patch or inference_args.sw_batch_size, "
        "or raise the limit (ulimit -v)",
        text);
  }
  log::write(log::Level::error, text);
  return code;
}

/// Ends the program after an exception that nobody can catch: thrown while a library is loaded, or
/// in a library's thread.
void end_program() {
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    if (const int code = report(error); code != 1) std::_Exit(code);
  } catch (...) {
  }
  std::abort();
}

}  // namespace

void Results::add(const std::string& key, config::Node value) {
  if (json_ && value.kind == config::Kind::string && !is_utf8(value.string))
    value.string = escaped(value.string);
  entries_.emplace_back(key, std::move(value));
}

void Results::add_item(const std::string& key, const std::string& value) {
  if (!json_) return add(key, value);
  const auto has_key = [&](const auto& entry) { return entry.first == key; };
  auto list = std::ranges::find_if(entries_, has_key);
  if (list == entries_.end()) list = entries_.insert(list, {key, Node::make_list()});
  list->second.list.push_back(Node::make_string(is_utf8(value) ? value : escaped(value)));
}

void Results::add(const std::string& key, double value) {
  add(key, Node::make_real(without_nan_sign(value)));
}

std::string Results::text() const {
  std::string text;
  if (json_) {
    config::Node object = config::Node::make_map();
    for (const auto& [key, value] : entries_) object.set(key, value);
    text = config::to_plain_json(std::move(object)) + "\n";
  } else {
    for (const auto& [key, value] : entries_) {
      const bool is_finite = value.kind != config::Kind::real || std::isfinite(value.real);
      text += escaped(key + ": " +
                      (value.kind == config::Kind::string ? value.string
                       : is_finite                        ? config::to_json(value)
                                                          : fmt::format("{}", value.real))) +
              "\n";
    }
  }
  return text;
}

void Results::print() const {
  cli::print(text());
  std::fflush(stdout);
}

int run(const Program& program, int argc, char** argv) {
  occupy_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe (`| head`) is an error of write(), not the end
                                  // of the process
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit (ulimit -f) is an error of write(), not the
                                  // end of the process
  std::set_terminate(end_program);
  explain_memory_faults();
  const auto asks_for_json = [](std::string_view word) { return word == "--json-messages"; };
  if (std::any_of(argv, argv + argc, asks_for_json)) log::set_json();  // for its mistakes, too
  try {
    const int code = run_throwing(program, argc, argv);
    const bool is_written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    if (code == 0 && !is_written && !has_no_reader(STDOUT_FILENO))
      throw IoError(
          "stdout: not everything could be written, because the disk is full; the files of the run "
          "are in their places");
    return end_process(code);
  } catch (const std::exception& error) {
    return end_process(report(error));
  }
}

}  // namespace cytra::cli
