#pragma once
// A training so small that tests can run hundreds: a 1x1 convolution with dropout on 4x4 images in
// memory.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/conv.h>

#include "config/registry.h"
#include "data/loader/batch.h"
#include "data/loader/loader.h"
#include "data/sample/sample.h"
#include "io/events/event_file.h"
#include "io/image.h"
#include "nn/call.h"
#include "nn/model.h"
#include "nn/weights.h"
#include "report/findings.h"
#include "training/optimizer.h"
#include "training/precision.h"
#include "training/scheduler.h"
#include "training/trainer.h"

namespace cytra::test {

struct TinyModel final : nn::Model {
  explicit TinyModel(double dropout) : Model({}), dropout(dropout) {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 1, 1)));
  }
  at::Tensor forward(const at::Tensor& image) override {
    const at::Tensor out = nn::call(*conv, image);
    return dropout > 0 ? at::dropout(out, dropout, is_training()) : out;
  }
  std::vector<int64_t> divisor() const override { return {1, 1}; }
  int64_t in_channels() const override { return 1; }
  int64_t spatial_dims() const override { return 2; }
  int64_t out_channels() const override { return 1; }
  double dropout;
  torch::nn::Conv2d conv{nullptr};
};

/// Learns y = 2 x - 1 by the squared error; "factor" scales the loss (to make it infinite).
struct TinyTask final : training::Task {
  explicit TinyTask(double dropout = 0) : net(std::make_shared<TinyModel>(dropout)) {}
  nn::Model& model() override { return *net; }
  Tensor training_step(const data::Batch& batch) override {
    seen.insert(seen.end(), batch.ids.begin(), batch.ids.end());
    return error(batch) * factor(static_cast<int64_t>(++steps));
  }
  void validation_step(const data::Batch& batch) override {
    ++validation_batches;
    sums_.add_(at::tensor({error(batch).item<double>(), 1.0}, at::kDouble));
  }
  training::Metrics validation_end() override {
    const auto both = sums_.accessor<double, 1>();
    const training::Metrics metrics{{"loss", both[0] / both[1]}};
    sums_.zero_();
    return metrics;
  }
  std::vector<Tensor> sums() override { return {sums_}; }
  std::map<std::string, Tensor> preview(const data::Batch& batch) override {
    const at::Tensor x = batch.at("x")[0];
    return {{"input", x},
            {"target", x.gt(0.5).to(at::kFloat)},
            {"prediction", (*net)(x.unsqueeze(0))[0]}};
  }
  std::map<std::string, Tensor> preview_input(const data::Batch& batch) override {
    return {{"input", batch.at("x")[0]}};
  }
  report::Findings findings() override {
    const auto both = sums_.accessor<double, 1>();
    report::Findings found;
    found.all.metrics = {{"loss", both[0] / both[1]}};
    return found;
  }
  at::Tensor error(const data::Batch& batch) {
    const at::Tensor& x = batch.at("x");
    return (net->forward(x) - (2 * x - 1)).square().mean();
  }
  std::shared_ptr<TinyModel> net;
  std::function<double(int64_t)> factor = [](int64_t) { return 1.0; };  // of the n-th batch, from 1
  std::vector<std::string> seen;
  int64_t steps = 0, validation_batches = 0;
  at::Tensor sums_ = at::zeros({2}, at::kDouble);
};

/// The sample's number as an image of random values around it.
struct Number final : data::Transform {
  bool is_random() const override { return true; }
  void apply(data::Sample& sample, Rng& rng) const override {
    sample.tensors["x"] = at::full({1, 4, 4}, std::stod(sample.id) / 10 + rng.uniform());
  }
};

inline data::DataLoaderSpec loader_spec(int64_t images,
                                        int64_t batch_size,
                                        bool shuffle,
                                        int64_t workers = 0,
                                        const training::Amount& limit = {}) {
  data::DataLoaderSpec spec;
  for (int64_t i = 0; i < images; ++i) {
    data::Sample sample;
    sample.id = std::to_string(i);
    spec.items.push_back(sample);
  }
  spec.transforms = {std::make_shared<Number>()};
  spec.transforms[0]->name = "Number";
  spec.options.batch_size = batch_size;
  spec.options.num_workers = workers;
  spec.options.drop_last = false;
  spec.shuffle = shuffle;
  spec.seed = 5;
  spec.limit = [limit](int64_t batches) { return limit.of(batches, "limit"); };
  return spec;
}

inline data::DataLoader loader(int64_t images,
                               int64_t batch_size,
                               bool shuffle,
                               int64_t workers = 0,
                               const training::Amount& limit = {}) {
  return data::DataLoader(loader_spec(images, batch_size, shuffle, workers, limit));
}

