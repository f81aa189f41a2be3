#include "app/run/entry.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/run_config.h"
#include "config/unread.h"
#include "perf/device.h"
#include "perf/device_error.h"

namespace cytra::app {
namespace {

[[noreturn]] void throw_memory_error(const std::string& what) {
  throw MemoryError(fmt::format(
      "out of memory: {}; try a smaller data.batch_size, patch or inference_args.sw_batch_size",
      what));
}

}  // namespace

int guarded(const std::function<int()>& work) {
  try {
    return work();
  } catch (const c10::Error& error) {
    const std::string message = split(error.what_without_backtrace(), '\n').front();
    if (perf::is_out_of_memory(error)) {
      constexpr std::string_view kAsked = "you tried to allocate ";
      const std::size_t asked = message.find(kAsked);
      if (asked == std::string::npos) throw_memory_error(message);
      throw_memory_error(format_bytes(std::atof(message.c_str() + asked + kAsked.size())) +
                         " more were needed");
    }
    perf::throw_device_error(error.what_without_backtrace());
    if (message.find("Class values must be") != std::string::npos) {
      throw DataError("a target holds class numbers beyond model.out_channels (or below 0): " +
                      message);
    }
    throw std::runtime_error(message);
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) throw;
    throw MemoryError(
        "out of memory for one more thread; raise the limit (ulimit -v, ulimit -u), or lower "
        "data.num_workers and performance.num_threads");
  } catch (const std::exception& error) {
    if (perf::is_out_of_memory(error)) throw_memory_error(error.what());
    throw;
  }
}

void warn_of(const std::vector<std::string>& notes) {
  if (!notes.empty()) log::warn("{}", join(notes, "; "));
}

void tell_unread_values(const cli::Run& run,
                        std::vector<std::string> sections,
                        config::Problems& problems) {
  // Of a training these are there for the task to refer to.
  static const std::vector<std::string> components{"model", "loss", "metrics"};
  const bool has_task = std::find(sections.begin(), sections.end(), "task") != sections.end();
  sections.erase(std::remove_if(sections.begin(),
                                sections.end(),
                                [&](const std::string& name) {
                                  return has_task &&
                                         std::find(components.begin(), components.end(), name) !=
                                             components.end();
                                }),
                 sections.end());
  config::tell_unread(run.composed, run.files, sections, components, problems);
}

std::string open_run_folder(cli::Run& run) {
  const std::string wanted = config::output_dir(run.composed);
  const std::string folder = make_run_folder(wanted);
  if (folder != wanted) {
    config::move_output(run.composed, folder);
    run.config = config::job_config(run.composed);
    // Of runs that were killed, and are made again.
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

std::string open_run_folder(cli::Run& run, bool resume) {
  namespace fs = std::filesystem;
  const std::string wanted = config::output_dir(run.composed);
  std::error_code error;
  bool is_own = fs::exists(wanted + "/" + run.program + ".log", error);
  if (resume && !is_own) {  // one that was killed before it had a log
    const fs::directory_iterator entries(wanted, error);
    is_own = !error && std::all_of(begin(entries), end(entries), [](const auto& entry) {
      return starts_with(entry.path().filename().string(), ".");
    });
  }
  if (resume && is_own) {
    log::set_file(wanted + "/" + run.program + ".log");
    log::debug("{}", run.command_line);
    return wanted;
  }
  if (resume) log::info("{}: nothing to go on with; a new run", wanted);
  std::string folder = open_run_folder(run);
  if (folder != wanted) {
    log::warn("{} {}: results go to {}",
              wanted,
              resume ? "has no results of " + run.program
                     : "is taken (--resume goes on with what is there)",
              folder);
  }
  return folder;
}

std::string command(const std::string& program, const std::vector<std::string>& overrides) {
  std::string text = (std::filesystem::path(program_folder()) / program).string();
  std::error_code error;
  const auto relative = std::filesystem::relative(text, error);
  if (!error && !starts_with(relative.string(), "../..")) text = relative.string();
  if (text.find('/') == std::string::npos) text = "./" + text;
  text = shell_quote(text);
  for (const std::string& override_text : overrides) text += " " + shell_quote(override_text);
  return text;
}

}  // namespace cytra::app
