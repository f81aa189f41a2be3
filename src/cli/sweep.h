#pragma once
// --multirun: composes every job of a sweep, then runs each as a process of its own.
#include <functional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "config/composer.h"

namespace cytra::cli {

/// A job's composition, ready to run: it throws ConfigError when the job can't run.
using CheckJob = std::function<void(config::Composition job)>;

/// The overrides of each job of a sweep, those of hydra.sweeper.params first; `plan`: the tree
/// composed without the values to try.
std::vector<std::vector<std::string>> jobs_of(const config::Composer& composer,
                                              const config::Composition& plan,
                                              const std::vector<std::string>& overrides);

/// Composes and checks all jobs before the first starts, each in
/// hydra.sweep.dir/hydra.sweep.subdir; hydra.launcher.n_jobs of them at a time (joblib; basic:
/// one). With --check nothing is started. Returns the exit code: 0, or that of the first job that
/// failed.
int run_sweep(const Program& program,
              const Arguments& arguments,
              const config::Composer& composer,
              const std::string& primary,
              const CheckJob& check);

}  // namespace cytra::cli
