#pragma once
// The data side of `train`: loaders, and what is said about them.
#include <memory>
#include <string>

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
  int64_t rank = 0, processes = 1;
};

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

/// A checkpoint's place in its epoch counts batches of each process; the order of images follows
/// from the seed.
void fit_position(training::TrainState& state,
                  const std::string& checkpoint,
                  int64_t batch_size,
                  int64_t processes,
                  int64_t seed);

/// Where the time went, and which images were left out.
void report_data(const data::Timing& timing,
                 const data::DataLoader& train,
                 const data::DataLoader& valid,
                 const LoaderSettings& settings,
                 const data::LoaderOptions& options);

}  // namespace cytra::app
