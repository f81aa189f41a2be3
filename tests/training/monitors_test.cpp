// The callbacks that watch a training, or hold some of it still.
#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>
#include <torch/nn/modules/batchnorm.h>

#include "base/error.h"
#include "base/files.h"
#include "base/progress.h"
#include "base/strings.h"
#include "base/timers.h"
#include "tests/support/at_least.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"
#include "tests/training/fixture.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using test::Tiny;

const char* const kConstantFactor = "{_target_: ConstantLR, factor: 1}";
const char* const kEachStep = "max_epochs: 2, num_sanity_val_steps: 0, log_every_n_steps: 1";

TEST(LearningRateMonitor, NamesRatesAsLightningDoes) {
  const auto golden = nlohmann::json::parse(
      read_file(std::string(CYTRA_SOURCE_DIR) + "/tests/golden/callbacks.json"));
  const std::map<std::string, std::string> optimizers{
      {"AdamW", "{_target_: AdamW, lr: 0.1, weight_decay: 0.5, betas: [0.8, 0.99]}"},
      {"SGD", "{_target_: SGD, lr: 0.1, momentum: 0.7}"},
      {"AdamW groups",
       "{_target_: AdamW, lr: 0.1, weight_decay: 0.5, param_groups: [{params: bias, lr_scale: 0.5, "
       "weight_decay: 0.25}]}"}};
  for (const auto& one : test::at_least(3, golden.at("rates"))) {
    SCOPED_TRACE(one.at("name"));
    Tiny tiny(
        "max_steps: 1",
        "{lr: {_target_: lightning.pytorch.callbacks.LearningRateMonitor, log_momentum: true, "
        "log_weight_decay: true}}",
        0,
        optimizers.at(one.at("name")),
        kConstantFactor);
    tiny.fit();
    training::Metrics found;
    for (const auto& [name, value] : tiny.state().metrics) {
      if (name.starts_with("lr-")) found[name] = value;
    }
    const auto expected = one.at("rates").get<training::Metrics>();
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [name, value] : expected) EXPECT_DOUBLE_EQ(found[name], value) << name;
  }
}

TEST(LearningRateMonitor, LogsPerStepOrEpoch) {
  const auto steps = [](const std::string& options) {
    Tiny tiny("max_epochs: 3, log_every_n_steps: 4",
              "{lr: {_target_: LearningRateMonitor, " + options + "}}");
    std::vector<int64_t> found;
    for (const auto& [step, value] : tiny.fit().log->values("lr-AdamW")) found.push_back(step);
    return found;
  };
  EXPECT_EQ(steps("logging_interval: step"), (std::vector<int64_t>{1, 4, 8, 12}));
  EXPECT_EQ(steps("logging_interval: epoch"), (std::vector<int64_t>{1, 6, 11}));
  EXPECT_THROW(steps("logging_interval: batch"), ConfigError);
}

TEST(ModelSummary, IsToldOnceAndChangesNothing) {
  Tiny with("max_epochs: 2", "{summary: {_target_: RichModelSummary, max_depth: -1}}", 0.3);
  const std::vector<double> weights = with.fit().weights();
  EXPECT_EQ(weights, Tiny("max_epochs: 2", "{}", 0.3).fit().weights());
  ASSERT_EQ(with.log->texts.count("model"), 1U);
  EXPECT_NE(with.log->texts["model"].find("Conv2d"), std::string::npos) << with.log->texts["model"];
  EXPECT_NE(with.log->texts["model"].find("1x1x4x4"), std::string::npos)
      << with.log->texts["model"];
}

TEST(ProgressBar, SetsHowProgressIsShown) {
  test::TinyTask task;
  make<training::Callback>("{_target_: TQDMProgressBar, refresh_rate: 20, leave: true}")
      ->attach(task);
  EXPECT_EQ(progress_style().refresh_rate, 20);
  EXPECT_TRUE(progress_style().leave);
  make<training::Callback>("{_target_: RichProgressBar}")->attach(task);
  EXPECT_EQ(progress_style().refresh_rate, 1);
  EXPECT_FALSE(progress_style().leave);
}

