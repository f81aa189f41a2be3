#include "app/optimize/kept_profile.h"

#include <cstdlib>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "app/optimize/measure_training.h"
#include "base/files.h"
#include "base/log.h"
#include "config/composer.h"
#include "config/run_config.h"
#include "config/variables.h"
#include "samples/generate.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

/// A training with performance=auto_cpu, whose passes take what a test says.
class KeptProfile : public ::testing::Test {
 protected:
  KeptProfile() {
    samples::NucleiOptions options;
    options.size = 32;
    samples::write_dataset(dir_.path(), options, 4, 1, 0, 7);
    make_folders(dir_ / "mine/performance");
  }
  void write_profile(const std::string& settings) const {
    write_file(dir_ / "mine/performance/auto_cpu.yaml",
               fmt::format("{}, cytra 1:\n{}", app::kProfileHead, settings));
  }
  app::TrainConfig take(std::vector<std::string> more = {}) {
    std::vector<std::string> overrides{"data.path=" + dir_.path(),
                                       "paths.output_dir=unused",
                                       "trainer.accelerator=cpu",
                                       "patch_shape=[16,16]",
                                       "model.filters=[4,8]",
                                       "performance=auto_cpu"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    run_ = {};
    run_.config_folders = {std::string(CYTRA_SOURCE_DIR) + "/configs", dir_ / "mine"};
    config::Composition composition =
        config::Composer(run_.config_folders, "train").load("train", overrides);
    run_.overrides = overrides;
    run_.files = composition.files;
    run_.variables = config::variables_of(composition.root, composition.own_keys);
    run_.composed = composition.root;
    const std::string log = dir_ / "log.txt";
    write_file(log, "");
    cli::Run own;
    app::TrainConfig config = app::with_changes(run_, {}, own);
    run_ = own;
    log::set_file(log);
    made_ = 0;
    config = app::with_profile_that_holds(
        run_,
        std::move(config),
        at::kCPU,
        [this](const app::TrainConfig& one, const data::Batch&, bool validates) {
          ++made_;
          const double s = seconds_(one, validates);
          return [s] { return s; };
        });
    log::set_file("");
    said_ = read_file(log);
    return config;
  }
  test::TmpDir dir_;
  cli::Run run_;
  std::string said_;
  int made_ = 0;
  std::function<double(const app::TrainConfig&, bool)> seconds_;
};

bool has_channels_last(const app::TrainConfig& config) {
  const config::Node* layout = config.task.find("model.channels_last");
  return layout != nullptr && !layout->is_null() && layout->as<bool>();
}

TEST_F(KeptProfile, SettingsThatAreSlowerHereAreDropped) {
  write_profile("model:\n  channels_last: true\ndata:\n  num_workers: 3\n");
  seconds_ = [](const app::TrainConfig& config, bool) {
    return has_channels_last(config) ? 1.4 : 1.0;
  };
  const app::TrainConfig config = take();
  EXPECT_FALSE(has_channels_last(config));
  EXPECT_NE(config.data.get<int64_t>("num_workers"), 3) << "the whole file is dropped";
  EXPECT_NE(said_.find("performance=auto_cpu is dropped: 0.71 times as fast (0 of 5 pairs)"),
            std::string::npos)
      << said_;
  EXPECT_NE(run_.config.get<int64_t>("data.num_workers"), 3) << "what is kept with the run";
  EXPECT_NE(config::evaluate(run_.composed, "data.num_workers").integer, 3);
}

TEST_F(KeptProfile, SettingsThatHoldAreTaken) {
  write_profile("model:\n  channels_last: true\ndata:\n  num_workers: 3\n");
  for (const double seconds : {0.7, 1.0, 1.01}) {
    seconds_ = [=](const app::TrainConfig& config, bool) {
      return has_channels_last(config) ? seconds : 1;
    };
    const app::TrainConfig config = take();
    EXPECT_TRUE(has_channels_last(config)) << seconds;
    EXPECT_EQ(config.data.get<int64_t>("num_workers"), 3);
    EXPECT_EQ(made_, 2);
    EXPECT_EQ(said_, "");
  }
}

TEST_F(KeptProfile, ALargerBatchIsComparedByTheImage) {
  write_profile("data:\n  batch_size: 2\n");
  const auto batch_of = [](const app::TrainConfig& config) {
    return config.data.get<int64_t>("batch_size");
  };
  for (const double of_image : {1.2, 0.8}) {
    seconds_ = [&](const app::TrainConfig& config, bool) {
      return batch_of(config) == 2 ? 2 * of_image : 1.0 * static_cast<double>(batch_of(config));
    };
    const bool is_slower = of_image > 1;
    EXPECT_EQ(batch_of(take()) == 2, !is_slower) << of_image;
  }
}

TEST_F(KeptProfile, WhatIsNotOfTheFileOrNotOfAPassIsNotTimed) {
  seconds_ = [](const app::TrainConfig&, bool) { return 1.0; };
  write_profile("data:\n  num_workers: 3\n");
  EXPECT_EQ(take().data.get<int64_t>("num_workers"), 3);
  EXPECT_EQ(made_, 0) << "the loader's";
  write_profile("model:\n  channels_last: true\n");
  take({"model.channels_last=false"});
  EXPECT_EQ(made_, 0) << "the command line's";
  write_file(dir_ / "mine/performance/auto_cpu.yaml",
             "# @package _global_\nmodel:\n  channels_last: true\n");
  EXPECT_TRUE(has_channels_last(take()));
  EXPECT_EQ(made_, 0) << "a file of the user's";
}

}  // namespace
}  // namespace cytra
