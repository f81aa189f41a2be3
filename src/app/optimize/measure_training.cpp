#include "app/optimize/measure_training.h"

#include <algorithm>
#include <ctime>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "app/optimize/settings.h"
#include "app/optimize/step_clock.h"
#include "app/setup/train_data.h"
#include "app/setup/train_report.h"
#include "base/control_groups.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/signals.h"
#include "base/stopwatch.h"
#include "config/composer.h"
#include "config/run_config.h"
#include "data/transforms/load_image.h"
#include "device/backend.h"
#include "device/fast_precision.h"
#include "device/memory.h"
#include "nn/forward_state.h"
#include "nn/model.h"
#include "perf/measure.h"
#include "training/batch_size.h"
#include "training/trainer.h"

namespace cytra::app {
namespace {

using config::Node;
double thread_cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void set_value(Node& root, const std::string& key, const Node& value) {
  const std::size_t dot = key.rfind('.');
  Node* parent = dot == std::string::npos ? &root : root.find(key.substr(0, dot));
  if (parent == nullptr || !parent->is_map())
    throw std::logic_error("a trial changes " + key + ", which the configuration has not");
  parent->set(key.substr(dot + 1), value);
}

/// Silences a training except for warnings, as long as it lives: the training is one of many.
class Quiet {
 public:
  Quiet() : was_info_(log::shows(log::Level::info) && !log::shows(log::Level::debug)) {
    if (was_info_) log::set_level(log::Level::warn);
  }
  ~Quiet() {
    if (was_info_) log::set_level(log::Level::info);
  }
  Quiet& operator=(Quiet&&) = delete;