TEST(Timer, CountsTheTimeBeforeAResume) {
  const std::string timer = "{_target_: Timer, duration: {hours: 1}, interval: step}";
  EXPECT_EQ(Tiny("max_epochs: 2", "{timer: " + timer + "}").fit().state().step, 10);
  const auto callback = make<training::Callback>(timer);
  callback->load(config::parse_yaml("{seconds: 3601}", "test"));
  EXPECT_GT(callback->state().get<double>("seconds"), 3600);
  test::TinyTask task;
  const auto optimizer = make<training::Optimizer>("{_target_: AdamW}");
  const std::vector<std::shared_ptr<training::Logger>> loggers;
  training::TrainState state;
  training::Context context{state, task, *optimizer, loggers};
  callback->on_fit_start(context);
  EXPECT_TRUE(context.stop);
  context.stop = false;
  callback->on_epoch_end(context);
  EXPECT_FALSE(context.stop) << "interval: step";
  callback->on_step_end(context);
  EXPECT_TRUE(context.stop);
}

TEST(ThroughputMonitor, CountsBatchesAndImagesOverAWindow) {
  Tiny tiny(kEachStep, "{speed: {_target_: ThroughputMonitor, window_size: 3}}");
  tiny.fit();
  auto time = tiny.log->values("train/time"), batches = tiny.log->values("train/batches"),
       images = tiny.log->values("train/samples"),
       rate = tiny.log->values("train/device/batches_per_sec"),
       image_rate = tiny.log->values("train/device/samples_per_sec");
  ASSERT_EQ(time.size(), 10U);
  EXPECT_EQ(rate.size(), 8U) << "from the third step on";
  for (const auto& [step, value] : rate) {
    EXPECT_EQ(batches[step], static_cast<double>(step));
    EXPECT_EQ(images[step], static_cast<double>(2 * step));
    EXPECT_NEAR(value * (time[step] - time[step - 2]), 2, 1e-9);
    EXPECT_NEAR(image_rate[step], 2 * value, 1e-9 * value);
  }
  EXPECT_EQ(tiny.state().metrics.count("train/time"), 0U) << "no part of a checkpoint";
}

TEST(DeviceStatsMonitor, TellsWhatTheProcessTakes) {
  Tiny tiny(kEachStep, "{stats: {_target_: DeviceStatsMonitor}}");
  const auto memory = tiny.fit().log->values("device/rss_mb");
  ASSERT_EQ(memory.size(), 10U);
  EXPECT_GT(memory.at(1), 10);
  EXPECT_LT(memory.at(1), 1e6);
  EXPECT_GE(tiny.log->values("device/cpu_percent").at(10), 0);
  for (const auto& [step, ipc] : tiny.log->values("device/ipc")) EXPECT_GT(ipc, 0) << step;
  EXPECT_TRUE(tiny.log->values("device/gpu_percent").empty()) << "a CPU's training";
}

TEST(TimerLogger, LogsTheTimesOfScopes) {
  const config::Node nothing = config::Node::make_map();
  make<training::Logger>("{_target_: TimerLogger}")->open({"", nothing});
  Tiny tiny(kEachStep);
  tiny.fit();
  const auto all = timers::statistics();
  timers::enable(false);
  timers::clear();
  for (const char* name : {"forward", "backward", "optimizer", "callbacks.recorder.on_step_end"}) {
    ASSERT_EQ(all.count(name), 1U) << name;
    EXPECT_EQ(all.at(name).count, 10) << name;
  }
  EXPECT_EQ(all.at("data.load").count, 26) << "10 images and 3 to validate, twice each";
  const auto counts = tiny.log->values("timer/forward/count"),
             means = tiny.log->values("timer/forward/mean_s"),
             p95s = tiny.log->values("timer/forward/p95_s");
  EXPECT_EQ(counts.at(10), 10);
  EXPECT_GT(means.at(10), 0);
  EXPECT_GT(p95s.at(10), 0);
  EXPECT_EQ(tiny.state().metrics.count("timer/forward/count"), 0U) << "no part of a checkpoint";
  Tiny off(kEachStep);
  off.fit();
  EXPECT_TRUE(off.log->values("timer/forward/count").empty());
}

