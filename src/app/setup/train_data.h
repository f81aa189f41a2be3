#pragma once
// The images' side of a training: loaders, and what is said about them.
#include <map>
#include <memory>
#include <string>

#include "app/setup/setup.h"
#include "data/loader.h"
#include "data/timing.h"

namespace cytra::app {

/// What the loaders of a split have in common, whoever reads from them.
data::DataLoaderSpec loader_spec(const Setup& setup, data::Split split);

/// The loaders of a training. A split that it does not use has no batches.
struct Loaders {
  /// data.batch_size=AUTO is what the training of `checkpoint` had ("": none), else it is tried
  /// out. Throws: ConfigError, DataError.
  Loaders(const TrainConfig& config, const Setup& setup, const std::string& checkpoint = "");

  std::shared_ptr<data::CacheManager> cache;     // may be null
  data::LoaderOptions options;                   // of training batches, with their size
  std::map<std::string, config::Node> decoders;  // by ImageTask::fit_decoders()
  data::DataLoader train, valid, test;
};

/// Where the time went, and which images were left out.
void report_data(const data::Timing& timing, const Loaders& loaders, c10::Device device);

}  // namespace cytra::app
