#pragma once
// The data side of `train`: loaders, and what is said about them.
#include <map>
#include <memory>
#include <string>

#include "cli/program.h"
#include "data/datamodule.h"
#include "data/loader.h"
#include "data/timing.h"
#include "training/callback.h"
#include "training/precision.h"
#include "training/trainer_options.h"

namespace cytra::app {

struct LoaderSettings {
  uint64_t seed;
  bool pin, channels_last;
  std::shared_ptr<data::CacheManager> cache;
  std::shared_ptr<data::Transform> last;  // of every sample's transforms: the task's; may be null
  int64_t rank = 0, processes = 1;
  std::map<std::string, int64_t> channels = {};  // DataLoaderSpec's
};

/// What a task's model takes of its images, where its config says so.
std::map<std::string, int64_t> expected_channels(const config::Node& task);

/// `limit`: of its batches. `overfits`: the same batches in the same order, epoch by epoch.
data::DataLoader make_loader(const data::DataModule& module,
                             data::Split split,
                             const data::LoaderOptions& options,
                             const LoaderSettings& settings,
                             const training::Amount& limit,
                             bool overfits = false);

/// What data.batch_size=AUTO stands for: what the checkpoint was trained with, else it is tried
/// out.
int64_t choose_batch_size(const data::DataModule& module,
                          const LoaderSettings& settings,
                          training::Task& task,
                          const training::Precision& precision,
                          const std::string& checkpoint);

/// The checkpoint to begin with, or "": what checkpoint.ckpt_path names ("last" and "best" of
/// earlier runs with this one's name); with autoresume the last of these, if any. Throws:
/// ConfigError when there is none of that name, or one of these runs is alive; as
/// find_checkpoint().
std::string checkpoint_of(const std::string& ckpt_path, bool autoresume, const cli::Run& run);

/// A checkpoint's place in its epoch counts batches of each process; the order of images follows
/// from the seed. Warns of what is not as it was.
void fit_position(training::TrainState& state,
                  const std::string& checkpoint,
                  int64_t batch_size,
                  int64_t processes,
                  const config::Node& config);

/// Where the time went, and which images were left out.
void report_data(const data::Timing& timing,
                 const data::DataLoader& train,
                 const data::DataLoader& valid,
                 const LoaderSettings& settings,
                 const data::LoaderOptions& options);

}  // namespace cytra::app