TEST(GradientLogging, LogsNormsBeforeClippingAndScaling) {
  for (const std::string precision : {"32", "16-mixed"}) {
    SCOPED_TRACE(precision);
    Tiny tiny(
        std::string(kEachStep) +
            ", gradient_clip_val: 0.01, grad_scaler: {init_scale: 8}, precision: " + precision,
        "{grads: {_target_: cyto_dl.callbacks.GradientLoggingCallback, grouping_level: -1, "
        "histogram_every_n_steps: 5}}");
    tiny.fit();
    const auto total = tiny.log->values("grad_2.0_norm_total"),
               expected = tiny.log->values("grad_norm"),
               weight = tiny.log->values("grad_2.0_norm/conv.weight"),
               bias = tiny.log->values("grad_2.0_norm/conv.bias");
    ASSERT_EQ(total.size(), 10U);
    for (const auto& [step, value] : total) {
      EXPECT_NEAR(value, expected.at(step), 1e-5 * value) << step;
      EXPECT_NEAR(std::hypot(weight.at(step), bias.at(step)), value, 1e-9);
    }
    EXPECT_EQ(tiny.log->histograms.size(), 4U) << "weights and gradients of weight and bias";
    const io::Histogram& histogram = tiny.log->histograms.at("gradients/conv.weight");
    EXPECT_EQ(histogram.count, 1);
    EXPECT_NEAR(std::abs(histogram.sum), weight.at(10), 1e-5) << "of step 10";
  }
  Tiny grouped(kEachStep, "{grads: {_target_: GradientLogging, grouping_level: 1}}");
  grouped.fit();
  EXPECT_EQ(grouped.log->values("grad_2.0_norm/conv"), grouped.log->values("grad_2.0_norm_total"));
}

TEST(OnExceptionCheckpoint, KeepsTheLastStep) {
  const test::TmpDir dir;
  Tiny tiny("max_epochs: 2",
            "{e: {_target_: OnExceptionCheckpoint, dirpath: '" + (dir / "c") + "'}}");
  tiny.recorder->each_step = [](training::Context& context) {
    if (context.state.step == 3) throw std::runtime_error("on purpose");
  };
  EXPECT_THROW(tiny.fit(), std::runtime_error);
  Tiny again("max_epochs: 2");
  again.trainer->resume(dir / "c/on_exception.ckpt", false);
  EXPECT_EQ(again.state().step, 3);
  EXPECT_EQ(again.weights(), tiny.weights());
}

TEST(OnExceptionCheckpoint, WhereItFailsTheOthersSave) {
  const test::TmpDir dir;
  write_file(dir / "file", "in the way");
  Tiny tiny("max_epochs: 2",
            "{bad: {_target_: OnExceptionCheckpoint, dirpath: '" + (dir / "file/x") +
                "'}, saver: {_target_: ModelCheckpoint, dirpath: '" + (dir / "c") + "'}}");
  tiny.recorder->each_step = [](training::Context& context) {
    if (context.state.step == 3) throw std::runtime_error("on purpose");
  };
  EXPECT_THROW(tiny.fit(), std::runtime_error);
  EXPECT_TRUE(std::filesystem::exists(dir / "c/last.ckpt"));
}

TEST(LayerFreeze, HoldsParametersStill) {
  Tiny tiny("max_epochs: 2", "{freeze: {_target_: cyto_dl.callbacks.LayerFreeze, contains: bias}}");
  const std::vector<double> before = tiny.weights();
  const std::vector<double> after = tiny.fit().weights();
  const auto parameters = tiny.task->model().named_parameters();
  EXPECT_FALSE(parameters["conv.bias"].requires_grad());
  int changed = 0;
  for (std::size_t i = 0; i < before.size(); ++i) changed += before[i] != after[i];
  EXPECT_EQ(changed, 1);
}

