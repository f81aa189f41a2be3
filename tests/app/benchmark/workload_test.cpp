#include "app/benchmark/workload.h"

#include <atomic>

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include "app/benchmark/measures.h"
#include "base/error.h"
#include "config/composer.h"
#include "tests/support/message_of.h"

namespace cytra::app {
namespace {

using config::Node;

Workload workload_of(std::vector<std::string> overrides, const std::vector<int64_t>& shape) {
  Workload workload;
  overrides.insert(overrides.end(), {"data.path=unused", "paths.output_dir=unused"});
  workload.config =
      config::Composer({std::string(CYTRA_SOURCE_DIR) + "/configs"}).compose("train", overrides);
  workload.shape = shape;
  return workload;
}

Workload small_workload(std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"experiment=im2im/segmentation", "model.filters=[4,8,8]"});
  return workload_of(std::move(more), {1, 1, 32, 32});
}

Variant in_precision(const std::string& precision) {
  Variant variant;
  variant.precision = precision;
  return variant;
}

std::vector<double> losses_of(const Workload& workload, const Variant& variant = {}) {
  std::vector<double> losses;
  for (const at::Tensor& loss : prepare_training(workload, variant, 2)({1, 2}).results)
    losses.push_back(loss.item<double>());
  return losses;
}

/// Tensors that this thread and others cast from float32 weights.
std::atomic<int> casts{0};
std::unique_ptr<at::ObserverContext> see_cast(const at::RecordFunction& function) {
  if (std::string_view(function.name()) == "aten::_to_copy" &&
      function.inputs()[0].toTensor().scalar_type() == at::kFloat &&
      function.inputs()[0].toTensor().requires_grad())
    ++casts;
  return nullptr;
}

TEST(BenchmarkInference, Bfloat16CastsItsWeightsOnce) {
  const auto casts_of = [](int64_t runs) {
    casts = 0;
    const auto handle =
        at::addGlobalCallback(at::RecordFunctionCallback(&see_cast).needsInputs(true).scopes(
            {at::RecordScope::FUNCTION}));
    prepare_inference(small_workload(), in_precision("bf16-mixed"), 1)({0, runs});
    at::removeCallback(handle);
    return casts.load();
  };
  const int once = casts_of(1);
  EXPECT_GT(once, 5) << "no weights are cast: the test sees nothing";
  EXPECT_EQ(casts_of(4), once);
}

TEST(BenchmarkTraining, ForbidsStepsThatMakeTheHostWait) {
  const auto watch = [](std::vector<std::string> overrides) {
    Workload workload = small_workload(std::move(overrides));
    workload.forbid_transfers = "error";
    watch_training(workload, {}, 2);
  };
  EXPECT_NO_THROW(watch({}));
  const std::string message =
      message_of<ConfigError>([&] { watch({"trainer.detect_anomaly=true"}); });
  EXPECT_NE(message.find("step 2 makes the host wait for the device (host read in backward)"),
            std::string::npos)
      << message;
}

TEST(BenchmarkInference, OptionsChangeTheOutputsNoMoreThanTheyMay) {
  const Workload workload = small_workload();
  const auto output = [&](const Variant& variant) {
    const Measured measured = prepare_inference(workload, variant, 2)({0, 1});
    EXPECT_EQ(measured.times.ms.size(), 1U);
    EXPECT_GT(measured.peak_bytes, 1e6);
    return measured.results.at(0);
  };
  const at::Tensor usual = output({});
  EXPECT_EQ(usual.sizes(), (std::vector<int64_t>{2, 1, 32, 32}));
  const auto off = [&](const Variant& variant) {
    return (output(variant) - usual).abs().max().item<double>();
  };
  Variant variant;
  variant.channels_last = false;
  EXPECT_LT(off(variant), 1e-5);
  for (const char* precision : {"bf16-mixed", "bf16-true"}) {
    EXPECT_GT(off(in_precision(precision)), 1e-4) << precision << " computes in float32";
    EXPECT_LT(off(in_precision(precision)), 0.2) << precision;
  }
  variant = {};
  variant.engine = "torchscript";
  EXPECT_LT(off(variant), 1e-5);
  EXPECT_NE(message_of<ConfigError>([&] {
              variant.engine = "cudagraph";
              output(variant);
            }).find("performance.backend=cudagraph: needs a GPU"),
            std::string::npos);
  variant = {};
  variant.tf32 = true;
  EXPECT_NE(message_of<ConfigError>([&] { output(variant); }).find("NVIDIA GPU"),
            std::string::npos);
}