inline training::TrainerOptions trainer_options(const std::string& text) {
  return config::parse<training::TrainerOptions>(config::parse_yaml(text, "test"));
}

/// Writes down what it is called with.
struct Recorder final : training::Callback {
  void on_batch_start(training::Context& context) override {
    if (each_batch) each_batch(context);
  }
  void on_step_end(training::Context& context) override {
    losses.push_back(context.loss);
    if (each_step) each_step(context);
  }
  void on_validation_end(training::Context& context) override {
    validations.push_back(context.state.step);
  }
  void on_validation_batch(training::Context& context) override {
    ++validation_batches;
    if (each_validation_batch) each_validation_batch(context);
  }
  void on_epoch_end(training::Context& context) override { epochs.push_back(context.state.step); }
  std::vector<double> losses;
  std::vector<int64_t> validations, epochs;
  int64_t validation_batches = 0;
  std::function<void(training::Context&)> each_batch, each_step, each_validation_batch;
};

/// Keeps what a logger gets.
struct Log final : training::Logger {
  struct Row {
    training::Metrics metrics;
    int64_t step;
  };
  void log(const training::Metrics& metrics, int64_t, int64_t step) override {
    rows.push_back({metrics, step});
  }
  void log_caption(const std::string& name, const std::string& caption) override {
    captions[name] = caption;
  }
  void log_image(const std::string& name, const io::Image& image, int64_t) override {
    images[name] = image;
  }
  void log_findings(const report::Findings& found, int64_t) override { findings = found; }
  void log_histogram(const std::string& name, const io::Histogram& values, int64_t) override {
    histograms[name] = values;
  }
  void log_text(const std::string& name, const std::string& text, int64_t) override {
    texts[name] = text;
  }
  /// The values of a metric, by step.
  std::map<int64_t, double> values(const std::string& name) const {
    std::map<int64_t, double> found;
    for (const Row& row : rows) {
      if (row.metrics.count(name) != 0) found[row.step] = row.metrics.at(name);
    }
    return found;
  }
  std::vector<Row> rows;
  std::map<std::string, io::Image> images;
  std::map<std::string, io::Histogram> histograms;
  std::map<std::string, std::string> texts, captions;
  report::Findings findings;
};

/// A whole training: `options` of the trainer in YAML.
struct Tiny {
  explicit Tiny(const std::string& options,
                const std::string& callbacks = "{}",
                double dropout = 0,
                const std::string& optimizer = "{_target_: AdamW, lr: 0.1}",
                const std::string& scheduler = "{_target_: CosineAnnealingLR, warmup_steps: 2}",
                training::Processes* processes = nullptr) {
    at::manual_seed(3);
    parsed = trainer_options("{enable_progress_bar: false, " + options + "}");
    task = std::make_shared<TinyTask>(dropout);
    task->model().to(training::precision_of(parsed.precision).parameters);
    this->optimizer = make<training::Optimizer>(optimizer);
    this->scheduler = make<training::Scheduler>(scheduler);
    this->optimizer->attach(task->model().named_parameters().pairs());
    recorder = std::make_shared<Recorder>();
    recorder->name = "recorder";
    std::vector<std::shared_ptr<training::Callback>> all;
    const config::Node nodes = config::parse_yaml(callbacks, "test");
    for (const auto& [name, node] : nodes.map) {
      all.push_back(make<training::Callback>(node));
      all.back()->name = name;
    }
    all.push_back(recorder);
    log = std::make_shared<Log>();
    trainer =
        std::make_unique<training::Trainer>(parsed,
                                            *task,
                                            *this->optimizer,
                                            *this->scheduler,
                                            all,
                                            std::vector<std::shared_ptr<training::Logger>>{log},
                                            config::Node::make_map(),
                                            processes);
  }
  Tiny& fit(int64_t images = 10, int64_t batch_size = 2, int64_t valid = 3, int64_t workers = 0) {
    data::DataLoader train = loader(images, batch_size, true, workers, parsed.limit_train_batches),
                     test = loader(valid, 1, false, 0, parsed.limit_val_batches);
    trainer->fit(train, test);
    return *this;
  }
  std::vector<double> weights() const {
    std::vector<double> values;
    for (const auto& [name, tensor] : nn::state_of(task->model()))
      values.push_back(tensor.detach().flatten()[0].item<double>());
    return values;
  }
  const training::TrainState& state() const { return trainer->state(); }

  training::TrainerOptions parsed;
  std::shared_ptr<TinyTask> task;
  std::shared_ptr<training::Optimizer> optimizer;
  std::shared_ptr<training::Scheduler> scheduler;
  std::shared_ptr<Recorder> recorder;
  std::shared_ptr<Log> log;
  std::unique_ptr<training::Trainer> trainer;
};

}  // namespace cytra::test
