#pragma once
// Entry points of the engine, found by name (cli::Program::entry).
#include "base/lists.h"
#include "cli/program.h"
#include "config/option_lister.h"
#include "device/device.h"
#include "device/error.h"

namespace cytra::app {

/// Gives one warning about all settings that have no effect here.
void warn_of(const std::vector<std::string>& notes);

/// Warns of values of the command line and of experiments that nothing reads; `sections`: the
/// program's.
void tell_unread_values(const cli::Run& run,
                        std::vector<std::string> sections,
                        config::Problems& problems);

/// Folders of a run. Further keys may be added that other values refer to (cli::Run::variables).
struct PathsOptions {
  std::string output_dir, log_dir, root_dir, data_dir, work_dir;
  void visit(auto& v) {
    v("output_dir",
      output_dir,
      "folder of this run; gets a number when it is taken",
      config::required);
    v("log_dir", log_dir, "folder of all runs, for output_dir");
    v("root_dir", root_dir, "for configurations of CytoDL, in which other values refer to it");
    v("data_dir", data_dir, "for configurations of CytoDL, in which other values refer to it");
    v("work_dir", work_dir, "for configurations of CytoDL, in which other values refer to it");
  }
};

/// The sections that every program has.
struct CommonConfig {
  std::string experiment_name, run_name, task_name;
  PathsOptions paths;
  device::PerformanceOptions performance;
  void visit(auto& v) {
    v("performance", performance, "switches that hold for the whole process");
    visit_names(v);
  }
  void visit_names(auto& v) {  // all but performance
    v("experiment_name", experiment_name, "part of the run folder's name");
    v("run_name", run_name, "part of the run folder's name");
    v("task_name", task_name, "part of the run folder's name");
    v("paths", paths, "folders");
    v("hydra", config::Unused{{"*"}}, "Hydra's own settings");
    v("tags", config::Unused{{"*"}}, "kept in the run's config.yaml");
    v("extras",
      config::Unused{},
      "for configurations of CytoDL; set the precision by performance.matmul_precision");
    v("local", config::Unused{}, "of CytoDL");
    v("hparams_search", config::Unused{{"null"}}, "there is no search for parameters");
  }
};

/// Checks the whole configuration, then works, unless only the check was asked for.
/// Throws: ConfigError with a line per problem; what `work` throws.
template <class Config>
int start(const cli::Run& run, int (*work)(cli::Run run, const Config& config)) {
  return device::guarded([&] {
    config::Problems problems;
    const Config config = config::read_options<Config>(run.config, problems, run.variables);
    tell_unread_values(
        run, mapped(config::describe_options<Config>(), &config::OptionInfo::name), problems);
    problems.throw_if_any();
    warn_of(problems.notes());
    return run.check ? 0 : work(run, config);
  });
}

/// Makes a program's configuration known to cytra_describe. Returns true.
template <class Config>
bool add_program(const char* name) {
  config::components_of("program").types.emplace(name, config::options_type<Config>());
  return true;
}

/// Makes the run's folder (a number is appended when it is taken, and every value that names the
/// folder follows), saves the configuration in its .hydra folder, and sends the log to
/// <program>.log there. `run.config` may be made anew from `run.composed`: change it afterwards.
/// Returns the folder.
std::string open_run_folder(cli::Run& run);

/// Makes the run's folder as a part of the start (make_with_start), with a message where a number
/// is appended. With `resume` it takes the folder of an earlier run of this program as it is, but
/// never one with files of others, which results might overwrite.
std::string open_run_folder(cli::Run& run, bool resume);

/// The command line that starts another of our programs, ready to paste.
std::string command(const std::string& program, const std::vector<std::string>& overrides);

}  // namespace cytra::app
