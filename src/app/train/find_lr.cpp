// `train --find-lr`: a learning rate range test with the configuration of a training; writes
// lr_find.svg and lr_find.csv into the run's folder and suggests a rate. Nothing else is kept.
#include <fmt/format.h>

#include "app/setup/train_data.h"
#include "app/train/resume.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/signal_watch.h"
#include "base/signals.h"
#include "device/backend.h"
#include "device/fast_precision.h"
#include "training/profiler.h"
#include "training/trainer.h"

namespace cytra::app {
namespace {

/// Passes losses to the finder. The loss of a step on an accelerator is known one step later.
class Recorder final : public training::Callback {
 public:
  Recorder(training::LrFinder& finder, bool lags) : finder_(finder), lags_(lags) {
    name = "lr_find";
  }
  void on_step_end(training::Context& context) override {
    rates_.push_back(context.lr);
    if (!lags_ || rates_.size() > 1) take(context);
  }
  void on_fit_end(training::Context& context) override {
    if (done_ < rates_.size()) take(context);
  }

 private:
  void take(training::Context& context) {
    if (!has_ended_) has_ended_ = !finder_.add(rates_[done_++], context.loss);
    context.stop = has_ended_;
  }
  training::LrFinder& finder_;
  bool lags_, has_ended_ = false;
  std::vector<double> rates_;
  std::size_t done_ = 0;
};

/// Runs the test: a short training without validation.
void search(const cli::Run& run, TrainConfig config, training::LrFinder& finder) {
  training::TrainerOptions& options = config.trainer;
  options.max_epochs = options.min_steps = -1;
  options.min_epochs = 0;
  options.max_steps = config.lr_find.num_training;
  options.on_nonfinite = "skip";  // the test ends there
  options.limit_val_batches = {0, 0};
  config.test = config.checkpoint.autoresume = false;
  const c10::Device device = choose_device(config);
  config.trainer.precision = device::precision_on(config.trainer.precision, device);
  const Setup setup(config, device, {}, checkpoint_of(config.checkpoint, run));
  Loaders loaders(config, setup);
  Callbacks callbacks =
      training::make_profilers({}, "", config.performance.forbid_transfers.value_or(""));
  callbacks.push_back(std::make_shared<Recorder>(finder, device::is_accelerator(device)));
  training::Trainer trainer(options, *setup.task, *setup.optimizer, finder, std::move(callbacks));
  trainer.fit(loaders.train, loaders.valid);
}

int find_lr(cli::Run run, const TrainConfig& config) {
  watch_signals();
  const training::LrFinderOptions& options = config.lr_find;
  training::LrFinder finder(options);
  {
    const SignalWatch watch([](int) { log::warn("interrupted; nothing is kept"); });
    search(run, config, finder);
  }
  if (const int signal = signal_received(); signal != 0) return signal_exit_code(signal);
  const std::vector<training::LrFinder::Point>& points = finder.points();
  const std::optional<std::size_t> best = finder.suggestion();
  if (!best) {
    throw DivergedError(
        "lr_find: the losses diverged after {} steps, too few for a suggestion; try a lower "
        "lr_find.min_lr or a higher lr_find.num_training",
        points.size());
  }
  if (std::ssize(points) < options.num_training)
    log::info("ended after {} steps: the losses diverged", points.size());
  const std::string folder = open_run_folder(run);
  std::string table = "lr,loss,smoothed_loss\n";
  for (const auto& point : points)
    table += fmt::format("{:.9g},{:.9g},{:.9g}\n", point.lr, point.loss, point.smoothed);
  write_file(folder + "/lr_find.csv", table);
  write_file(folder + "/lr_find.svg", training::plot_svg(finder, options.mode == "exponential"));
  const std::string rate = fmt::format("{:.3g}", points[*best].lr);
  std::string again = run.command_line;
  if (const std::size_t flag = again.find(" --find-lr"); flag != std::string::npos)
    again.erase(flag, std::string_view(" --find-lr").size());
  log::info("train with it:  {} optimizer.lr={}", again, rate);
  cli::Results results(run.json);
  results.add("suggested_lr", config::parse_value(rate, {}));
  results.add("plot", folder + "/lr_find.svg");
  results.add("table", folder + "/lr_find.csv");
  results.print();
  return 0;
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_find_lr(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::find_lr);
}