TEST(LayerFreeze, LeavesTheOptimizerNothingToKeep) {
  test::TinyTask task;
  make<training::Callback>("{_target_: LayerFreeze, modules: conv, excludes: [weight]}")
      ->prepare(task.model());
  const auto optimizer = make<training::Optimizer>("{_target_: AdamW}");
  optimizer->attach(task.model().named_parameters().pairs());
  for (const auto& [name, tensor] : optimizer->state())
    EXPECT_EQ(name.find("bias"), std::string::npos) << name;
  EXPECT_EQ(optimizer->state().count("exp_avg.conv.weight"), 1U);
}

TEST(LayerFreeze, SaysWhatThereIs) {
  test::TinyTask task;
  const auto freeze = [&](const std::string& options) {
    return message_of<ConfigError>([&] {
      make<training::Callback>("{_target_: LayerFreeze, " + options + "}")->prepare(task.model());
    });
  };
  EXPECT_NE(freeze("modules: cov, contains: b").find("Did you mean 'conv'?"), std::string::npos);
  EXPECT_NE(freeze("contains: x").find("'conv.weight'"), std::string::npos);
  EXPECT_NE(freeze("modules: conv").find("contains, excludes"), std::string::npos);
}

struct Normed final : nn::Model {
  Normed() : Model({}) {
    first = register_module("first", torch::nn::BatchNorm2d(1));
    second = register_module("second", torch::nn::BatchNorm2d(1));
  }
  at::Tensor forward(const at::Tensor& image) override { return second(first(image)); }
  std::vector<int64_t> divisor() const override { return {1, 1}; }
  int64_t in_channels() const override { return 1; }
  int64_t spatial_dims() const override { return 2; }
  int64_t out_channels() const override { return 1; }
  torch::nn::BatchNorm2d first{nullptr}, second{nullptr};
};
struct NormedTask final : training::Task {
  nn::Model& model() override { return *net; }
  Tensor training_step(const data::Batch&) override { return {}; }
  void validation_step(const data::Batch&) override {}
  training::Metrics validation_end() override { return {}; }
  std::shared_ptr<Normed> net = std::make_shared<Normed>();
};

TEST(LayerFreeze, KeepsRunningStatisticsToo) {
  NormedTask task;
  const auto callback = make<training::Callback>("{_target_: LayerFreeze, contains: first}");
  callback->prepare(task.model());
  task.net->train();
  const auto optimizer = make<training::Optimizer>("{_target_: AdamW}");
  const std::vector<std::shared_ptr<training::Logger>> loggers;
  training::TrainState state;
  training::Context context{state, task, *optimizer, loggers};
  callback->on_batch_start(context);
  task.net->forward(at::randn({2, 1, 4, 4}) + 5);
  EXPECT_EQ(task.net->first->running_mean.item<double>(), 0);
  EXPECT_NE(task.net->second->running_mean.item<double>(), 0);
}

