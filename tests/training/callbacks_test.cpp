#include <filesystem>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "config/registry.h"
#include "tests/support/tmp_dir.h"
#include "tests/training/fixture.h"
#include "training/callback.h"

namespace cytra {
namespace {

/// What a callback does over a series of values of a metric.
struct Series {
  test::TinyTask task;
  std::shared_ptr<training::Optimizer> optimizer = make<training::Optimizer>("{_target_: AdamW}");
  std::vector<std::shared_ptr<training::Logger>> loggers;
  training::TrainState state;
  std::vector<std::vector<std::string>> saved;
  int64_t stopped_at = -1;
  void run(training::Callback& callback, const std::vector<double>& values) {
    training::Context context{state, task, *optimizer, loggers};
    const auto carry_out = [&] {  // as the trainer does
      for (const std::string& path : context.save_to) write_file(path, "x");
      if (!context.save_to.empty()) {
        for (const std::string& path : context.remove) std::filesystem::remove(path);
        context.remove.clear();
      }
      context.save_to.clear();
    };
    callback.on_fit_start(context);
    for (const double value : values) {
      state.epoch += 1;
      state.step += 10;
      state.metrics["val/dice"] = value;
      context.stop = false;
      callback.on_validation_end(context);
      saved.push_back(context.save_to);
      carry_out();
      callback.on_epoch_end(context);
      carry_out();
      if (context.stop && stopped_at < 0) stopped_at = state.epoch;
    }
    callback.on_fit_end(context);
  }
};

TEST(ModelCheckpoint, SaysThatWithoutValidationThereIsNoBest) {
  const test::TmpDir dir;
  const auto said = [&](const std::string& options, bool has_validation) {
    const auto callback = make<training::Callback>("{_target_: ModelCheckpoint, dirpath: '" +
                                                   dir.path() + "', " + options + "}");
    callback->name = "model_checkpoint";
    Series series;
    training::Context context{series.state, series.task, *series.optimizer, series.loggers};
    context.has_validation = has_validation;
    testing::internal::CaptureStderr();
    callback->on_fit_start(context);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_NE(said("monitor: val/dice, every_n_train_steps: 5", false).find("'val/dice'"),
            std::string::npos);
  EXPECT_EQ(said("monitor: val/dice", true), "");
  EXPECT_EQ(said("monitor: null", false), "");
  EXPECT_EQ(said("monitor: val/dice, save_top_k: 0", false), "");
}

TEST(Callbacks, SayWhichTrainingsTheyTakePartIn) {
  const auto kinds = [](const std::string& options, bool is_first_process) {
    const training::TrainerOptions trainer = test::trainer_options("{" + options + "}");
    std::string kinds;
    for (const char* kind : {"ModelCheckpoint",
                             "EarlyStopping",
                             "ImageSaver, save_dir: x",
                             "ModelSummary",
                             "OutlierDetection, layer_names: [conv]",
                             "LayerFreeze, contains: bias",
                             "RichProgressBar"}) {
      const auto callback = make<training::Callback>(std::string("{_target_: ") + kind + "}");
      if (callback->takes_part(trainer, is_first_process)) kinds += kind[0];
    }
    return kinds;
  };
  EXPECT_EQ(kinds("", true), "MEIMOLR");
  EXPECT_EQ(kinds("", false), "MELR");
  EXPECT_EQ(kinds("fast_dev_run: true", true), "MOLR") << "the summary alone of the two with M";
  EXPECT_EQ(kinds("enable_checkpointing: false", true), "EIMOLR");
  EXPECT_EQ(kinds("enable_model_summary: false, fast_dev_run: 2", true), "OLR");
}

TEST(ModelCheckpoint, KeepsTheBestAndTheLast) {
  const test::TmpDir dir;
  const auto callback =
      make<training::Callback>("{_target_: ModelCheckpoint, dirpath: '" + (dir / "c") +
                               "', monitor: val/dice, mode: max, save_top_k: 2}");
  Series series;
  series.run(*callback, {0.1, 0.5, 0.3, 0.2, std::nan(""), 0.6});
  EXPECT_EQ(series.state.best_path, dir / "c/epoch_006.ckpt");
  EXPECT_DOUBLE_EQ(series.state.best_score, 0.6);
  EXPECT_EQ(series.state.best_metric, "val/dice");
  EXPECT_EQ(series.state.best_mode, "max");
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(dir / "c"))
    left.push_back(entry.path().filename().string());
  std::sort(left.begin(), left.end());
  EXPECT_EQ(
      left,
      (std::vector<std::string>{"best.ckpt", "epoch_002.ckpt", "epoch_006.ckpt", "last.ckpt"}));
  EXPECT_EQ(series.saved[3],
            (std::vector<std::string>{dir / "c/last.ckpt"}));  // 0.2 is not among the best two
}

TEST(ModelCheckpoint, OfEqualScoresTheLowerLossThenTheNewestIsTheBest) {
  for (const auto& [losses, best] :
       std::vector<std::pair<std::vector<double>, std::string>>{{{0.5, 0.3, 0.2}, "3"},
                                                                {{0.2, 0.3, 0.5}, "1"},
                                                                {{0.3, 0.2, 0.2}, "3"},
                                                                {{NAN, 0.9, NAN}, "2"}}) {
    const test::TmpDir dir;
    const auto callback = make<training::Callback>("{_target_: ModelCheckpoint, dirpath: '" +
                                                   dir.path() + "', monitor: val/dice, mode: max}");
    Series series;
    for (const double loss : losses) {  // each is resumed from the one before
      const config::Node state = callback->state();
      callback->load(state);
      series.state.metrics["val/loss"] = loss;
      series.run(*callback, {0});
    }
    EXPECT_EQ(series.state.best_path, dir / "epoch_00" + best + ".ckpt");
  }
}

TEST(ModelCheckpoint, ARunThatGoesOnWithoutItsBestRanksAnew) {
  const test::TmpDir dir, other;
  const auto at = [](const std::string& folder) {
    return make<training::Callback>("{_target_: ModelCheckpoint, dirpath: '" + folder +
                                    "', monitor: val/dice, mode: max}");
  };
  const auto first = at(dir.path()), second = at(other.path());
  Series series;
  series.run(*first, {0.9});
  second->load(first->state());
  std::filesystem::remove(dir / "epoch_001.ckpt");
  testing::internal::CaptureStderr();
  series.run(*second, {0.4});
  EXPECT_NE(testing::internal::GetCapturedStderr().find("epoch_001.ckpt, is no longer there"),
            std::string::npos);
  EXPECT_EQ(series.state.best_path, other / "epoch_002.ckpt");
  EXPECT_TRUE(std::filesystem::exists(other / "best.ckpt"));
}

TEST(ModelCheckpoint, ANameForAllEpochsHoldsTheBest) {
  const test::TmpDir dir;
  const auto callback =
      make<training::Callback>("{_target_: ModelCheckpoint, dirpath: '" + dir.path() +
                               "', filename: best, monitor: val/dice, mode: max}");
  Series series;
  series.run(*callback, {0.1, 0.5, 0.3, 0.6});
  const std::vector<std::string> both{dir / "best.ckpt", dir / "last.ckpt"},
      last{dir / "last.ckpt"};
  EXPECT_EQ(series.saved, (std::vector<std::vector<std::string>>{both, both, last, both}));
  EXPECT_TRUE(std::filesystem::exists(dir / "best.ckpt"));
}

TEST(ModelCheckpoint, NumbersNamesThatAreTaken) {
  const test::TmpDir dir;
  const auto callback =
      make<training::Callback>("{_target_: ModelCheckpoint, dirpath: '" + dir.path() +
                               "', filename: best, monitor: val/dice, mode: max, save_top_k: 2}");
  Series series;
  series.run(*callback, {0.5, 0.3, 0.6, 0.4});
  EXPECT_EQ(series.state.best_path, dir / "best-v1.ckpt");
  for (const char* name : {"best.ckpt", "best-v1.ckpt"})
    EXPECT_TRUE(std::filesystem::exists(dir / name)) << name;
  EXPECT_EQ(series.saved[3], (std::vector<std::string>{dir / "last.ckpt"}));
}

TEST(ModelCheckpoint, AValidationTakesThePlaceOfItsStep) {
  const test::TmpDir dir;
  test::Tiny(
      "max_epochs: 2",
      "{saver: {_target_: ModelCheckpoint, monitor: null, save_top_k: 2, every_n_train_steps: 1, "
      "save_last: false, filename: '{step}-{val/loss:.2f}', dirpath: '" +
          dir.path() + "'}}")
      .fit(4, 2);
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path()))
    left.push_back(entry.path().filename().string().substr(0, 2));
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, (std::vector<std::string>{"3-", "4-", "be", "la"}));
}

