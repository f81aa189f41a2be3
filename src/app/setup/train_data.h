#pragma once
// The loaders of a training's images, and the report about them.
#include <map>
#include <memory>
#include <string>

#include "app/setup/setup.h"
#include "data/loader/loader.h"
#include "data/loader/timing.h"
#include "data/survey/survey.h"

namespace cytra::app {

/// What all loaders of a split have in common.
data::DataLoaderSpec loader_spec(const Setup& setup, data::Split split);

/// The loaders of a training. A split that it does not use has no batches.
struct Loaders {
  /// Makes the loaders. data.batch_size=AUTO is the size in `checkpoint`'s training ("": none),
  /// else it is tried out. Throws: ConfigError, DataError.
  Loaders(const TrainConfig& config, const Setup& setup, const std::string& checkpoint = "");

  std::shared_ptr<data::CacheManager> cache;     // null: no cache
  data::LoaderOptions options;                   // of training batches, with their size
  std::map<std::string, config::Node> decoders;  // by ImageTask::fit_decoders()
  data::DataLoader train, valid, test;
};

/// Reads every image of the data set, and shows how far it is.
data::Survey survey_of(const data::DataModule& module, data::Trial trial = {});
/// Reports where the time went, and which images were left out.
void report_data(const data::Timing& timing, const Loaders& loaders, c10::Device device);

}  // namespace cytra::app