 private:
  bool was_info_;
};

/// Makes the training run until it is stopped, on one device, with a short validation.
void make_endless(training::TrainerOptions& options) {
  constexpr int64_t kValidated = 2;  // batches: enough for their time and memory
  options.max_epochs = options.min_steps = -1;
  options.max_steps = 1'000'000'000;
  options.min_epochs = options.num_sanity_val_steps = options.fast_dev_run = 0;
  options.max_seconds = -1;
  options.num_nodes = 1;
  if (!options.limit_val_batches.is_none()) options.limit_val_batches = {kValidated, 0};
  options.enable_progress_bar = options.enable_model_summary = false;
  options.profiler = Node();  // there is one profiler already
}

/// The seconds of a forward and backward pass of `times` a batch on a CPU: the shortest of
/// several.
double seconds_of_pass(const Setup& setup, const data::Batch& batch, int64_t times, bool anomaly) {
  const data::Batch larger = training::repeated(batch, times);
  const auto pass = [&] {
    training::run_pass(*setup.task, larger, setup.precision, setup.device, anomaly);
  };
  return perf::measure(pass, {1, 3, 0.2, 50}, setup.device).best_s();
}

/// Measures the part of forward and backward passes that does not depend on the batch's size, from
/// a batch and one of `more` times as many images; and the time of looking for NaNs.
void split_computing(
    const Setup& setup, const data::Batch& batch, int64_t more, bool anomaly, StepTimes& times) {
  constexpr double kLong = 0.2;  // seconds of a batch whose fixed part cannot matter
  if (batch.tensors.empty() || times.compute_s > kLong * static_cast<double>(times.batches)) return;
  nn::Model& model = setup.task->model();
  const nn::KeepForwardState untouched(model);
  model.train();
  const double once = seconds_of_pass(setup, batch, 1, false);
  double share = 0;
  if (more > 1 && once > 0) {
    const auto n = static_cast<double>(more);
    const double together = seconds_of_pass(setup, batch, more, false);
    share = std::clamp((n * once - together) / ((n - 1) * once), 0.0, 1.0);
  }
  if (anomaly) {
    const double searching = seconds_of_pass(setup, batch, 1, true);
    times.anomaly_s = std::max(0.0, 1 - once / searching) * (times.compute_s - times.fixed_s);
  }
  times.fixed_s += share * (times.compute_s - times.fixed_s - times.anomaly_s);
  model.zero_grad();
}

/// Splits a GPU's time: scopes hold the host's times only. The time of its kernels, and of its
/// waiting, follow from the recorded operations.
void split_gpu(const perf::OperatorRows& rows, double recorded, StepTimes& times) {
  double kernels = 0, copies = 0, reads = 0;
  for (const auto& [name, row] : rows) {
    if (name == "aten::_local_scalar_dense") reads += static_cast<double>(row.calls);
    if (row.is_kernel) (name.starts_with("Memcpy") ? copies : kernels) += row.self_cuda_us;
  }
  if (recorded <= 0) return;
  const double scale = 1e-6 * static_cast<double>(times.batches) / recorded;
  times.compute_s = std::min(kernels * scale, times.wall_s);
  times.fixed_s = 0;  // the GPU idles meanwhile
  const double idle = std::max(0.0, times.wall_s - times.data_s - times.compute_s);
  times.transfer_s = std::min(copies * scale, idle);
  if (reads >= recorded) times.sync_s = idle - times.transfer_s;  // else the host cannot keep up
}

/// Times each transform of training images on one thread, in seconds, from some images.
std::vector<TransformTime> time_transforms(const data::DataLoaderSpec& spec, double& kept_bytes) {
  constexpr std::size_t kImages = 3;
  constexpr double kLongest = 2;  // seconds
  std::vector<TransformTime> times;
  bool is_cached = true;
  for (const auto& transform : spec.transforms) {
    is_cached = is_cached && !transform->is_random();
    times.push_back({transform->name, 0, 0, is_cached});
  }
  const Stopwatch all;
  double done = 0;
  for (std::size_t i = 0; i < std::min(kImages, spec.items.size()); ++i) {
    if (done > 0 && all.seconds() > kLongest) break;
    data::Sample sample = spec.items[i];
    Rng rng(spec.seed, i);
    double draws = 1;
    try {
      for (std::size_t t = 0; t < times.size(); ++t) {
        const Stopwatch one;
        const double cpu_before = thread_cpu_s();
        data::apply(*spec.transforms[t], sample, rng);
        draws *= static_cast<double>(spec.transforms[t]->num_samples());
        times[t].seconds += one.seconds() * draws;
        times[t].cpu_s += (thread_cpu_s() - cpu_before) * draws;
        if (!times[t].is_cached) continue;
        double bytes = 0;
        for (const auto& [key, tensor] : sample.tensors)
          bytes += static_cast<double>(tensor.nbytes());
        if (t + 1 == times.size() || !times[t + 1].is_cached) kept_bytes += bytes;
      }
    } catch (const Error&) {  // an image that the training leaves out (data.on_error)
      continue;
    }
    done += 1;
  }
  for (TransformTime& one : times) {
    one.seconds /= std::max(done, 1.0);
    one.cpu_s /= std::max(done, 1.0);
  }
  kept_bytes /= std::max(done, 1.0);
  return times;
}

/// The key "data.transforms.train.0.lazy", where a crop follows directly after a LoadImaged that
/// reads whole images.
std::string lazy_key(const Node& config) {
  const Node* list = config.find("data.transforms.train");
  if (list == nullptr) return "";
  for (std::size_t i = 0; i + 1 < list->list.size(); ++i) {
    const auto next = list->list[i + 1].get<std::string>("_target_", "");
    if (data::loads_images(list->list[i]) && next.find("Crop") != std::string::npos &&
        !list->list[i].get<bool>("lazy", false))
      return fmt::format("data.transforms.train.{}.lazy", i);
  }
  return "";
}

/// The intervals of each callback, in steps, by the keys that set them.
std::map<std::string, std::map<std::string, int64_t>> intervals_of(const TrainConfig& config) {
  constexpr const char* kKey = "every_n_steps";
  std::map<std::string, std::map<std::string, int64_t>> intervals;
  for (const auto& [name, callback] : config.callbacks.map) {
    for (const auto& [key, value] : callback.map) {
      const bool is_own = key == kKey;
      if (key.find(kKey) == std::string::npos) continue;
      if (value.is_null() && is_own) intervals[name][key] = config.trainer.log_every_n_steps;
      if (value.kind == config::Kind::integer && value.integer > 0)
        intervals[name][key] = value.integer;
    }
  }
  return intervals;
}

}  // namespace

TrainConfig with_changes(const cli::Run& run, const Changes& changes, cli::Run& changed) {
  changed = run;
  for (const auto& [key, value] : changes) set_value(changed.composed, key, value);
  changed.config = config::job_config(changed.composed);
  config::Problems problems;
  TrainConfig config =
      config::read_options<TrainConfig>(changed.config, problems, changed.variables);
  problems.throw_if_any();
  return config;
}

Trials::Trials(cli::Run run, const TrainConfig& config)
    : run_(std::move(run)),
      folder_(make_run_folder(config::output_dir(run_.composed))),
      device_(choose_device(config)),
      watch_([folder = folder_](int) {
        log::warn("interrupted; nothing is kept");
        remove_at_the_end(folder);
      }) {
  config::move_output(run_.composed, folder_);
  if (config.performance.forbid_transfers)
    log::info("performance.forbid_transfers: not watched while times are measured; train does");
}

Trials::~Trials() {
  remove_all_quietly(folder_);
}

Node Trials::value(const std::string& key) const {
  try {
    return config::evaluate(run_.composed, key);
  } catch (const ConfigError&) {
    return {};
  }
}

/// The share of images that are not found in the cache: those that do not fit miss in every epoch,
/// the others in the first only.
static double miss_share_of(const Loaders& loaders, double kept_bytes, int64_t images) {
  if (!loaders.cache) return 1;
  const data::CacheManager::Stats cache = loaders.cache->stats();
  if (!cache.is_full) return 0;
  const double kept = static_cast<double>(cache.ram_bytes) / kept_bytes;
  return kept_bytes > 0 ? std::max(0.0, 1 - kept / static_cast<double>(images)) : 1;
}

Figures Trials::measure(const Changes& changes, double seconds, bool explains) const {
  const Quiet quiet;
  cli::Run run;
  TrainConfig config = with_changes(run_, changes, run);
  make_endless(config.trainer);
  config.trainer.precision = device::precision_on(config.trainer.precision, device_);
  config.test = false;
  device::reset_peak_memory(device_);
  const Setup setup(config, device_);
  Loaders loaders(config, setup);
  auto clock = std::make_shared<StepClock>(seconds, explains, device_);
  Callbacks callbacks = make_callbacks(config, true);
  callbacks.push_back(clock);
  const Loggers loggers = make_loggers(config, true);
  training::Trainer trainer(config.trainer,
                            *setup.task,
                            *setup.optimizer,
                            *setup.scheduler,
                            std::move(callbacks),
                            loggers,
                            run.config);
  open_loggers(loggers, run, folder_, 0, device::describe(device_));
  trainer.fit(loaders.train, loaders.valid);
  if (const int signal = trainer.signal(); signal != 0)
    throw Interrupted("interrupted; nothing is kept", signal_exit_code(signal));
  close_loggers(loggers, trainer.state(), {}, "measured");
  Figures measured;
  measured.times = clock->times();
  if (measured.times.batches == 0) {
    throw ConfigError(
        "the training ended in its first steps, there is nothing to measure; a callback has "
        "stopped it");
  }
  measured.losses = clock->losses();
  measured.validation_s = clock->validation_s();
  Facts& facts = measured.facts;
  facts.is_on_gpu = device::is_accelerator(device_);
  facts.batch_size = loaders.options.batch_size;
  facts.num_workers = loaders.options.num_workers;
  facts.prefetch_factor = loaders.options.prefetch_factor;
  facts.cores = std::max<int64_t>(1, available_processors());
  facts.threads = at::get_num_threads();
  facts.channels_last = setup.task->model().channels_last;
  facts.precision = config.trainer.precision;
  facts.compiles = setup.task->model().settings.compile_model.value_or(true);
  facts.images = static_cast<int64_t>(setup.data->items(data::Split::train).size());
  facts.free_gb = static_cast<double>(device::free_memory(at::kCPU)) / 1e9;
  if (!explains) return measured;
  measured.operators = clock->operators();
  if (facts.is_on_gpu) {
    split_gpu(measured.operators, clock->profiled_batches(), measured.times);
  } else if (clock->batch()) {
    // Eight are enough for torch to choose the kernels of large batches. Twice as many images take
    // twice the memory at most; half of what is free is left.
    const int64_t more = std::clamp<int64_t>(
        device::free_memory(device_) / (2 * std::max<int64_t>(1, device::peak_memory(device_))),
        1,
        8);
    split_computing(setup, *clock->batch(), more, config.trainer.detect_anomaly, measured.times);
  }
  const data::DataLoaderSpec spec = loader_spec(setup, data::Split::train);
  facts.transforms = time_transforms(spec, facts.kept_bytes);
  facts.ram_cache_gb = loaders.options.ram_cache_gb;
  facts.miss_share = miss_share_of(loaders, facts.kept_bytes, facts.images);
  facts.lazy_key = lazy_key(run.config);
  facts.detects_anomaly = config.trainer.detect_anomaly;
  facts.log_every_n_steps = loggers.empty() ? INT64_MAX : config.trainer.log_every_n_steps;
  facts.pins_memory = loaders.options.pin_memory;
  facts.callback_intervals = intervals_of(config);
  share_cores(facts, measured.times);
  return measured;
}

int64_t Trials::best_batch_size(const Changes& changes) const {
  constexpr int64_t kFewestBatches = 4;
  const Quiet quiet;
  cli::Run run;
  TrainConfig config =
      with_changes(run_, with(changes, key::kBatch, Node::make_string("AUTO")), run);
  config.trainer.precision = device::precision_on(config.trainer.precision, device_);
  const Setup setup(config, device_);
  const Loaders loaders(config, setup);
  const auto images = std::ssize(loaders.train.items());
  return std::min(loaders.options.batch_size, images / kFewestBatches);
}

}  // namespace cytra::app