TEST(OutlierDetection, MeasuresHowFarAnImageIsFromTheOthers) {
  const test::TmpDir dir;
  Tiny tiny(
      "max_epochs: 3",
      "{far: {_target_: cyto_dl.callbacks.OutlierDetection, layer_names: [conv], n_epochs: 1, "
      "save_dir: '" +
          dir.path() + "'}}",
      0,
      "{_target_: SGD, lr: 0}",
      kConstantFactor);
  std::map<std::string, double> means;  // of the last epoch
  tiny.recorder->each_batch = [&](training::Context& context) {
    const at::Tensor mean = context.batch->at("x").to(at::kDouble).mean({1, 2, 3});
    for (std::size_t i = 0; i < context.batch->ids.size(); ++i)
      means[context.batch->ids[i]] = mean[static_cast<int64_t>(i)].item<double>();
  };
  tiny.fit(9, 2);  // the last batch has one image
  // One channel: the distance is that in standard deviations, whatever the convolution does.
  double sum = 0, squares = 0;
  for (const auto& [id, mean] : means) sum += mean / 9;
  for (const auto& [id, mean] : means) squares += (mean - sum) * (mean - sum) / 8;
  const std::vector<std::string> lines = split(read_file(dir / "outliers.csv"), '\n');
  ASSERT_EQ(lines.size(), 11U);  // with the head, and the end of the last one
  EXPECT_EQ(lines[0], "id,layer,images,mean_distance,max_distance");
  double before = 1e9;
  for (std::size_t i = 1; i < 10; ++i) {
    const std::vector<std::string> cells = split(lines[i], ',');
    const double distance = std::stod(cells[3]);
    const std::string id = cells[0].substr(1, cells[0].size() - 2);
    EXPECT_NEAR(distance, std::abs(means.at(id) - sum) / std::sqrt(squares), 1e-4) << id;
    EXPECT_EQ(cells[2], "1");
    EXPECT_LE(distance, before);
    before = distance;
  }
  EXPECT_NE(message_of<ConfigError>([] {
              Tiny("max_epochs: 1", "{far: {_target_: OutlierDetection, layer_names: [cnv]}}");
            }).find("Did you mean 'conv'?"),
            std::string::npos);
}

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(ImageSaver, ShowsTheFirstImagesNowAndThen) {
  const test::TmpDir dir;
  const std::string saver = "{_target_: cyto_dl.callbacks.ImageSaver, save_dir: '" + dir.path() +
                            "', save_every_n_epochs: 2, num_images: 2, stages: [train, val]}";
  Tiny with("max_epochs: 5", "{saving: " + saver + "}", 0.3);
  const std::vector<double> weights = with.fit().weights();
  EXPECT_EQ(weights, Tiny("max_epochs: 5", "{}", 0.3).fit().weights());
  EXPECT_EQ(files_of(dir / "val_images"),
            (std::vector<std::string>{"001_0.png",
                                      "001_1.png",
                                      "002_0.png",
                                      "002_1.png",
                                      "004_0.png",
                                      "004_1.png",
                                      "005_0.png",
                                      "005_1.png"}));
  EXPECT_EQ(files_of(dir / "train_images"), (std::vector<std::string>{"002_0.png", "004_0.png"}));
  ASSERT_EQ(with.log->images.size(), 5U);
  EXPECT_EQ(files_of(dir / "train_batches"), (std::vector<std::string>{"001_0.png", "001_1.png"}));
  EXPECT_EQ(with.log->images.at("train_batches/1").shape, (std::array<int64_t, 4>{3, 1, 4, 4}))
      << "the second sample of the first batch, without a prediction";
  EXPECT_EQ(with.log->images.at("val_images/1").shape, (std::array<int64_t, 4>{3, 1, 4, 20}));
  const std::string caption = with.log->captions.at("val_images/1");
  EXPECT_NE(caption.find("input | target | prediction, epoch 5"), std::string::npos) << caption;
  EXPECT_THROW(make<training::Callback>("{_target_: ImageSaver, save_dir: x, stages: [valid]}"),
               ConfigError);
}

/// As max_time does, which no number of steps tells ahead.
TEST(ImageSaver, ShowsTheLastValidationOfARunThatIsStopped) {
  const test::TmpDir dir;
  Tiny tiny("max_epochs: 30",
            "{saving: {_target_: ImageSaver, save_dir: '" + dir.path() +
                "', save_every_n_epochs: 10, num_images: 1}}");
  tiny.recorder->each_step = [](training::Context& context) {
    if (context.state.step == 17) context.stop = true;
  };
  tiny.fit();
  EXPECT_EQ(files_of(dir / "val_images"),
            (std::vector<std::string>{"001_0.png", "002_0.png", "003_0.png"}))
      << "those of steps 5, 10 and 17";
}

TEST(Findings, AreThoseOfEachImageAndChangeNoMetric) {
  Tiny tiny("max_epochs: 1");
  tiny.fit();
  const report::Findings& found = tiny.log->findings;
  ASSERT_EQ(found.images.size(), 3U);
  double sum = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found.images[i].name, std::to_string(i));
    sum += found.images[i].metrics.at("loss");
  }
  EXPECT_NE(found.images[0].metrics.at("loss"), found.images[1].metrics.at("loss"));
  EXPECT_NEAR(sum / 3, tiny.state().metrics.at("val/loss"), 1e-12);
  EXPECT_EQ(found.all.metrics.at("loss"), tiny.state().metrics.at("val/loss"));
}

}  // namespace
}  // namespace cytra
