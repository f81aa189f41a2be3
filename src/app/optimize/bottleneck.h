#pragma once
// Finds what holds a training back, and what to change, from measured times alone: so it can be
// tested without a training.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/node.h"

namespace cytra::app {

enum class Bound { data, transfer, sync, launch, compute };
const char* name_of(Bound bound);  // "data-bound"

constexpr double kBound = 0.2;  // share of the time from which on something holds a training back

/// Shares of the wall time; their sum is 1.
struct Shares {
  double data = 0, transfer = 0, sync = 0, launch = 0, compute = 0;

  double of(Bound bound) const;
  /// The largest share except computing, where it is a fifth of the time or more; else compute.
  Bound bound() const;
};

/// Where the wall time of some training batches went, in seconds of all of them together.
/// Validations and checkpoints are not in it.
struct StepTimes {
  int64_t batches = 0, images = 0;  // images: crops, as the batches hold them
  double wall_s = 0;
  double data_s = 0;      // waiting for the loader
  double transfer_s = 0;  // a GPU that waits for copies
  double sync_s = 0;      // a GPU that waits for a host that waited for it
  double compute_s = 0;   // forward, backward, optimizer
  double fixed_s = 0;     // of compute_s: what a batch of any size takes
  double anomaly_s = 0;   // of compute_s: trainer.detect_anomaly
  double loader_s = 0;    // of compute_s: on a CPU, the cores were with the loader's threads
  std::map<std::string, double> callbacks_s;  // by their names

  double rate() const { return wall_s > 0 ? static_cast<double>(images) / wall_s : 0; }
  Shares shares() const;
};

/// Sets times.loader_s: loading and computing share the cores of a CPU.
struct Facts;
void share_cores(const Facts& facts, StepTimes& times);

/// The time that one transform of an image takes on one thread.
struct TransformTime {
  std::string name;
  double seconds = 0;      // for an image with all its crops
  double cpu_s = 0;        // the processor's part of these
  bool is_cached = false;  // before the first random transform
};

/// What can be changed in the experiment, and what is known besides the times.
struct Facts {
  bool is_on_gpu = false;
  int64_t cores = 1, threads = 1;  // of the machine; of one operation
  int64_t batch_size = 1, num_workers = 0, prefetch_factor = 2, images = 0;
  int64_t best_batch_size = 1;            // Trials::best_batch_size(), where it was asked for
  int64_t windows = 1, most_windows = 1;  // of a pass in the validation; more are not tried
  std::vector<TransformTime> transforms;
  double kept_bytes = 0;  // of an image that is ready for the random transforms
  double miss_share = 1;  // images that were not in the cache, once it was filled
  double ram_cache_gb = 0, free_gb = 0;
  std::string lazy_key;  // of the LoadImaged before a crop; "": none, or lazy already
  bool detects_anomaly = false;
  int64_t log_every_n_steps = 10;
  bool pins_memory = true, channels_last = false, compiles = false;
  std::string precision = "32";
  /// The intervals of each callback, in steps, by the keys that set them.
  std::map<std::string, std::map<std::string, int64_t>> callback_intervals;
};

using Change = std::pair<std::string, config::Node>;  // a key with its value
using Changes = std::vector<Change>;

/// A change of the configuration.
struct Advice {
  Changes changes;
  std::string note;  // what else it changes; "" for nothing
};

/// What may help against the shares that hold the training back, the largest first; where nothing
/// is known, other ways to compute. Only a trial shows what does.
std::vector<Advice> advise(const StepTimes& times, const Facts& facts);

}  // namespace cytra::app