TEST(ModelCheckpoint, ScoresOfAnotherMetricDoNotCount) {
  const test::TmpDir dir;
  const auto watch = [&](const std::string& what) {
    return make<training::Callback>("{_target_: ModelCheckpoint, dirpath: '" + dir.path() + "', " +
                                    what + "}");
  };
  const auto loss = watch("monitor: val/loss, mode: min"),
             dice = watch("monitor: val/dice, mode: max");
  Series series;
  series.state.metrics["val/loss"] = 1.3;
  series.run(*loss, {0.1});
  EXPECT_EQ(series.state.best_score, 1.3);
  dice->load(loss->state());
  series.run(*dice, {0.5});
  EXPECT_EQ(series.state.best_score, 0.5);
  EXPECT_EQ(series.state.best_path, dir / "epoch_002.ckpt");
}

TEST(ModelCheckpoint, EachHasABestOfItsOwn) {
  const test::TmpDir dir;
  const auto callbacks = [&](const std::string& more) {
    return "{loss: {_target_: ModelCheckpoint, filename: 'loss_{epoch}', monitor: val/loss, mode: "
           "min, dirpath: '" +
           dir.path() + "'" + more +
           "}, worst: {_target_: ModelCheckpoint, filename: 'worst_{epoch}', monitor: val/loss, "
           "mode: max, dirpath: '" +
           dir.path() + "'" + more +
           "}, newest: {_target_: ModelCheckpoint, filename: 'newest_{epoch}', monitor: null, "
           "dirpath: '" +
           dir.path() + "'" + more + "}}";
  };
  const auto names = [&] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir.path()))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  };
  const auto make = [&](const std::string& epochs, const std::string& more) {
    return test::Tiny("max_epochs: " + epochs,
                      callbacks(more),
                      0,
                      "{_target_: SGD, lr: 0.01}",
                      "{_target_: ConstantLR, factor: 1.0}");
  };
  test::Tiny first = make("3", "");
  first.fit();  // the loss falls
  EXPECT_EQ(names(),
            (std::vector<std::string>{
                "best.ckpt", "last.ckpt", "loss_3.ckpt", "newest_3.ckpt", "worst_1.ckpt"}));
  EXPECT_EQ(first.state().best_path, dir / "loss_3.ckpt") << "the first callback's";
  EXPECT_EQ(first.state().best_score, first.state().metrics.at("val/loss"));
  test::Tiny second = make("4", ", on_save_error: warn");
  second.trainer->resume(dir / "last.ckpt");
  std::filesystem::create_directories(dir / "newest_4.ckpt");  // in the way: no save of epoch 4
  second.fit();
  EXPECT_EQ(second.state().best_path, dir / "loss_3.ckpt") << "not one that is not there";
  test::Tiny third = make("4", "");
  third.trainer->resume(dir / "last.ckpt");
  EXPECT_EQ(third.state().epoch, 3) << "last.ckpt names what is not there";
}

