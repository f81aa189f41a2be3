// The command lines and configurations of CytoDL's performance guide, as they stand there.
#include <gtest/gtest.h>

#include "base/files.h"
#include "config/composer.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
using test::Outcome;

class Guides : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new test::TmpDir();
    for (const std::string& more :
         {"'" + at("images") + "'", "'" + at("stacks") + "' --spatial-dims 3 --depth 16"}) {
      const Outcome made = test::shell(
          "\"$BIN/generate_samples\" --train 2 --valid 1 --test 1 --size 64 --seed 3 --output " +
          more);
      ASSERT_EQ(made.code, 0) << made.err;
    }
    make_folders(at("configs/experiment"));
    write_file(at("configs/experiment/train_guide.yaml"), kTrainGuide);
    write_file(at("configs/experiment/loading_guide.yaml"), kLoadingGuide);
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }
  static std::string at(const std::string& name) { return *dir_ / name; }
  static Outcome run(const std::string& program, const std::string& more) {
    return test::shell("\"$BIN/" + program + "\" --config-dir '" + at("configs") + "' " + more);
  }
  /// One step on a CPU; results go to at(name).
  static Outcome train(const std::string& name, const std::string& data, const std::string& more) {
    return run("train",
               "'data.path=" + at(data) + "' 'paths.output_dir=" + at(name) +
                   "' 'model.filters=[4,4,4]' logger=none trainer.max_steps=1 "
                   "trainer.limit_val_batches=1 " +
                   more);
  }
  static config::Node compose(const std::string& primary, std::vector<std::string> overrides) {
    return config::Composer({std::string(CYTRA_SOURCE_DIR) + "/configs", at("configs")})
        .compose(primary, overrides);
  }
  static const char* const kTrainGuide;
  static const char* const kLoadingGuide;
  static test::TmpDir* dir_;
};
test::TmpDir* Guides::dir_ = nullptr;

const char* const Guides::kTrainGuide = R"(# @package _global_
defaults:
  - im2im/segmentation
  - override /trainer: gpu_optimized
  - override /optimizer: adamw_fused
  - override /performance: gpu_optimized
trainer:
  precision: bf16-mixed
  max_epochs: 100
  gradient_clip_val: 1.0
model:
  spatial_dims: 3
  channels_last: True
  compile_model: True
  compile_mode: max-autotune
  gradient_checkpointing: False
  inference_args:
    sw_batch_size: 4
    roi_size: [64, 64, 64]
    overlap: 0.25
    mode: gaussian
data:
  batch_size: 16
  num_workers: 4
  pin_memory: True
  persistent_workers: True
performance:
  enable_cudnn_benchmark: True
  enable_tf32: True
  matmul_precision: high
  channels_last: True
)";
const char* const Guides::kLoadingGuide = R"(# @package _global_
defaults:
  - im2im/segmentation
optimizer:
  _target_: torch.optim.AdamW
  lr: 0.001
  fused: True
data:
  cache_dir: /path/to/cache
  persistent_workers: True
)";

TEST_F(Guides, EveryCommandLineIsAConfiguration) {
  for (const char* line :
       {"experiment=im2im/segmentation trainer=gpu_optimized",
        "experiment=im2im/segmentation trainer=gpu_optimized performance=gpu_optimized",
        "experiment=im2im/mae trainer.precision=bf16-mixed",
        "experiment=im2im/segmentation optimizer=adamw_fused",
        "experiment=im2im/segmentation model.channels_last=True model.spatial_dims=3",
        "experiment=im2im/segmentation debug=profile_gpu",
        "experiment=im2im/mae debug=profile_memory",
        "experiment=im2im/segmentation data.batch_size=2",
        "experiment=im2im/mae model.gradient_checkpointing=True",
        "trainer.precision=bf16-mixed",
        "data.num_workers=8",
        "model.compile_model=False",
        "model.compile_mode=default",
        "trainer.precision=32",
        "model.optimizer.lr=0.0001",
        "trainer.gradient_clip_val=1.0",
        "experiment=im2im/segmentation trainer=gpu_optimized performance=gpu_optimized "
        "optimizer=adamw_fused model.channels_last=True model.spatial_dims=3 "
        "model.compile_model=True model.compile_mode=max-autotune data.num_workers=4 "
        "data.batch_size=16",
        "data.pin_memory=True data.persistent_workers=True data.prefetch_factor=4",
        "data.num_workers=AUTO data.cache_dir=/path/to/cache",
        "performance.enable_cudnn_benchmark=True performance.enable_tf32=True "
        "performance.matmul_precision=high performance.channels_last=True",
        "model.inference_args.sw_batch_size=4 model.inference_args.roi_size=[64,64] "
        "model.inference_args.overlap=0.25 model.inference_args.mode=gaussian",
        "model.lr_scheduler.warmup_steps=10",
        "experiment=train_guide",
        "experiment=loading_guide"}) {
    const Outcome outcome = run("train", std::string("data.path=unused --check ") + line);
    EXPECT_EQ(outcome.code, 0) << line << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "ok\n") << line;
  }
  for (const char* line :
       {"trainer=gpu_optimized",
        "trainer=gpu_optimized trainer.precision=bf16-mixed",
        "model.spatial_dims=3 model.channels_last=True model.compile_model=True "
        "model.compile_mode=reduce-overhead",
        "model.inference_args.sw_batch_size=4 model.inference_args.roi_size=[64,64,64] "
        "model.inference_args.overlap=0.25 model.inference_args.mode=gaussian",
        "performance.enable_cudnn_benchmark=True performance.enable_tf32=True "
        "performance.matmul_precision=high performance.channels_last=True"}) {
    const Outcome outcome =
        run("predict", std::string("checkpoint.ckpt_path=c.ckpt data.path=d --check ") + line);
    EXPECT_EQ(outcome.code, 0) << line << "\n" << outcome.err;
  }
}

