// `train --find-lr`: a learning rate range test with the configuration of a training; writes
// lr_find.svg and lr_find.csv into the run's folder and suggests a rate. Nothing else is kept.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "app/entry.h"
#include "app/train_data.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/signals.h"
#include "config/registry.h"
#include "nn/model.h"
#include "nn/weights.h"
#include "perf/device.h"
#include "training/layer_freeze.h"
#include "training/lr_finder.h"
#include "training/optimizer.h"
#include "training/trainer.h"

extern "C" int cytra_train(const cytra::cli::Run& run);

namespace cytra::app {
namespace {

using config::Node;

/// Feeds the finder. The loss of a step on a GPU is known one step later.
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

template <class Options>
Options section(const Node& config, const char* key) {
  const Node* node = config.find(key);
  return config::parse<Options>(node == nullptr ? Node::make_map() : *node);
}

/// Runs the test. The configuration was checked before.
void search(cli::Run& run, training::LrFinder& finder, int64_t steps) {
  auto options = section<training::TrainerOptions>(run.config, "trainer");
  options.max_epochs = options.min_steps = -1;
  options.min_epochs = 0;
  options.max_steps = steps;
  options.devices = 1;
  options.on_nonfinite = "skip";  // the test ends there
  const auto performance = section<perf::PerformanceOptions>(run.config, "performance");
  perf::prepare(performance, options.deterministic_mode);
  const c10::Device device = perf::choose_device(options.accelerator);
  perf::apply(performance, device);  // before anything is measured
  const auto seed = run.config.get<int64_t>("seed", 0);
  at::manual_seed(static_cast<uint64_t>(seed));
  const auto module = make<data::DataModule>(run.config.at("data"));
  const auto task = make<training::Task>(run.config.at("task"));
  const auto optimizer = make<training::Optimizer>(run.config.at("optimizer"));
  nn::Model& model = task->model();
  const training::Precision precision = training::precision_of(options.precision);
  if (precision.parameters != at::kFloat) model.to(precision.parameters);
  nn::place(model, device);
  const std::string weights =
      checkpoint_of(run.config.get<std::string>("checkpoint.ckpt_path", ""), false, run);
  if (!weights.empty())
    nn::load_weights(weights, model, run.config.get<bool>("checkpoint.strict", true));
  const LoaderSettings settings{static_cast<uint64_t>(seed),
                                device.is_cuda(),
                                model.channels_last,
                                data::make_cache(module->loader()),
                                task->sample_transform(),
                                0,
                                1,
                                expected_channels(run.config.at("task"))};
  training::freeze_layers(run.config.find("callbacks"), model);
  optimizer->attach(model.named_parameters().pairs());
  data::LoaderOptions loading = module->loader();
  if (loading.batch_size == 0)
    loading.batch_size = choose_batch_size(*module, settings, *task, precision, "");
  data::DataLoader images = make_loader(*module,
                                        data::Split::train,
                                        loading,
                                        settings,
                                        options.limit_train_batches,
                                        !options.overfit_batches.is_none());
  training::Trainer trainer(
      options, *task, *optimizer, finder, {std::make_shared<Recorder>(finder, device.is_cuda())});
  data::DataLoader none({});
  trainer.fit(images, none);
}

int find_lr(cli::Run run) {
  cli::Run check = run;
  check.check = true;
  cytra_train(check);
  if (run.check) return 0;
  watch_signals();
  const auto options = section<training::LrFinderOptions>(run.config, "lr_find");
  training::LrFinder finder(options);
  search(run, finder, options.num_training);
  if (const int signal = signal_received(); signal != 0) return signal_exit_code(signal);
  const std::vector<training::LrFinder::Point>& points = finder.points();
  const std::optional<std::size_t> best = finder.suggestion();
  if (!best) {
    throw DivergedError(
        fmt::format("lr_find: the losses diverged after {} steps, too few for a suggestion; try a "
                    "lower lr_find.min_lr or a higher lr_find.num_training",
                    points.size()));
  }
  if (static_cast<int64_t>(points.size()) < options.num_training)
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
  return cytra::app::guarded([&] { return cytra::app::find_lr(run); });
}
