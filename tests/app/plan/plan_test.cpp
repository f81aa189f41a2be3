// `train --plan` on generated images: what it writes composes, and says why.
#include <filesystem>

#include <gtest/gtest.h>

#include "app/setup/setup.h"
#include "base/error.h"
#include "base/files.h"
#include "cli/program.h"
#include "config/composer.h"
#include "config/run_config.h"
#include "config/variables.h"
#include "samples/generate.h"
#include "tests/support/tmp_dir.h"

extern "C" int cytra_plan(const cytra::cli::Run& run);

namespace cytra {
namespace {

cli::Run plan_run(const test::TmpDir& dir, std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(),
                   {"paths.output_dir=unused",
                    "trainer.accelerator=cpu",
                    "data.path=\"" + dir.path() + "\"",
                    "plan.output=\"" + (dir / "mine/experiment/planned.yaml") + "\"",
                    "plan.memory_gb=0.5"});
  cli::Run run;
  config::Composition composition =
      config::Composer({std::string(CYTRA_SOURCE_DIR) + "/configs"}).load("train", overrides);
  run.variables = config::variables_of(composition.root, composition.own_keys);
  run.composed = std::move(composition.root);
  run.config = config::job_config(run.composed);
  run.overrides = overrides;
  run.program = "train";
  run.command_line = "train --plan";
  return run;
}

/// The configuration that the planned experiment gives.
app::TrainConfig planned(const test::TmpDir& dir) {
  const config::Composition composition =
      config::Composer({std::string(CYTRA_SOURCE_DIR) + "/configs", dir / "mine"})
          .load("train", {"experiment=planned", "paths.output_dir=unused"});
  config::Problems problems;
  app::TrainConfig config = config::read_options<app::TrainConfig>(
      config::job_config(composition.root),
      problems,
      config::variables_of(composition.root, composition.own_keys));
  problems.throw_if_any();
  return config;
}

TEST(Plan, WritesAnExperimentForPlanes) {
  const test::TmpDir dir;
  samples::NucleiOptions options;
  options.size = 96;
  samples::write_dataset(dir.path(), options, 3, 1, 0, 7);
  ASSERT_EQ(cytra_plan(plan_run(dir, {"source_col=raw"})), 0);
  const app::TrainConfig config = planned(dir);
  EXPECT_EQ(config.data.get<std::string>("path"), dir.path());
  EXPECT_EQ(config.data.get<int64_t>("batch_size"), 2);
  EXPECT_EQ(config.task.get<int64_t>("num_classes"), 1);
  EXPECT_EQ(config.task.get<std::vector<int64_t>>("inference_args.roi_size"),
            (std::vector<int64_t>{96, 96}));
  EXPECT_EQ(config.model.get<std::vector<int64_t>>("filters"),
            (std::vector<int64_t>{32, 64, 128, 256, 512}));
  EXPECT_EQ(config.optimizer.get<std::string>("_target_"), "SGD");
  const std::string text = read_file(dir / "mine/experiment/planned.yaml");
  for (const char* reason :
       {"4 images", "96 x 96 voxels", "0.25 x 0.25 um", "labels 0, 1", "5 levels"})
    EXPECT_NE(text.find(reason), std::string::npos) << reason << " is not in\n" << text;
  EXPECT_THROW(cytra_plan(plan_run(dir, {})), ConfigError) << "over a plan that is there";
}

TEST(Plan, ObjectsAndBoxes) {
  const test::TmpDir dir;
  samples::NucleiOptions options;
  options.size = 96;
  samples::write_dataset(dir.path(), options, 3, 1, 0, 7);
  ASSERT_EQ(cytra_plan(plan_run(dir, {"experiment=im2im/instance", "target_col=instances"})), 0);
  app::TrainConfig config = planned(dir);
  EXPECT_EQ(config.task.get<std::string>("_target_"), "InstanceTask");
  EXPECT_EQ(config.task.get<std::string>("y_key"), "instances");
  EXPECT_EQ(config.task.get<int64_t>("model.out_channels"), 3);
  EXPECT_EQ(config.model.get<std::vector<int64_t>>("filters").size(), 5U);
  EXPECT_FALSE(config.model.get<bool>("deep_supervision"));
  EXPECT_TRUE(config.loss.is_null());
  EXPECT_EQ(config.best.monitor, "val/ap");
  EXPECT_EQ(config.optimizer.get<std::string>("_target_"), "SGD");
  std::filesystem::remove_all(dir / "mine");
  ASSERT_EQ(cytra_plan(plan_run(dir, {"experiment=detection/cells"})), 0);
  config = planned(dir);
  EXPECT_EQ(config.task.get<std::string>("_target_"), "DetectionTask");
  EXPECT_EQ(config.task.get<std::string>("y_key"), "instances");
  EXPECT_EQ(config.task.get<std::string>("model._target_"), "FCOS");
  EXPECT_EQ(config.data.get<int64_t>("batch_size"), 2);
  EXPECT_NE(read_file(dir / "mine/experiment/planned.yaml").find("patch_shape: [96,96]"),
            std::string::npos);
  EXPECT_THROW(cytra_plan(plan_run(dir, {"experiment=im2im/mae"})), ConfigError);
}

TEST(Plan, EveryMaskOfSeveralCounts) {
  const test::TmpDir dir;
  samples::write_dataset(dir.path(), {}, 2, 1, 0, 7);
  ASSERT_EQ(cytra_plan(plan_run(dir, {"num_classes=2", "multilabel=true"})), 0);
  const config::Node* background = planned(dir).task.find("loss.include_background");
  EXPECT_TRUE(background == nullptr || background->is_null() || background->boolean);
}

TEST(Plan, StacksKeepTheirCoarseAxisLonger) {
  const test::TmpDir dir;
  samples::NucleiOptions options;
  options.spatial_dims = 3;
  options.size = 64;
  options.depth = 16;
  samples::write_dataset(dir.path(), options, 2, 1, 0, 7);
  ASSERT_EQ(cytra_plan(plan_run(dir, {"spatial_dims=3", "num_classes=3"})), 0);
  const app::TrainConfig config = planned(dir);
  EXPECT_EQ(config.task.get<int64_t>("num_classes"), 3);
  const config::Node& strides = config.model.at("strides");  // planes are 4 pixels apart
  EXPECT_EQ(strides.list.at(1).as<std::vector<int64_t>>(), (std::vector<int64_t>{1, 2, 2}));
  EXPECT_EQ(strides.list.at(2).as<std::vector<int64_t>>(), (std::vector<int64_t>{1, 2, 2}));
  EXPECT_EQ(strides.list.at(3).as<std::vector<int64_t>>(), (std::vector<int64_t>{2, 2, 2}));
}

}  // namespace
}  // namespace cytra
