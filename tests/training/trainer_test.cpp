// The loop: how long it trains, when it validates, what it does about bad numbers.
#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/signals.h"
#include "tests/support/at_least.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"
#include "tests/training/fixture.h"

namespace cytra {
namespace {

using test::Tiny;
using Steps = std::vector<int64_t>;
const std::string kConstant = "{_target_: ConstantLR, factor: 1}";

TEST(Trainer, StopsAfterItsTime) {
  Tiny tiny("max_epochs: -1, max_time: '00:00:00:00.5'", "{}", 0, "{_target_: SGD}", kConstant);
  tiny.fit();
  EXPECT_GT(tiny.state().step, 0);
}

// The first validation is whole; one that begins after max_time is left.
TEST(Trainer, ItsTimeEndsAValidation) {
  Tiny tiny("max_epochs: -1, max_time: {seconds: 1}", "{}", 0, "{_target_: SGD}", kConstant);
  const auto sleep = [](int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  };
  tiny.recorder->each_step = [&](training::Context& context) {
    if (context.state.step == 7) sleep(1100);  // of the second epoch of 5
  };
  tiny.fit();
  ASSERT_EQ(tiny.recorder->validations.size(), 1U);
  EXPECT_EQ(tiny.state().validated_at, tiny.recorder->validations.front());
}

/// What a loop does.
struct Loop {
  int64_t steps = 0, train_batches = 0, sanity_batches = 0, validation_batches = 0;
  Steps validations;
};

// 10 images in batches of 2, 3 to validate; what lightning.Trainer does with the same options, but
// for what is listed here.
TEST(Trainer, TrainsAndValidatesWhenLightningDoes) {
  const config::Node golden =
      config::load_yaml(std::string(CYTRA_SOURCE_DIR) + "/tests/golden/lightning.json");
  for (const config::Node& node : test::at_least(37, golden.at("cases").list)) {
    const std::string options = config::to_json(node.at("options"));
    SCOPED_TRACE(options);
    Tiny tiny(options.substr(1, options.size() - 2));
    if (const int64_t stop = node.get<int64_t>("stop", 0)) {
      tiny.recorder->each_step = [stop](training::Context& context) {
        context.stop = context.state.step >= stop;
      };
    }
    tiny.fit();
    Loop expected{node.get<int64_t>("steps"),
                  node.get<int64_t>("train_batches"),
                  node.get<int64_t>("sanity_batches"),
                  node.get<int64_t>("validation_batches"),
                  node.get<Steps>("validations")};
    // Nothing to train: no validation to be checked.
    if (expected.steps == 0) expected.sanity_batches = 0;
    // Lightning validates between the batches of a step, with the gradients of some of them.
    if (options == R"({"max_epochs":2,"accumulate_grad_batches":2,"val_check_interval":3})")
      expected.validations = {2, 5};
    // The final weights are always validated.
    const int64_t whole = tiny.parsed.limit_val_batches.of(3, "");
    if (whole > 0 &&
        (expected.validations.empty() || expected.validations.back() != expected.steps)) {
      expected.validations.push_back(expected.steps);
      expected.validation_batches += whole;
    }
    EXPECT_EQ(tiny.state().step, expected.steps);
    EXPECT_EQ(tiny.task->steps, expected.train_batches);
    EXPECT_EQ(tiny.recorder->validations, expected.validations);
    EXPECT_EQ(tiny.recorder->validation_batches, expected.validation_batches);
    EXPECT_EQ(tiny.task->validation_batches - tiny.recorder->validation_batches,
              expected.sanity_batches);
  }
}

TEST(Trainer, ChecksTheValidationFirst) {
  Tiny tiny("max_epochs: 1, num_sanity_val_steps: 2");
  tiny.recorder->each_step = [&](training::Context& context) {
    if (context.state.step > 1) return;
    EXPECT_EQ(tiny.task->validation_batches, 2);
  };
  tiny.fit();
  EXPECT_EQ(tiny.task->validation_batches, 2 + 3);
  EXPECT_EQ(tiny.recorder->validations, Steps{5});
}

// 5 batches in groups of 2: the last group is one batch, and weighs as a whole step.
TEST(Trainer, AccumulatedBatchesAreOneLargeBatch) {
  const std::string sgd = "{_target_: SGD, lr: 0.05}", constant = kConstant;
  const Tiny large =
      std::move(Tiny("max_epochs: 2, num_sanity_val_steps: 0", "{}", 0, sgd, constant).fit(10, 4));
  const Tiny grouped = std::move(
      Tiny("max_epochs: 2, accumulate_grad_batches: 2", "{}", 0, sgd, constant).fit(10, 2));
  ASSERT_EQ(large.state().step, grouped.state().step);
  for (std::size_t w = 0; w < 2; ++w)
    EXPECT_NEAR(large.weights()[w], grouped.weights()[w], 1e-6) << w;
  for (std::size_t s = 0; s < large.recorder->losses.size(); ++s)
    EXPECT_NEAR(large.recorder->losses[s], grouped.recorder->losses[s], 1e-5) << s;
}

TEST(Trainer, ALossThatIsNotFiniteStopsIt) {
  Tiny tiny("max_epochs: 2");
  tiny.task->factor = [](int64_t step) { return step == 4 ? INFINITY : 1; };
  std::vector<double> before;
  tiny.recorder->each_step = [&](training::Context&) { before = tiny.weights(); };
  try {
    tiny.fit();
    FAIL();
  } catch (const DivergedError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("the loss is inf at step 4 (samples: "), std::string::npos) << what;
    EXPECT_NE(what.find(tiny.task->seen[6] + ", " + tiny.task->seen[7]), std::string::npos) << what;
  }
  EXPECT_EQ(tiny.weights(), before);  // the step was not applied
}

TEST(Trainer, SkippedStepsLeaveWeightsAndScheduleAlone) {
  const std::string schedule = "{_target_: CosineAnnealingLR, warmup_steps: 3}";
  Tiny tiny("max_epochs: 2, on_nonfinite: skip", "{}", 0, "{_target_: AdamW, lr: 0.1}", schedule);
  tiny.task->factor = [](int64_t step) { return step == 4 ? NAN : 1; };
  std::vector<std::vector<double>> weights;
  std::vector<double> rates;
  tiny.recorder->each_step = [&](training::Context& context) {
    weights.push_back(tiny.weights());
    rates.push_back(context.lr);
  };
  tiny.fit();
  EXPECT_EQ(tiny.state().step, 10);
  EXPECT_EQ(tiny.state().skipped, 1);
  EXPECT_EQ(weights[3], weights[2]);
  EXPECT_NE(weights[4], weights[3]);
  EXPECT_EQ(rates[3], rates[4]);  // the schedule did not move on
  EXPECT_NE(rates[4], rates[5]);
}

TEST(Trainer, TooManySkippedStepsInARowEndTheRun) {
  Tiny tiny("max_epochs: 100, on_nonfinite: skip, log_every_n_steps: 1000");
  tiny.task->factor = [](int64_t step) { return step > 10 ? NAN : 1; };
  EXPECT_THROW(tiny.fit(), DivergedError);
  EXPECT_EQ(tiny.state().step, 110);
}

TEST(Trainer, ADumpGoesOnWithTheVeryStep) {
  const test::TmpDir dir;
  const auto diverging = [&](const std::string& more) {
    auto tiny = std::make_unique<Tiny>("max_epochs: 2, on_nonfinite: dump" + more, "{}", 0.3);
    return tiny;
  };
  auto first = diverging("");
  first->task->factor = [](int64_t step) { return step == 4 ? INFINITY : 1; };
  const std::string before = std::filesystem::current_path().string();
  std::filesystem::current_path(dir.path());
  try {
    first->fit();
    FAIL();
  } catch (const DivergedError& error) {
    EXPECT_NE(std::string(error.what()).find("nonfinite/step_4.ckpt"), std::string::npos);
  }
  const io::SafetensorsFile batch("nonfinite/step_4.safetensors");
  EXPECT_EQ(batch.metadata().at("0.ids"), first->task->seen[6] + "\n" + first->task->seen[7]);
  EXPECT_EQ(batch.tensors().at("0.x").shape, (std::vector<int64_t>{2, 1, 4, 4}));
  auto again = diverging("");
  again->trainer->resume("nonfinite/step_4.ckpt");
  std::filesystem::current_path(before);
  again->task->factor = [](int64_t step) { return step == 1 ? INFINITY : 1; };
  std::filesystem::current_path(dir.path());
  EXPECT_THROW(again->fit(), DivergedError);
  std::filesystem::current_path(before);
  EXPECT_EQ(again->task->seen,
            (std::vector<std::string>{first->task->seen[6], first->task->seen[7]}));
  EXPECT_EQ(again->state().step, 4);
}

TEST(Trainer, EveryPrecisionLearns) {
  const auto loss_with = [](const std::string& precision) {
    Tiny tiny("max_epochs: 40, log_every_n_steps: 1000, check_val_every_n_epoch: 40, precision: " +
              precision);
    return tiny.fit().state().metrics.at("val/loss");
  };
  const double single = loss_with("32");
  EXPECT_LT(single, 0.3);  // it begins above 5
  EXPECT_EQ(loss_with("32-true"), single);
  EXPECT_NEAR(loss_with("64"), single, 1e-4);
  for (const std::string precision : {"16-mixed", "bf16-mixed", "16-true", "bf16-true"})
    EXPECT_NEAR(loss_with(precision), single, 0.1) << precision;
}

TEST(Trainer, ACallbackThatThrowsIsNamed) {
  const test::TmpDir dir;
  Tiny tiny("max_epochs: 2",
            "{saver: {_target_: ModelCheckpoint, every_n_train_steps: 1, dirpath: '" + dir.path() +
                "'}}");
  tiny.recorder->each_step = [](training::Context& context) {
    if (context.state.step == 4) throw std::out_of_range("no such thing");
  };
  try {
    tiny.fit();
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "callbacks.recorder failed in on_step_end: no such thing");
  }
  Tiny resumed("max_epochs: 2");
  resumed.trainer->resume(dir / "last.ckpt");
  EXPECT_EQ(resumed.state().step, 4);
}

