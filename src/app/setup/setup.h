#pragma once
// A training put together from its configuration. Programs that train, or try what a training
// would do, begin here.
#include <memory>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "app/setup/train_config.h"
#include "training/precision.h"
#include "training/processes/processes.h"

namespace cytra::app {

using Callbacks = std::vector<std::shared_ptr<training::Callback>>;
using Loggers = std::vector<std::shared_ptr<training::Logger>>;

/// Chooses the device that the configuration asks for, after setting what must be set before.
c10::Device choose_device(const TrainConfig& config);

/// The parts of a training, fitted to each other; Loaders has those for images. Everything random
/// is drawn from the configuration's seed. The user's mistakes are found here, before a file is
/// written.
struct Setup {
  /// Makes the parts. `place`: the place of this process among those that train together.
  /// `weights`: a file to take the model's weights from; "" for none. Throws: ConfigError,
  /// DataError.
  Setup(const TrainConfig& config,
        c10::Device device,
        const training::ProcessPlace& place = {},
        const std::string& weights = "");

  uint64_t seed;
  c10::Device device;
  training::ProcessPlace place;
  training::Precision precision;
  /// The configuration's sections, completed by what annotations become, and by what loads the
  /// keys and the masks that the task names; is_changed: whether anything was added.
  struct Fitted {
    config::Node data, task;
    bool is_changed = false;
  } fitted;
  std::shared_ptr<data::DataModule> data;
  std::shared_ptr<training::Task> task;  // its model is on the device, in the precision's type
  std::shared_ptr<training::Optimizer> optimizer;  // has the parameters
  std::shared_ptr<training::Scheduler> scheduler;
};

/// Makes the configuration's callbacks that take part in this process's training.
Callbacks make_callbacks(const TrainConfig& config, bool is_first_process);
/// Makes the configuration's loggers: in the first process only, and none in a trial run
/// (fast_dev_run).
Loggers make_loggers(const TrainConfig& config, bool is_first_process);

}  // namespace cytra::app