TEST_F(Guides, TheConfigurationHoldsWhatItSays) {
  const config::Node config = compose("train", {"experiment=train_guide", "data.path=unused"});
  EXPECT_EQ(config.get<int64_t>("task.model.spatial_dims"), 3);
  EXPECT_EQ(config.get<std::vector<int64_t>>("patch_shape"), (std::vector<int64_t>{16, 64, 64}));
  EXPECT_EQ(config.get<std::vector<int64_t>>("task.inference_args.roi_size"),
            (std::vector<int64_t>{64, 64, 64}));
  EXPECT_EQ(config.get<std::string>("trainer.accelerator"), "gpu");
  EXPECT_TRUE(config.get<bool>("optimizer.fused"));
  EXPECT_TRUE(config.get<bool>("task.model.channels_last"));
  EXPECT_EQ(config.get<std::string>("task.model.compile_mode"), "max-autotune");
  EXPECT_FALSE(config.has("model.inference_args"));
  EXPECT_FALSE(config.has("performance.channels_last"));
  const config::Node predict =
      compose("predict", {"checkpoint.ckpt_path=c.ckpt", "data.path=d", "trainer=gpu_optimized"});
  EXPECT_EQ(predict.get<std::string>("trainer.precision"), "bf16-mixed");
  EXPECT_TRUE(predict.get<bool>("performance.enable_tf32"));
}

TEST_F(Guides, TheSummarysLineTrainsOnStacks) {
  const Outcome outcome =
      train("summary",
            "stacks",
            "experiment=im2im/segmentation trainer=gpu_optimized performance=gpu_optimized "
            "optimizer=adamw_fused model.channels_last=True model.spatial_dims=3 "
            "model.compile_model=True model.compile_mode=max-autotune data.num_workers=4 "
            "data.batch_size=16 trainer.accelerator=cpu model.optimizer.lr=0.0001 "
            "'patch_shape=[8,16,16]'");  // so that what is tried takes seconds
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("steps: 1\n"), std::string::npos) << outcome.out;
  const Outcome predicted =
      run("predict",
          "'checkpoint.ckpt_path=" + at("summary/checkpoints/last.ckpt") +
              "' 'data.path=" + at("stacks/test.csv") + "' 'paths.output_dir=" + at("predicted") +
              "' trainer.accelerator=cpu model.spatial_dims=3 "
              "model.channels_last=False model.inference_args.overlap=0.5");
  EXPECT_EQ(predicted.code, 0) << predicted.err;
  const Outcome refused = run("predict",
                              "'checkpoint.ckpt_path=" + at("summary/checkpoints/last.ckpt") +
                                  "' 'data.path=" + at("stacks/test.csv") +
                                  "' trainer.accelerator=cpu model.spatial_dims=2");
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_NE(refused.err.find("model.spatial_dims: 2"), std::string::npos) << refused.err;
}

TEST_F(Guides, ImagesAreNoStacks) {
  const Outcome outcome =
      train("flat", "images", "experiment=im2im/segmentation model.spatial_dims=3 trainer=cpu");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("a plane, but spatial_dims is 3"), std::string::npos) << outcome.err;
  const Outcome patch = train("patch",
                              "stacks",
                              "experiment=im2im/segmentation model.spatial_dims=3 trainer=cpu "
                              "'patch_shape=[32,32]'");
  EXPECT_EQ(patch.code, 2) << patch.err;
  EXPECT_NE(patch.err.find("2 numbers, but spatial_dims is 3"), std::string::npos) << patch.err;
}

TEST_F(Guides, WithoutAGpuTheNearestChoiceIsNamed) {
  const std::string hidden = "CUDA_VISIBLE_DEVICES= ";
  const Outcome trained = test::shell(
      hidden + "\"$BIN/train\" experiment=im2im/segmentation trainer=gpu_optimized 'data.path=" +
      at("images") + "' 'paths.output_dir=" + at("gpu") + "'");
  const Outcome predicted =
      test::shell(hidden +
                  "\"$BIN/predict\" trainer=gpu_optimized checkpoint.ckpt_path=none.ckpt "
                  "'data.path=" +
                  at("images") + "' 'paths.output_dir=" + at("gpu") + "'");
  EXPECT_EQ(trained.code, 2) << trained.err;
  EXPECT_NE(trained.err.find("use trainer.accelerator=cpu"), std::string::npos) << trained.err;
  EXPECT_EQ(predicted.code, 2) << predicted.err;
}

TEST_F(Guides, TheDebugConfigurationsProfile) {
  const Outcome gpu = train("profile_gpu",
                            "images",
                            "experiment=im2im/segmentation debug=profile_gpu "
                            "trainer.accelerator=cpu 'patch_shape=[32,32]' trainer.max_steps=5");
  EXPECT_EQ(gpu.code, 0) << gpu.err;
  EXPECT_FALSE(read_file(at("profile_gpu/profiler/table.txt")).empty());
  const Outcome memory = train("profile_memory",
                               "images",
                               "experiment=im2im/segmentation debug=profile_memory "
                               "trainer.accelerator=cpu 'patch_shape=[32,32]' trainer.max_steps=5");
  EXPECT_EQ(memory.code, 0) << memory.err;
  EXPECT_FALSE(read_file(at("profile_memory/profiler/memory.json")).empty());
}

}  // namespace
}  // namespace cytra