TEST(Trainer, AfterAHookThatFailsNoBatchIsLeft) {
  struct Watch final : training::Callback {
    void on_exception(training::Context& context, const std::string&) override {
      was_called = true;
      batch = context.batch;
    }
    bool was_called = false;
    const data::Batch* batch = nullptr;
  };
  for (const bool is_in_validation : {false, true}) {
    test::Tiny tiny("max_epochs: 1, num_sanity_val_steps: 0");
    const auto fail = [](training::Context&) { throw std::runtime_error("failed"); };
    (is_in_validation ? tiny.recorder->each_validation_batch : tiny.recorder->each_batch) = fail;
    const auto watch = std::make_shared<Watch>();
    training::Trainer trainer(
        tiny.parsed, *tiny.task, *tiny.optimizer, *tiny.scheduler, {tiny.recorder, watch});
    data::DataLoader images = test::loader(4, 2, true), valid = test::loader(2, 1, false);
    EXPECT_THROW(trainer.fit(images, valid), std::runtime_error);
    EXPECT_TRUE(watch->was_called);
    EXPECT_EQ(watch->batch, nullptr);
  }
}

// A hook that waits for something is broken off by a signal: fit() returns, and may be called
// again.
TEST(Trainer, AfterAHookThatIsInterruptedNoBatchIsLeft) {
  struct Watch final : training::Callback {
    void on_fit_start(training::Context& context) override { batches.push_back(context.batch); }
    std::vector<const data::Batch*> batches;
  };
  test::Tiny tiny("max_epochs: 1");
  tiny.recorder->each_batch = [](training::Context&) { throw Interrupted("interrupted", 143); };
  const auto watch = std::make_shared<Watch>();
  training::Trainer trainer(
      tiny.parsed, *tiny.task, *tiny.optimizer, *tiny.scheduler, {tiny.recorder, watch});
  data::DataLoader images = test::loader(4, 2, true), valid = test::loader(2, 1, false);
  trainer.fit(images, valid);
  trainer.fit(images, valid);
  EXPECT_EQ(watch->batches, (std::vector<const data::Batch*>{nullptr, nullptr}));
}

