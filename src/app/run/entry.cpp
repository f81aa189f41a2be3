#include "app/run/entry.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/files.h"
#include "base/log.h"
#include "base/signal_watch.h"
#include "base/strings.h"
#include "config/run_config.h"
#include "config/unread.h"

namespace cytra::app {

void warn_of(const std::vector<std::string>& notes) {
  if (!notes.empty()) log::warn("{}", join(notes, "; "));
}

void tell_unread_values(const cli::Run& run,
                        std::vector<std::string> sections,
                        config::Problems& problems) {
  // The task refers to these sections of a training.
  static const std::vector<std::string> components{"model", "loss", "metrics"};
  const bool has_task = contains(sections, "task");
  std::erase_if(sections,
                [&](const std::string& name) { return has_task && contains(components, name); });
  config::tell_unread(run.composed, run.files, sections, components, problems);
}

std::string open_run_folder(cli::Run& run) {
  const std::string wanted = config::output_dir(run.composed);
  const std::string folder = make_run_folder(wanted);
  if (folder != wanted) {
    config::move_output(run.composed, folder);
    run.config = config::job_config(run.composed);
    // Removes the temporaries of runs that were killed and are started again.
    std::string earlier = wanted;
    for (int number = 1; earlier != folder; ++number) {
      remove_stale_temporaries(earlier);
      earlier = fmt::format("{}-{}", wanted, number);
    }
  }
  std::error_code error;
  config::save_run_config(folder,
                          run.composed,
                          "cd " + shell_quote(std::filesystem::current_path(error).string()) +
                              " && " + run.command_line);
  log::set_file(folder + "/" + run.program + ".log");
  log::debug("{}", run.command_line);
  return folder;
}

namespace {

std::string open_again(cli::Run& run, bool resume) {
  namespace fs = std::filesystem;
  const std::string wanted = config::output_dir(run.composed);
  std::error_code error;
  bool is_own = fs::exists(wanted + "/" + run.program + ".log", error);
  if (resume && !is_own) {  // one that was killed before it had a log
    const fs::directory_iterator entries(wanted, error);
    is_own = !error && std::all_of(begin(entries), end(entries), [](const auto& entry) {
      return entry.path().filename().string().starts_with(".");
    });
  }
  if (resume && is_own) {
    log::set_file(wanted + "/" + run.program + ".log");
    log::debug("{}", run.command_line);
    return wanted;
  }
  if (resume) log::info("{}: there is nothing to resume; a new run begins", wanted);
  std::string folder = open_run_folder(run);
  if (folder != wanted) {
    log::warn("{} {}: results go to {}",
              wanted,
              resume ? "has no results of " + run.program
                     : "exists already (--resume goes on with what is there)",
              folder);
  }
  return folder;
}

}  // namespace

std::string open_run_folder(cli::Run& run, bool resume) {
  if (!resume) return make_with_start([&] { return open_again(run, false); });
  return open_again(run, true);
}

std::string command(const std::string& program, const std::vector<std::string>& overrides) {
  std::string text = typed_program(program);
  for (const std::string& override_text : overrides) text += " " + shell_quote(override_text);
  return text;
}

}  // namespace cytra::app
