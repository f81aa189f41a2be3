// A training that was killed goes on bit for bit.
#include <chrono>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/run_lock.h"
#include "nn/weights.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"
#include "tests/training/fixture.h"
#include "training/find_checkpoint.h"

namespace cytra {
namespace {

using test::Tiny;

const std::string kOptions =
    "max_epochs: 3, accumulate_grad_batches: 2, val_check_interval: 3, gradient_clip_val: 0.5";

std::string callbacks(const std::string& folder) {
  return "{ema: {_target_: EMAWeightAveraging, decay: 0.8}, "
         "stop: {_target_: EarlyStopping, patience: 100}, "
         "saver: {_target_: ModelCheckpoint, every_n_train_steps: 1, dirpath: '" +
         folder + "'}}";
}

/// One training, stopped at `stop` (0: never) and taken up from `from`.
Tiny run(const std::string& folder, int64_t stop, const std::string& from, int64_t workers) {
  Tiny tiny(kOptions, callbacks(folder), 0.2, "{_target_: SGD, lr: 0.05, momentum: 0.9}");
  if (!from.empty()) {
    tiny.trainer->state().seed = 99;  // the checkpoint's counts
    tiny.trainer->resume(from);
  }
  tiny.recorder->each_step = [stop](training::Context& context) {
    if (context.state.step == stop) throw std::runtime_error("killed");
  };
  try {
    tiny.fit(14, 2, 3, workers);
  } catch (const std::runtime_error&) {
  }
  return tiny;
}

TEST(Resume, IsBitEqualFromEveryStep) {
  const test::TmpDir dir;
  const Tiny whole = run(dir / "whole", 0, "", 0);
  const std::vector<double>& losses = whole.recorder->losses;
  ASSERT_EQ(losses.size(), 12U);  // 7 batches in groups of 2, 3 epochs
  for (int64_t stop = 1; stop < 12; ++stop) {
    const std::string folder = dir / std::to_string(stop);
    const Tiny first = run(folder, stop, "", 2);
    const Tiny second = run(folder + "b", 0, folder + "/last.ckpt", 1);
    std::vector<double> joined = first.recorder->losses;
    ASSERT_GE(joined.size(), static_cast<std::size_t>(stop - 1));
    joined.resize(static_cast<std::size_t>(stop));
    if (first.recorder->losses.size() < static_cast<std::size_t>(stop)) joined.pop_back();
    joined.insert(joined.end(), second.recorder->losses.begin(), second.recorder->losses.end());
    EXPECT_EQ(joined, losses) << stop;
    EXPECT_EQ(second.weights(), whole.weights()) << stop;
    EXPECT_EQ(second.state().metrics, whole.state().metrics) << stop;
    EXPECT_EQ(second.task->seen.size() + static_cast<std::size_t>(first.task->seen.size()),
              whole.task->seen.size())
        << stop;
  }
}

/// What an error leaves behind, in the middle of a group of batches or of a validation.
TEST(Resume, IsBitEqualAfterAnError) {
  const test::TmpDir dir;
  const auto train = [](const std::string& folder,
                        const std::string& from,
                        const std::function<void(test::Recorder&)>& disturb) {
    Tiny tiny(kOptions,
              "{ema: {_target_: EMAWeightAveraging, decay: 0.8}, "
              "saver: {_target_: ModelCheckpoint, monitor: null, dirpath: '" +
                  folder + "'}}",
              0.2);
    if (!from.empty()) tiny.trainer->resume(from);
    disturb(*tiny.recorder);
    try {
      tiny.fit(14, 2, 3);
    } catch (const std::runtime_error&) {
    }
    return tiny;
  };
  const Tiny whole = train(dir / "whole", "", [](test::Recorder&) {});
  const std::size_t validations = whole.recorder->validations.size();
  ASSERT_EQ(validations, 7U);  // after batches 3 and 6 of every epoch of 7, and at the end
  const auto check = [&](const std::string& name, const auto& disturb) {
    SCOPED_TRACE(name);
    const Tiny first = train(dir / name, "", disturb);
    const Tiny second =
        train(dir / (name + "b"), dir / name + "/last.ckpt", [](test::Recorder&) {});
    std::vector<double> losses = first.recorder->losses;
    ASSERT_LT(first.recorder->validations.size(), validations) << "nothing was disturbed";
    losses.insert(losses.end(), second.recorder->losses.begin(), second.recorder->losses.end());
    EXPECT_EQ(losses, whole.recorder->losses);
    EXPECT_EQ(second.weights(), whole.weights());
    std::vector<int64_t> validated = first.recorder->validations;
    validated.insert(
        validated.end(), second.recorder->validations.begin(), second.recorder->validations.end());
    EXPECT_EQ(validated, whole.recorder->validations);
  };
  for (const int batch : {4, 6, 7, 12}) {  // from 1
    check("batch " + std::to_string(batch), [batch](test::Recorder& recorder) {
      recorder.each_batch = [batch, count = 0](training::Context&) mutable {
        if (++count == batch) throw std::runtime_error("killed");
      };
    });
  }
  for (std::size_t validation = 1; validation <= validations; ++validation) {
    check("validation " + std::to_string(validation), [validation](test::Recorder& recorder) {
      recorder.each_validation_batch = [validation, &recorder](training::Context&) {
        if (recorder.validations.size() + 1 == validation) throw std::runtime_error("killed");
      };
    });
  }
}

TEST(Resume, AveragesEveryEpochOnce) {
  const test::TmpDir dir;
  const auto train = [&](int epochs, const std::string& name, const std::string& from) {
    Tiny tiny(fmt::format("max_epochs: {}", epochs),
              "{swa: {_target_: StochasticWeightAveraging, swa_epoch_start: 1}, "
              "saver: {_target_: ModelCheckpoint, monitor: null, dirpath: '" +
                  (dir / name) + "'}}",
              0,
              "{_target_: SGD, lr: 0.05}",
              "{_target_: ConstantLR, factor: 1.0}");
    if (!from.empty()) tiny.trainer->resume(dir / from + "/last.ckpt");
    tiny.fit();
    Tiny again("max_epochs: 1");  // with the averages
    nn::load_weights(dir / name + "/last.ckpt", again.task->model());
    return again.weights();
  };
  const std::vector<double> whole = train(4, "whole", "");
  train(2, "part", "");
  EXPECT_EQ(train(4, "rest", "part"), whole);
}

TEST(Resume, ALongerTrainingSaysThatTheRateJumps) {
  const test::TmpDir dir;
  const auto train = [&](int epochs, const std::string& scheduler) {
    Tiny tiny(
        fmt::format("max_epochs: {}", epochs), "{}", 0, "{_target_: SGD, lr: 0.05}", scheduler);
    if (epochs > 2) tiny.trainer->resume(dir / "a.ckpt");
    testing::internal::CaptureStderr();
    tiny.fit();
    tiny.trainer->save(dir / "a.ckpt");
    return testing::internal::GetCapturedStderr();
  };
  for (const auto& [scheduler, jumps] :
       {std::pair("{_target_: PolynomialLR, total_iters: null}", true),
        std::pair("{_target_: CosineAnnealingLR, T_max: null}", true),
        std::pair("{_target_: ConstantLR, factor: 1.0}", false)}) {
    train(2, scheduler);
    const std::string text = train(4, scheduler);
    EXPECT_EQ(text.find("20 steps in all, and 10 when the checkpoint was saved: the learning rate "
                        "jumps from ") != std::string::npos,
              jumps)
        << scheduler << text;
  }
}

TEST(Resume, CallbacksWithoutANameHaveAStateEach) {
  const test::TmpDir dir;
  const auto train = [&](int epochs, bool is_resumed) {
    Tiny tiny(fmt::format("max_epochs: {}", epochs),
              "{}",
              0,
              "{_target_: SGD, lr: 0.05}",
              "{_target_: ConstantLR, factor: 1.0}");
    const auto first = make<training::Callback>("{_target_: EMAWeightAveraging, decay: 0.5}"),
               second = make<training::Callback>("{_target_: EMAWeightAveraging, decay: 0.9}");
    training::Trainer trainer(
        tiny.parsed, *tiny.task, *tiny.optimizer, *tiny.scheduler, {first, second});
    if (is_resumed) trainer.resume(dir / "a.ckpt");
    data::DataLoader images = test::loader(10, 2, true), none({});
    trainer.fit(images, none);
    trainer.save(dir / "a.ckpt");
    return std::make_pair(first->tensors().begin()->second.clone(),
                          second->tensors().begin()->second.clone());
  };
  const auto whole = train(2, false);
  train(1, false);
  const auto rest = train(2, true);
  EXPECT_TRUE(at::equal(rest.first, whole.first));
  EXPECT_TRUE(at::equal(rest.second, whole.second));
  EXPECT_FALSE(at::equal(rest.first, rest.second));
}

TEST(Resume, OfAFinishedTrainingLeavesACheckpointOfItsOwn) {
  const test::TmpDir dir;
  const Tiny whole = run(dir / "whole", 0, "", 0),
             again = run(dir / "again", 0, dir / "whole/last.ckpt", 0);
  EXPECT_EQ(again.weights(), whole.weights());
  EXPECT_EQ(run(dir / "more", 0, dir / "again/last.ckpt", 0).state().metrics,
            whole.state().metrics);
}

TEST(Resume, ADamagedCheckpointIsRefused) {
  const test::TmpDir dir;
  run(dir / "c", 0, "", 0);
  const std::string good = read_file(dir / "c/last.ckpt");
  for (const std::size_t place : {good.size() / 4, good.size() / 2, good.size() - 3}) {
    std::string bad = good;
    bad[place] = static_cast<char>(bad[place] ^ 1);
    write_file(dir / "bad.ckpt", bad);
    EXPECT_THROW(run(dir / "d", 0, dir / "bad.ckpt", 0), Error) << place;
  }
}

TEST(Resume, KeepsNumbersThatJsonDoesNotKnow) {
  const test::TmpDir dir;
  Tiny tiny("max_epochs: 1");
  tiny.trainer->state().metrics = {{"a", NAN}, {"b", -INFINITY}, {"c", INFINITY}, {"d", 0.1}};
  tiny.trainer->save(dir / "a.ckpt");
  Tiny again("max_epochs: 1");
  again.trainer->resume(dir / "a.ckpt");
  training::Metrics metrics = again.state().metrics;
  EXPECT_TRUE(std::isnan(metrics.at("a")));
  EXPECT_EQ(metrics.at("b"), -INFINITY);
  EXPECT_EQ(metrics.at("c"), INFINITY);
  EXPECT_EQ(metrics.at("d"), 0.1);
}

TEST(FindCheckpoint, TakesTheNewestThatIsWhole) {
  const test::TmpDir dir;
  const std::string older = dir / "2026-01-01_10-00-00", newer = dir / "2026-01-02_10-00-00";
  run(older + "/checkpoints", 5, "", 0);
  run(newer + "/checkpoints", 7, "", 0);
  const std::string next = dir / "2026-01-03_10-00-00";
  EXPECT_EQ(training::find_checkpoint("last", next), newer + "/checkpoints/last.ckpt");
  EXPECT_EQ(training::find_checkpoint("last", dir / "other"), "");
  EXPECT_EQ(training::find_checkpoint("last", older), newer + "/checkpoints/last.ckpt");
  const std::string best = training::find_checkpoint("best", next);
  EXPECT_EQ(std::filesystem::path(best).parent_path().string(), newer + "/checkpoints");
  for (const auto& entry : std::filesystem::directory_iterator(newer + "/checkpoints"))
    std::filesystem::resize_file(entry.path(), 100);
  EXPECT_EQ(training::find_checkpoint("last", next), older + "/checkpoints/last.ckpt");
}

TEST(FindCheckpoint, TheNewestHasTheMostSteps) {
  const test::TmpDir dir;
  run(dir / "run/checkpoints", 7, "", 0);
  run(dir / "run-1/checkpoints", 5, "", 0);
  for (const auto& entry : std::filesystem::directory_iterator(dir / "run-1/checkpoints"))
    std::filesystem::last_write_time(
        entry.path(), std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(training::find_checkpoint("last", dir / "run"), dir / "run/checkpoints/last.ckpt");
}

TEST(FindCheckpoint, WithoutAReadableOneNothingBegins) {
  const test::TmpDir dir;
  run(dir / "run/checkpoints", 5, "", 0);
  for (const auto& entry : std::filesystem::directory_iterator(dir / "run/checkpoints"))
    std::filesystem::resize_file(entry.path(), 100);
  const std::string message =
      message_of<DataError>([&] { training::find_checkpoint("last", dir / "run"); });
  EXPECT_NE(message.find("none of its"), std::string::npos) << message;
  EXPECT_NE(message.find("truncated?"), std::string::npos) << message;
}

TEST(FindCheckpoint, ALivingRunIsNotTakenUp) {
  const test::TmpDir dir;
  make_folders(dir / "run-1");
  training::expect_ended(dir / "run");
  const RunLock lock(dir / "run-1");
  const std::string message = message_of<ConfigError>([&] { training::expect_ended(dir / "run"); });
  EXPECT_NE(message.find("run-1: this run is alive (process "), std::string::npos) << message;
}

TEST(Resume, GoesOnFromAnyPlace) {
  const test::TmpDir dir;
  for (const std::string& name : {std::string(130, 'L') + "/" + std::string(130, 'L'),
                                  std::string("a, b: {c} \"d\" \xc3\xa4")}) {
    const std::string folder = dir / name + "/checkpoints";
    const Tiny first = run(folder, 7, "", 0);
    const std::string last = training::find_checkpoint("last", dir / name);
    ASSERT_EQ(last, folder + "/last.ckpt");
    const Tiny second = run(folder + "b", 0, last, 0);
    EXPECT_EQ(second.state().step, 12) << name;
    EXPECT_EQ(second.state().best_path.substr(0, folder.size()), folder);
    EXPECT_EQ(training::find_checkpoint("best", dir / name).substr(0, folder.size()), folder);
  }
}

TEST(Resume, KeepsNoListOfAllCheckpoints) {
  const test::TmpDir dir;
  const auto train = [&](int epochs, const std::string& from) {
    Tiny tiny(fmt::format("max_epochs: {}", epochs),
              "{saver: {_target_: ModelCheckpoint, save_top_k: -1, dirpath: '" + dir.path() + "'}}",
              0,
              "{_target_: SGD, lr: 0.05}",
              "{_target_: ConstantLR, factor: 1.0}");
    if (!from.empty()) tiny.trainer->resume(from);
    tiny.fit();
    const io::SafetensorsFile file(dir / "last.ckpt");
    return file.metadata().at("state").size();
  };
  const std::size_t few = train(2, "");
  EXPECT_LT(train(30, dir / "last.ckpt"), few + 100);
  EXPECT_TRUE(std::filesystem::exists(dir / "epoch_001.ckpt"));
}

/// A callback whose state can't be had, once.
struct Failing final : training::Callback {
  std::map<std::string, Tensor> tensors() const override {
    if (!fails) return {};
    fails = false;
    throw std::runtime_error("no memory");
  }
  mutable bool fails = false;
};

TEST(Checkpoint, AfterACopyThatFailsTheWeightsAreThoseInTraining) {
  const test::TmpDir dir;
  Tiny tiny("max_epochs: 1");
  const auto ema = make<training::Callback>("{_target_: EMAWeightAveraging, decay: 0.5}");
  const auto failing = std::make_shared<Failing>();
  training::Trainer trainer(
      tiny.parsed, *tiny.task, *tiny.optimizer, *tiny.scheduler, {ema, failing});
  data::DataLoader images = test::loader(10, 2, true), none({});
  trainer.fit(images, none);
  const std::vector<double> weights = tiny.weights();
  failing->fails = true;
  EXPECT_THROW(trainer.save(dir / "a.ckpt"), std::runtime_error);
  EXPECT_FALSE(failing->fails);
  EXPECT_EQ(tiny.weights(), weights);
  trainer.save(dir / "a.ckpt");
  EXPECT_EQ(tiny.weights(), weights);
}

TEST(Checkpoint, BeforeTheFirstAverageTheWeightsAreBoth) {
  const test::TmpDir dir;
  Tiny tiny("max_epochs: 1",
            "{ema: {_target_: EMAWeightAveraging, decay: 0.5, update_starting_at_step: 1000}}");
  tiny.fit();
  tiny.trainer->save(dir / "a.ckpt");
  const io::SafetensorsFile file(dir / "a.ckpt");
  const auto value = [&](const std::string& name) {
    return *static_cast<const float*>(file.tensors().at(name).data);
  };
  EXPECT_EQ(value("callback.ema.training.conv.weight"), value("model.conv.weight"));
}

TEST(Checkpoint, OneThatDoesNotFitChangesNothing) {
  const test::TmpDir dir;
  const std::string average = "{ema: {_target_: EMAWeightAveraging, decay: 0.5}}",
                    schedule = "{_target_: CosineAnnealingLR, warmup_steps: 2}";
  Tiny with_momentum("max_epochs: 1", average, 0, "{_target_: SGD, lr: 0.05, momentum: 0.9}");
  with_momentum.fit();
  with_momentum.trainer->save(dir / "a.ckpt");
  Tiny other("max_epochs: 1", average, 0, "{_target_: AdamW, lr: 0.1}");
  const std::vector<double> weights = other.weights();
  const std::string message = message_of<DataError>([&] { other.trainer->resume(dir / "a.ckpt"); });
  EXPECT_NE(message.find("does not fit (optimizer."), std::string::npos) << message;
  EXPECT_EQ(other.weights(), weights);
  // A callback of another type under the name.
  Tiny third("max_epochs: 1",
             "{ema: {_target_: ModelCheckpoint, monitor: null, dirpath: '" + dir.path() + "'}}",
             0,
             "{_target_: SGD, lr: 0.05, momentum: 0.9}");
  EXPECT_THROW(third.trainer->resume(dir / "a.ckpt"), Error);
  EXPECT_EQ(third.weights(), weights);
}

}  // namespace
}  // namespace cytra