TEST(Trainer, AMissingBatchTakesNoWeightAndNoValidation) {
  struct Broken final : data::Transform {
    void apply(data::Sample& sample, Rng&) const override {
      if (sample.id == "1") throw DataError("1: damaged");
    }
  };
  const auto fit = [](const std::string& options) {
    Tiny tiny("max_epochs: 1, " + options,
              "{}",
              0,
              "{_target_: SGD, lr: 0}",
              "{_target_: ConstantLR, factor: 1.0}");
    data::DataLoaderSpec spec = test::loader_spec(6, 1, /*shuffle=*/false);
    spec.options.on_error = "skip";
    spec.transforms.insert(spec.transforms.begin(), std::make_shared<Broken>());
    spec.transforms[0]->name = "Broken";
    data::DataLoader train(std::move(spec)), valid = test::loader(1, 1, false);
    tiny.trainer->fit(train, valid);
    return tiny;
  };
  const Tiny one = fit("val_check_interval: 2"), two = fit("accumulate_grad_batches: 2");
  EXPECT_EQ(one.recorder->validations, (std::vector<int64_t>{2, 3, 5}));
  EXPECT_DOUBLE_EQ(two.recorder->losses[0], one.recorder->losses[0]);
}

TEST(Trainer, PlateauWithoutAValidationLooksAtEveryEpoch) {
  Tiny tiny("max_epochs: 4, limit_val_batches: 0, log_every_n_steps: 1",
            "{}",
            0,
            "{_target_: SGD, lr: 0.001}",
            "{_target_: ReduceLROnPlateau, monitor: train/loss_epoch, patience: 0, threshold: 1e6, "
            "factor: 0.5}");
  tiny.fit(4, 2, 0);
  EXPECT_EQ(tiny.log->values("step_time").count(1), 0U) << "it is not over";
  EXPECT_EQ(tiny.log->values("step_time").count(2), 1U);
  const std::map<int64_t, double> rates = tiny.log->values("lr");
  EXPECT_DOUBLE_EQ(rates.at(1), 0.001);
  EXPECT_LT(rates.at(8), 0.0006);
}

