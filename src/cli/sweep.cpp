#include "cli/sweep.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "base/control_groups.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/own_files.h"
#include "base/strings.h"
#include "cli/multirun.h"
#include "config/json.h"
#include "config/overrides/overrides.h"
#include "config/overrides/sweep.h"

namespace cytra::cli {
namespace {

using config::Node;

std::vector<std::pair<std::string, std::string>> file_params(const Node& root) {
  std::vector<std::pair<std::string, std::string>> params;
  const Node* node = root.find("hydra.sweeper.params");
  if (node == nullptr || node->is_null()) return params;
  if (!node->is_map())
    throw ConfigError(node->where() + ": expected a map of keys and their values to try");
  for (const auto& [key, value] : node->map) {
    // A text is written as on the command line: "choice(1,2)", "1,2".
    params.emplace_back(
        key, value.kind == config::Kind::string ? value.string : config::override_text(value));
  }
  return params;
}

/// How many jobs run at a time: joblib's n_jobs, where -1 is every processor.
int parallel_jobs(const Node& root) {
  const Node* node = root.find("hydra.launcher.n_jobs");
  if (node == nullptr) return 1;
  const auto count = node->as<int64_t>();
  if (count == 0 || count < -1)
    throw ConfigError(node->where() +
                      ": expected the number of jobs at a time, or -1 for one per processor");
  return static_cast<int>(count == -1 ? available_processors() : std::min<int64_t>(count, 4096));
}

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

/// The flags of the sweep that each job gets, too.
std::vector<std::string> inherited_flags(const Arguments& arguments) {
  std::vector<std::string> flags{"--json"};  // its results go into the table
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) flags.insert(flags.end(), {flag, value});
  };
  add("--config-dir", arguments.config_dir);
  add("--config-path", arguments.config_path);
  add("--config-name", arguments.config_name);
  if (arguments.quiet) flags.emplace_back("--quiet");
  if (arguments.verbose > 0) flags.emplace_back("--verbose");
  return flags;
}

/// Whether a job that differs from another by this word only repeats it.
bool repeats_only(const std::string& word) {
  const std::string key = word.substr(0, word.find('='));
  return key == "data.fold" || key == "seed" || key == "+data.fold" || key == "++data.fold";
}

/// The label of each job: the words of `which` that are not the same in all jobs.
std::vector<std::string> labels_of(const std::vector<std::vector<std::string>>& jobs,
                                   const std::function<bool(const std::string&)>& which) {
  std::vector<bool> differs(jobs.empty() ? 0 : jobs[0].size());
  for (const auto& job : jobs) {
    for (std::size_t i = 0; i < differs.size(); ++i)
      differs[i] = differs[i] || job[i] != jobs[0][i];
  }
  std::vector<std::string> labels;
  for (const auto& job : jobs) {
    std::vector<std::string> own;
    for (std::size_t i = 0; i < differs.size(); ++i) {
      if ((differs[i] || jobs.size() == 1) && which(job[i])) own.push_back(job[i]);
    }
    labels.push_back(join(own, " "));
  }
  return labels;
}

Node text(const std::string& value) {
  return Node::make_string(value);
}

}  // namespace

std::vector<std::vector<std::string>> jobs_of(const config::Composer& composer,
                                              const config::Composition& plan,
                                              const std::vector<std::string>& overrides) {
  std::vector<config::Override> parsed;
  for (const std::string& one : overrides) parsed.push_back(config::parse_override(one));
  return config::sweep_jobs(parsed, file_params(plan.root), [&](const std::string& group) {
    return composer.options(group);
  });
}

int run_sweep(const Program& program,
              const Arguments& arguments,
              const config::Composer& composer,
              const std::string& primary,
              const CheckJob& check) {
  const config::Composition plan = composer.load(primary, arguments.overrides, true);
  const auto words = jobs_of(composer, plan, arguments.overrides);
  std::string sweep_dir =
      absolute(config::evaluate(plan.root, "hydra.sweep.dir").as<std::string>());
  const std::vector<std::string> labels = labels_of(words, [](const std::string&) { return true; });
  const std::vector<std::string> settings = labels_of(words, std::not_fn(repeats_only));
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < words.size(); ++i) {
    Job job;
    job.number = static_cast<int>(i);
    job.label = labels[i];
    job.setting = settings[i];
    job.arguments = inherited_flags(arguments);
    job.arguments.insert(job.arguments.begin(), program.name);
    std::vector<std::string> overrides = words[i];
    overrides.push_back("hydra.job.num=" + std::to_string(i));
    overrides.push_back("hydra.job.id='" + std::to_string(i) + "'");
    try {
      config::Composition composition = composer.load(primary, overrides);
      Node& root = composition.root;
      root.find("hydra.sweep")->set("dir", text(sweep_dir));
      job.folder = config::evaluate(root, "hydra.sweep.subdir").as<std::string>();
      root.find("hydra.runtime")->set("output_dir", text(sweep_dir + "/" + job.folder));
      check(std::move(composition));
    } catch (const ConfigError& error) {
      throw ConfigError("{}\nin job {} of the sweep: {}", error.what(), i, job.label);
    }
    job.arguments.insert(job.arguments.end(), overrides.begin(), overrides.end());
    jobs.push_back(std::move(job));
  }
  if (arguments.check) {
    if (arguments.json) {
      Node result = Node::make_map();
      result.set("ok", Node::make_boolean(true));
      result.set("jobs", Node::make_list(labels));
      std::puts(config::to_plain_json(result).c_str());
      return 0;
    }
    for (const Job& job : jobs) std::printf("%d: %s\n", job.number, job.label.c_str());
    std::puts("ok");
    return 0;
  }
  sweep_dir = make_run_folder(sweep_dir);
  for (Job& job : jobs) {
    job.folder = sweep_dir + "/" + job.folder;
    job.arguments.push_back("hydra.run.dir=" + config::override_text(text(job.folder)));
  }
  const int parallel = std::min(parallel_jobs(plan.root), static_cast<int>(jobs.size()));
  if (parallel > 1) {  // each job gets cores of its own, as joblib's workers do: waiting threads
                       // spin
    const int cores = available_processors();
    ::setenv("OMP_NUM_THREADS", std::to_string(std::max(1, cores / parallel)).c_str(), 0);
  }
  own_file(sweep_dir + "/multirun.yaml");  // Hydra's name: the newest sweep's
  write_file(sweep_dir + "/multirun.yaml", config::to_yaml(plan.root));
  log::info("{} jobs, {} at a time, in {}", jobs.size(), parallel, sweep_dir);
  return run_jobs(jobs, {parallel, arguments.json});
}

}  // namespace cytra::cli