TEST(ModelCheckpoint, AWarningForOneIsAnErrorForAnother) {
  const test::TmpDir dir;
  std::filesystem::create_directories(dir / "b_1.ckpt");  // in the way
  const std::string common = "_target_: ModelCheckpoint, monitor: null, dirpath: '" + dir.path();
  test::Tiny tiny("max_epochs: 1",
                  "{a: {" + common + "', filename: 'a_{epoch}', on_save_error: warn}, b: {" +
                      common + "', filename: 'b_{epoch}'}}");
  EXPECT_THROW(tiny.fit(), Error);
}

TEST(ModelCheckpoint, ASaveThatFailsEndsTheRunOrIsAWarning) {
  for (const bool warns : {false, true}) {
    const test::TmpDir dir;
    std::filesystem::create_directories(dir / "epoch_002.ckpt");  // in the way
    test::Tiny tiny("max_epochs: 2",
                    "{saver: {_target_: ModelCheckpoint, monitor: null, dirpath: '" + dir.path() +
                        (warns ? "', on_save_error: warn}}" : "'}}"));
    if (!warns) {
      EXPECT_THROW(tiny.fit(), Error);
      continue;
    }
    tiny.fit();
    EXPECT_EQ(tiny.state().best_path, dir / "epoch_001.ckpt");  // not the one that is not there
    EXPECT_TRUE(std::filesystem::is_regular_file(dir / "epoch_001.ckpt"));
    EXPECT_EQ(tiny.state().step, 10);
  }
}

TEST(ModelCheckpoint, NamesAMetricThatIsNotThere) {
  const test::TmpDir dir;
  const auto callback = make<training::Callback>("{_target_: ModelCheckpoint, dirpath: '" +
                                                 dir.path() + "', monitor: val/dicee}");
  Series series;
  try {
    series.run(*callback, {0.1});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("Did you mean 'val/dice'?"), std::string::npos)
        << error.what();
  }
}

TEST(ModelCheckpoint, SavesNothingOfATrainingThatHasNotBegun) {
  const test::TmpDir dir;
  const auto callback = make<training::Callback>(
      "{_target_: ModelCheckpoint, monitor: null, dirpath: '" + (dir / "c") + "'}");
  Series series;
  training::Context context{series.state, series.task, *series.optimizer, series.loggers};
  callback->on_exception(context, "the sanity check failed");
  EXPECT_TRUE(context.save_to.empty());
  callback->on_fit_start(context);
  series.state.step = 1;
  callback->on_exception(context, "a step failed");
  EXPECT_EQ(context.save_to, (std::vector<std::string>{dir / "c/last.ckpt"}));
}

TEST(EarlyStopping, WaitsAsLongAsItWasTold) {
  const auto callback = make<training::Callback>(
      "{_target_: EarlyStopping, monitor: val/dice, mode: max, patience: 2}");
  Series series;
  series.run(*callback, {0.1, 0.2, 0.2, 0.3, 0.3, 0.25, 0.4});
  EXPECT_EQ(series.stopped_at, 6);
}

}  // namespace
}  // namespace cytra