TEST(Trainer, AnIntervalBeyondTheEpochNeedsToCountOverEpochs) {
  EXPECT_THROW(Tiny("max_epochs: 2, val_check_interval: 6").fit(), ConfigError);  // 5 batches
  Tiny tiny("max_epochs: 2, val_check_interval: 6, check_val_every_n_epoch: null");
  EXPECT_EQ(tiny.fit().recorder->validations, (std::vector<int64_t>{6, 10}));
}

/// The message about options that were changed in C++.
template <class Change>
std::string error_of(const Change& change) {
  const Tiny tiny("max_epochs: 1");
  training::TrainerOptions options = tiny.parsed;
  change(options);
  return message_of<ConfigError>(
      [&] { training::Trainer trainer(options, *tiny.task, *tiny.optimizer, *tiny.scheduler); });
}

TEST(Trainer, OptionsSetInCppAreChecked) {
  using Options = training::TrainerOptions;
  const auto begins = [](const std::string& text, const std::string& with) {
    EXPECT_EQ(text.substr(0, with.size()), with);
  };
  EXPECT_EQ(error_of([](Options&) {}), "");
  begins(error_of([](Options& o) { o.accumulate_grad_batches = 0; }),
         "trainer.accumulate_grad_batches: expected a value from 1 to ");
  begins(error_of([](Options& o) { o.log_every_n_steps = 0; }),
         "trainer.log_every_n_steps: expected a value from 1 to ");
  begins(error_of([](Options& o) { o.gradient_clip_algorithm = "norms"; }),
         "trainer.gradient_clip_algorithm: expected one of norm, value, got 'norms'.");
  begins(error_of([](Options& o) { o.on_nonfinite = "ignore"; }), "trainer.on_nonfinite: ");
  begins(error_of([](Options& o) { o.strategy = "fsdp"; }), "trainer.strategy: ");
  begins(error_of([](Options& o) { o.precision = "8"; }), "trainer.precision: ");
  begins(error_of([](Options& o) { o.check_val_every_n_epoch = 0; }),
         "trainer.check_val_every_n_epoch: ");
  begins(error_of([](Options& o) { o.grad_scaler.growth_interval = 0; }),
         "trainer.grad_scaler.growth_interval: ");
  begins(error_of([](Options& o) { o.limit_train_batches.share = 1.5; }),
         "trainer.limit_train_batches: ");
  begins(error_of([](Options& o) {
           o.val_check_interval = {0, 0};
         }),
         "trainer.val_check_interval: ");
  begins(error_of([](Options& o) { o.deterministic_mode = "maybe"; }), "trainer.deterministic: ");
  begins(error_of([](Options& o) { o.devices.count = -2; }), "trainer.devices");
}

