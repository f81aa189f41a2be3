#pragma once
// Runs the jobs of --multirun: each one is a process of its own. Uses no torch.
#include <string>
#include <vector>

namespace cytra::cli {

struct Job {
  int number = 0;
  std::vector<std::string> arguments;  // argv of the process, its name first
  std::string label;                   // the overrides as text, for people
  std::string setting;                 // the same without data.fold and seed: jobs of one setting
                                       // are repeats of each other
  std::string folder;                  // the job makes it; `folder`.log is beside it
};

struct JobOptions {
  int parallel = 1;                        // processes at a time, >= 1
  bool json = false;                       // results as one JSON object
  std::string program = "/proc/self/exe";  // what each job executes
};

/// Starts the jobs in order, at most `parallel` at a time. The output of a job goes to
/// `folder`.log: its messages, then its results. A job that fails does not end the others. SIGINT
/// and SIGTERM are passed on to the running jobs (the third time as SIGKILL) and no new one
/// starts. A job ends when this process dies. At the end a table of all jobs goes to stderr, with
/// the score that each job printed as `best_score`, or under the name in its `monitor`, and a *
/// before the best by its `best_mode` or `mode` (min or max), the mean and standard deviation (of
/// a sample: n - 1) of each setting's scores, and to stdout `key: value` lines per job, or
/// {"jobs": [{"number", "overrides", "exit_code" (null: not started), "seconds", "folder",
/// "result" (when the job printed one JSON value)}], "means": [{"overrides", "metric", "mean",
/// "deviation", "jobs"}], "best_job"}. Returns: 0 when all jobs ended with 0, 130 or 143 when
/// interrupted, else the exit code of the first job that failed; 128 + N for a job that signal N
/// ended. Throws: ConfigError or IoError when a folder can't be made, before any job starts.
/// Thread: call it from the main thread, while no other thread runs: it could take the signals.
int run_jobs(const std::vector<Job>& jobs, const JobOptions& options);

}  // namespace cytra::cli