TEST(BenchmarkTraining, IsTheExperimentsStep) {
  const std::vector<double> usual = losses_of(small_workload());
  ASSERT_EQ(usual.size(), 3U);
  EXPECT_LT(usual[2], usual[0]) << "nothing is learned";
  EXPECT_EQ(losses_of(small_workload()), usual) << "the same figures each time";

  const std::vector<double> still = losses_of(small_workload({"optimizer.lr=0"}));
  EXPECT_EQ(still[0], usual[0]);
  EXPECT_EQ(still[2], usual[0]) << "optimizer";
  const std::vector<double> clipped = losses_of(small_workload({"optimizer=sgd",
                                                                "optimizer.lr=1",
                                                                "optimizer.weight_decay=0",
                                                                "trainer.gradient_clip_val=1e-9"}));
  EXPECT_NEAR(clipped[2], usual[0], 1e-6) << "clipping";
  EXPECT_NE(losses_of(small_workload({"loss=dice"}))[0], usual[0]) << "loss";
}

TEST(BenchmarkTraining, OptionsGiveNearlyTheSameLosses) {
  const Workload workload = small_workload();
  const std::vector<double> usual = losses_of(workload);
  Variant last, first, fused, not_fused, checkpointing;
  last.channels_last = true;
  first.channels_last = false;
  fused.fused = true;
  not_fused.fused = false;
  checkpointing.gradient_checkpointing = true;
  for (const Variant& variant : {last, first, fused, not_fused, checkpointing})
    EXPECT_NEAR(losses_of(workload, variant)[2], usual[2], 1e-4) << variant.name();
  for (const char* precision : {"bf16-mixed", "16-mixed", "bf16-true"}) {
    const std::vector<double> losses = losses_of(workload, in_precision(precision));
    EXPECT_NEAR(losses[2], usual[2], 0.05) << precision;
    EXPECT_NE(losses[2], usual[2]) << precision << " computes in float32";
  }
}

TEST(BenchmarkTraining, CompiledStepsNeedAGpu) {
  Variant compiled;
  compiled.engine = "cudagraph";
  EXPECT_NE(
      message_of<ConfigError>([&] { losses_of(small_workload(), compiled); }).find("needs a GPU"),
      std::string::npos);
  const Workload asks = small_workload({"model.compile_model=true"});
  EXPECT_EQ(losses_of(asks), losses_of(small_workload())) << "made as they are";
}

TEST(BenchmarkTraining, TakesEveryTask) {
  const std::vector<std::vector<std::string>> experiments{
      {"experiment=im2im/segmentation", "num_classes=3"},
      {"experiment=im2im/segmentation", "num_classes=2", "multilabel=true"},
      {"experiment=im2im/segmentation", "target_values=[0,255]"},
      {"experiment=im2im/segmentation", "num_classes=3", "target_values=[5,7,9]"},
      {"experiment=im2im/labelfree"},
      {"experiment=im2im/multitask"},
      {"experiment=im2im/instance"},
      {"experiment=im2im/mae", "patch_shape=[32,32]"}};
  for (const std::vector<std::string>& overrides : experiments) {
    SCOPED_TRACE(overrides.front() + " " + overrides.back());
    const std::vector<double> losses = losses_of(workload_of(overrides, {2, 1, 32, 32}));
    EXPECT_TRUE(std::isfinite(losses.at(2)));
    EXPECT_NE(losses[0], 0);
  }
}

}  // namespace
}  // namespace cytra::app
