// Part of config/composition/defaults.h: the `hydra` group that every tree has, in Hydra
// pkg://hydra.conf. Keys and values follow Hydra 1.3.8, so trees that change them compose;
// docs/config.md says which of them have an effect.
#include <algorithm>
#include <iterator>

#include "base/lists.h"
#include "config/composition/defaults.h"

namespace cytra::config {
namespace {

constexpr HydraFile files[] = {
    {"hydra/callbacks/none", ""},
    {"hydra/config", R"(
defaults:
  - output: default
  - launcher: basic
  - sweeper: basic
  - help: default
  - hydra_help: default
  - hydra_logging: default
  - job_logging: default
  - callbacks: null
  - env: default
env: {}
mode: null
searchpath: []
run:
  dir: ???
sweep:
  dir: ???
  subdir: ???
hydra_logging: ???
job_logging: ???
sweeper: ???
launcher: ???
callbacks: {}
help:
  app_name: ???
  header: ???
  footer: ???
  template: ???
hydra_help:
  hydra_help: ???
  template: ???
output_subdir: .hydra
overrides:
  hydra: []
  task: []
job:
  name: ???
  chdir: null
  override_dirname: ???
  id: ???
  num: ???
  config_name: ???
  env_set: {}
  env_copy: []
  config:
    override_dirname:
      kv_sep: '='
      item_sep: ','
      exclude_keys: []
runtime:
  version: ???
  version_base: ???
  cwd: ???
  config_sources: ???
  output_dir: ???
  choices: {}
verbose: false
)"},
    {"hydra/env/default", ""},
    {"hydra/help/default", R"(
app_name: ${hydra.job.name}
header: ${hydra.help.app_name}
footer: ''
template: see --help
)"},
    {"hydra/hydra_help/default", "template: see --help\n"},
    {"hydra/hydra_logging/colorlog", R"(
version: 1
formatters:
  colorlog:
    (): colorlog.ColoredFormatter
    format: '[%(cyan)s%(asctime)s%(reset)s][%(purple)sHYDRA%(reset)s] %(message)s'
handlers:
  console:
    class: logging.StreamHandler
    formatter: colorlog
    stream: ext://sys.stdout
root:
  level: INFO
  handlers: [console]
disable_existing_loggers: false
)"},
    {"hydra/hydra_logging/default", R"(
version: 1
formatters:
  simple:
    format: '[%(asctime)s][HYDRA] %(message)s'
handlers:
  console:
    class: logging.StreamHandler
    formatter: simple
    stream: ext://sys.stdout
root:
  level: INFO
  handlers: [console]
loggers:
  logging_example:
    level: DEBUG
disable_existing_loggers: false
)"},
    {"hydra/hydra_logging/disabled",
     "version: 1\nroot:\n  level: ERROR\ndisable_existing_loggers: true\n"},
    {"hydra/hydra_logging/hydra_debug", R"(
version: 1
formatters:
  simple:
    format: '[%(asctime)s][%(name)s][%(levelname)s] - %(message)s'
handlers:
  file:
    class: logging.FileHandler
    mode: w
    formatter: simple
    filename: hydra-${hydra.job.name}.log
    delay: true
root:
  level: ERROR
  handlers: [file]
loggers:
  hydra:
    level: DEBUG
disable_existing_loggers: false
)"},
    {"hydra/hydra_logging/none", "version: 1\nroot: null\ndisable_existing_loggers: false\n"},
    {"hydra/job_logging/colorlog", R"(
version: 1
formatters:
  simple:
    format: '[%(asctime)s][%(name)s][%(levelname)s] - %(message)s'
  colorlog:
    (): colorlog.ColoredFormatter
    format: '[%(cyan)s%(asctime)s%(reset)s][%(blue)s%(name)s%(reset)s][%(log_color)s%(levelname)s%(reset)s] - %(message)s'
    log_colors:
      DEBUG: purple
      INFO: green
      WARNING: yellow
      ERROR: red
      CRITICAL: red
handlers:
  console:
    class: logging.StreamHandler
    formatter: colorlog
    stream: ext://sys.stdout
  file:
    class: logging.FileHandler
    formatter: simple
    filename: ${hydra.runtime.output_dir}/${hydra.job.name}.log
root:
  level: INFO
  handlers: [console, file]
disable_existing_loggers: false
)"},
    {"hydra/job_logging/default", R"(
version: 1
formatters:
  simple:
    format: '[%(asctime)s][%(name)s][%(levelname)s] - %(message)s'
handlers:
  console:
    class: logging.StreamHandler
    formatter: simple
    stream: ext://sys.stdout
  file:
    class: logging.FileHandler
    formatter: simple
    filename: ${hydra.runtime.output_dir}/${hydra.job.name}.log
root:
  level: INFO
  handlers: [console, file]
disable_existing_loggers: false
)"},
    {"hydra/job_logging/disabled",
     "version: 1\nroot:\n  level: ERROR\ndisable_existing_loggers: true\n"},
    {"hydra/job_logging/none", "version: 1\nroot: null\ndisable_existing_loggers: false\n"},
    {"hydra/job_logging/stdout", R"(
version: 1
formatters:
  simple:
    format: '%(message)s'
handlers:
  console:
    class: logging.StreamHandler
    formatter: simple
    stream: ext://sys.stdout
root:
  level: INFO
  handlers: [console]
disable_existing_loggers: false
)"},
    // `basic` runs one job after the other; `joblib`, like Hydra's plugin of that name, runs
    // n_jobs at a time.
    {"hydra/launcher/basic",
     "_target_: hydra._internal.core_plugins.basic_launcher.BasicLauncher\n"},
    {"hydra/launcher/joblib",
     "_target_: hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher\nn_jobs: -1\n"},
    {"hydra/output/default", R"(# @package hydra
run:
  dir: outputs/${now:%Y-%m-%d}/${now:%H-%M-%S}
sweep:
  dir: multirun/${now:%Y-%m-%d}/${now:%H-%M-%S}
  subdir: ${hydra.job.num}
)"},
    {"hydra/sweeper/basic",
     "_target_: hydra._internal.core_plugins.basic_sweeper.BasicSweeper\nmax_batch_size: null\n"
     "params: null\n"},
};

}  // namespace

const HydraFile* hydra_file(const std::string& path) {
  const auto found =
      std::ranges::find_if(files, [&](const HydraFile& file) { return path == file.path; });
  return found == std::end(files) ? nullptr : found;
}

std::vector<std::string> hydra_files() {
  return mapped(files, [](const HydraFile& file) { return std::string(file.path); });
}

}  // namespace cytra::config
