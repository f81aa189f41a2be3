// bench_trainer FOLDER STEPS ROUNDS: what the trainer adds to a step, by a model with one parameter
// and batches of one number. Loggers write into FOLDER. Medians over ROUNDS, in one JSON line.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <ATen/ATen.h>

#include "base/log.h"
#include "config/registry.h"
#include "data/loader/batch.h"
#include "data/loader/loader.h"
#include "nn/model.h"
#include "training/optimizer.h"
#include "training/scheduler.h"
#include "training/trainer.h"

namespace {

using Clock = std::chrono::steady_clock;
using namespace cytra;

struct OneParameter final : nn::Model {
  OneParameter() : Model({}) { weight = register_parameter("weight", at::ones({1})); }
  at::Tensor forward(const at::Tensor& image) override { return image * weight; }
  std::vector<int64_t> divisor() const override { return {1, 1}; }
  int64_t in_channels() const override { return 1; }
  int64_t spatial_dims() const override { return 2; }
  int64_t out_channels() const override { return 1; }
  at::Tensor weight;
};

struct Regression final : training::Task {
  nn::Model& model() override { return net; }
  at::Tensor training_step(const data::Batch& batch) override {
    return (net.forward(batch.at("x")) - 1).square().mean();
  }
  void validation_step(const data::Batch&) override {}
  training::Metrics validation_end() override { return {}; }
  OneParameter net;
};

constexpr int64_t kWarmUp = 100;

/// Times the steps after the first kWarmUp: what is paid once per training does not count.
struct StepTimer final : training::Callback {
  void on_step_end(training::Context& context) override {
    if (context.state.step == kWarmUp) begin = Clock::now();
    end = Clock::now();
  }
  Clock::time_point begin, end;
};

double us_per_step(Clock::time_point begin, Clock::time_point end, int64_t steps) {
  return std::chrono::duration<double, std::micro>(end - begin).count() /
         static_cast<double>(steps);
}

template <class Base>
std::shared_ptr<Base> make(const std::string& text) {
  return Registry<Base>::instance().make(config::parse_yaml(text, "bench_trainer"));
}

data::DataLoader make_loader(int64_t batches) {
  data::DataLoaderSpec spec;
  spec.options.num_workers = 0;
  spec.items.resize(static_cast<std::size_t>(batches));
  for (auto& item : spec.items) item.tensors["x"] = at::zeros({1, 1, 1});
  return data::DataLoader(std::move(spec));
}

/// The trainer with a checkpoint callback that never saves and a row of metrics every 50 steps.
double with_trainer(const std::string& folder, int64_t steps) {
  Regression task;
  const auto optimizer = make<training::Optimizer>("{_target_: SGD, lr: 0.01}");
  optimizer->attach(task.net.named_parameters().pairs());
  const auto scheduler = make<training::Scheduler>("{_target_: ConstantLR, factor: 1}");
  const auto timer = std::make_shared<StepTimer>();
  const auto saver = make<training::Callback>(
      "{_target_: ModelCheckpoint, monitor: null, save_top_k: 0, save_last: false, dirpath: '" +
      folder + "'}");
  saver->name = "model_checkpoint";
  const auto logger = make<training::Logger>("{_target_: CSVLogger, save_dir: '" + folder + "'}");
  logger->open({folder, config::Node::make_map(), 0, {}});
  training::Trainer trainer(
      config::parse<training::TrainerOptions>(config::parse_yaml(
          "{max_epochs: 1, log_every_n_steps: 50, enable_progress_bar: false}", "bench_trainer")),
      task,
      *optimizer,
      *scheduler,
      {saver, timer},
      {logger});
  data::DataLoader loader = make_loader(steps), none({});
  trainer.fit(loader, none);
  logger->close({});
  return us_per_step(timer->begin, timer->end, steps - kWarmUp);
}

/// The same forward, backward and optimizer calls on the same batch, and nothing else.
double bare(int64_t steps) {
  Regression task;
  const auto optimizer = make<training::Optimizer>("{_target_: SGD, lr: 0.01}");
  optimizer->attach(task.net.named_parameters().pairs());
  data::DataLoader loader = make_loader(1);
  loader.start_epoch(0);
  const data::Batch batch = loader.next().value();
  Clock::time_point begin;
  for (int64_t step = 0; step < steps; ++step) {
    if (step == kWarmUp) begin = Clock::now();
    const at::Tensor loss = task.training_step(batch);
    loss.backward();
    optimizer->step({0.01});
    optimizer->zero_grad();
  }
  return us_per_step(begin, Clock::now(), steps - kWarmUp);
}

double loader_alone(int64_t batches) {
  data::DataLoader loader = make_loader(batches);
  loader.start_epoch(0);
  Clock::time_point begin;
  for (int64_t batch = 0; loader.next(); ++batch) {
    if (batch == kWarmUp) begin = Clock::now();
  }
  return us_per_step(begin, Clock::now(), batches - kWarmUp);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fputs("usage: bench_trainer FOLDER STEPS ROUNDS\n", stderr), 2;
  const int64_t steps = std::atoll(argv[2]), rounds = std::atoll(argv[3]);
  std::vector<double> trainers, bares, loaders;
  for (int64_t round = 0; round < rounds; ++round) {
    bares.push_back(bare(steps));
    trainers.push_back(with_trainer(argv[1], steps));
    loaders.push_back(loader_alone(steps));
  }
  const double step = median(bares), whole = median(trainers) - step;
  std::printf("{\"bare_us\": %.3f, \"overhead_us\": %.3f, \"alone_us\": %.3f}\n",
              step,
              whole,
              whole - median(loaders));
}