TEST(TrainerOptions, WhatIsSetAfterParsingCounts) {
  auto options = test::trainer_options(
      "{devices: auto, limit_train_batches: 3, fast_dev_run: false, deterministic: warn}");
  options.devices.count = 2;
  options.limit_train_batches = {-1, 0.5};
  options.deterministic_mode = "true";
  options.check();
  EXPECT_EQ(options.devices.count, 2);
  EXPECT_EQ(options.limit_train_batches.of(10, ""), 5);
  EXPECT_EQ(options.deterministic_mode, "true");
}

TEST(TrainerOptions, TakeWholeNumbersAndShares) {
  const auto options = test::trainer_options(
      "{limit_train_batches: 3, limit_val_batches: 0.5, val_check_interval: 0.25, "
      "max_time: {hours: 1, minutes: 30}, deterministic: warn}");
  EXPECT_EQ(options.limit_train_batches.of(10, ""), 3);
  EXPECT_EQ(options.limit_train_batches.of(2, ""), 2);
  EXPECT_EQ(options.limit_val_batches.of(5, ""), 2);
  EXPECT_EQ(options.max_seconds, 5400);
  EXPECT_EQ(options.deterministic_mode, "warn");
  EXPECT_EQ(test::trainer_options("{limit_train_batches: 1}").limit_train_batches.of(9, ""), 1);
  EXPECT_EQ(test::trainer_options("{limit_train_batches: 1.0}").limit_train_batches.of(9, ""), 9);
  EXPECT_THROW(test::trainer_options("{limit_val_batches: 0.1}").limit_val_batches.of(5, "key"),
               ConfigError);
  for (const std::string wrong : {"{limit_train_batches: 1.5}",
                                  "{limit_train_batches: some}",
                                  "{val_check_interval: 0}",
                                  "{max_time: 12:00}",
                                  "{max_time: {hour: 1}}",
                                  "{deterministic: maybe}",
                                  "{fast_dev_run: -3}",
                                  "{check_val_every_n_epoch: null}",
                                  "{max_epochs: -1}"}) {
    EXPECT_THROW(test::trainer_options(wrong), ConfigError) << wrong;
  }
}

}  // namespace
}  // namespace cytra
