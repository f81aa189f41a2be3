#include "nn/recompute.h"

#include <unordered_map>

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/nn/modules/batchnorm.h>

#include "config/registry.h"
#include "nn/model.h"
#include "tests/support/golden.h"

namespace cytra::nn {
namespace {

std::shared_ptr<Model> model_of(const std::string& options, bool gradient_checkpointing) {
  at::manual_seed(0);
  const auto model = make<Model>(
      test::component("DynUNet", config::parse_yaml("{" + options + ", dropout: 0.2}", "test")));
  model->settings.gradient_checkpointing = gradient_checkpointing;
  return model;
}

/// Of two steps of two accumulated batches each: losses, gradients of the parameters and of the
/// images, and the generator's next numbers.
std::vector<at::Tensor> results(Model& model, const std::vector<int64_t>& shape, bool bf16) {
  std::vector<at::Tensor> all;
  at::manual_seed(1);
  for (int step = 0; step < 2; ++step) {
    for (int batch = 0; batch < 2; ++batch) {
      const at::Tensor image = at::randn(shape).requires_grad_();
      at::autocast::set_autocast_enabled(at::kCPU, bf16);
      at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
      const at::Tensor loss = model(image).to(at::kFloat).square().mean();
      at::autocast::clear_cache();
      at::autocast::set_autocast_enabled(at::kCPU, false);
      loss.backward();
      all.insert(all.end(), {loss.detach(), image.grad(), at::rand({3})});
    }
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : model.parameters()) {
      all.push_back(parameter.grad().clone());
      parameter.sub_(parameter.grad(), 0.1);
    }
    model.zero_grad();
  }
  return all;
}

void expect_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << i;
}

TEST(CheckpointDeathTest, ItsEngineIsThereAtOnceAndAHostsUntilTheFirstCheckpoint) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a new process, where nothing ran before
  const auto is_torchs = [] {
    torch::autograd::Engine& engine = torch::autograd::Engine::get_default_engine();
    return typeid(engine) == typeid(torch::autograd::Engine);
  };
  EXPECT_EXIT(
      {
        const bool is_ours = !is_torchs();
        torch::autograd::set_default_engine_stub(&torch::autograd::Engine::get_base_engine);
        const at::Tensor image = at::randn({1, 1, 16, 16});
        (*model_of("filters: [4, 6, 8]", false))(image).sum().backward();
        const bool is_hosts = is_torchs();
        (*model_of("filters: [4, 6, 8]", true))(image).sum().backward();
        std::exit(is_ours && is_hosts && !is_torchs() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0),
      "");
}

TEST(Checkpoint, IsBitEqualToThePlainPath) {
  struct Case {
    const char* options;
    std::vector<int64_t> shape;
    bool bf16;
  };
  const char* const residual = "filters: [6, 8, 10], res_block: true";
  const std::vector<Case> cases{
      {"filters: [6, 8, 10]", {2, 1, 16, 24}, false},
      {residual, {2, 1, 16, 24}, false},
      {residual, {2, 1, 16, 24}, true},
      {"spatial_dims: 3, filters: [4, 6, 8]", {1, 1, 8, 8, 12}, false},
      {"spatial_dims: 3, filters: [4, 6, 8], res_block: true", {1, 1, 8, 8, 12}, true}};
  for (const auto& [options, shape, bf16] : cases) {
    SCOPED_TRACE(std::string(options) + (bf16 ? ", bf16" : ""));
    expect_equal(results(*model_of(options, true), shape, bf16),
                 results(*model_of(options, false), shape, bf16));
    EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  }
}

TEST(Checkpoint, FirstLayerHasGradientsWhenTheImageHasNone) {
  const auto checkpointed = model_of("filters: [4, 6, 8]", true),
             plain = model_of("filters: [4, 6, 8]", false);
  const at::Tensor image = at::randn({1, 1, 16, 16});
  for (const auto& model : {checkpointed, plain}) {
    at::manual_seed(2);
    (*model)(image).square().mean().backward();
  }
  EXPECT_GT(checkpointed->parameters()[0].grad().abs().sum().item<double>(), 0);
  EXPECT_TRUE(at::equal(checkpointed->parameters()[0].grad(), plain->parameters()[0].grad()));
}

TEST(Checkpoint, AKeptGraphGoesBackTwice) {
  const auto model = model_of("filters: [4, 6, 8]", true);
  const at::Tensor loss = (*model)(at::randn({1, 1, 16, 16})).square().mean();
  loss.backward({}, /*retain_graph=*/true);
  const at::Tensor once = model->parameters()[0].grad().clone();
  loss.backward();
  EXPECT_TRUE(at::equal(model->parameters()[0].grad(), once * 2));
}

/// Batch norm, which changes its buffers, and dropout; counts its runs.
struct Noisy : torch::nn::Module {
  Noisy() : norm(register_module("norm", std::make_shared<torch::nn::BatchNorm2dImpl>(2))) {}
  at::Tensor forward(const at::Tensor& x) {
    ++runs;
    at::Tensor y = at::dropout(norm->forward(x), 0.5, is_training()) * x;
    if (saves_more_each_time) {
      for (int i = 0; i < runs; ++i) y = y.sigmoid();
    }
    return y;
  }
  std::shared_ptr<torch::nn::BatchNorm2dImpl> norm;
  int runs = 0;
  bool saves_more_each_time = false;
};

TEST(Checkpoint, BuffersChangeOnce) {
  const auto checkpointed = std::make_shared<Noisy>(), plain = std::make_shared<Noisy>();
  const at::Tensor image = at::randn({2, 2, 4, 4});
  at::manual_seed(5);
  checkpoint(checkpointed, image).sum().backward();
  at::manual_seed(5);
  plain->forward(image).sum().backward();
  EXPECT_EQ(checkpointed->runs, 2);
  EXPECT_EQ(checkpointed->norm->num_batches_tracked.item<int64_t>(), 1);
  EXPECT_TRUE(at::equal(checkpointed->norm->running_mean, plain->norm->running_mean));
  EXPECT_TRUE(at::equal(checkpointed->norm->weight.grad(), plain->norm->weight.grad()));
}

TEST(Checkpoint, TheSecondRunHasTheTrainingModeOfTheFirst) {
  const auto checkpointed = std::make_shared<Noisy>(), plain = std::make_shared<Noisy>();
  const at::Tensor image = at::randn({2, 2, 4, 4});
  for (const auto& block : {checkpointed, plain}) {
    at::manual_seed(5);
    const at::Tensor loss =
        (block == plain ? block->forward(image) : checkpoint(block, image)).sum();
    block->eval();
    loss.backward();
    EXPECT_FALSE(block->norm->is_training());
  }
  EXPECT_TRUE(at::equal(checkpointed->norm->weight.grad(), plain->norm->weight.grad()));
}

TEST(Checkpoint, RunsOnceWithoutGradients) {
  const auto block = std::make_shared<Noisy>();
  const at::NoGradGuard no_grad;
  checkpoint(block, at::randn({2, 2, 4, 4}));
  EXPECT_EQ(block->runs, 1);
}

TEST(Checkpoint, ABlockThatSavesOtherTensorsIsAnError) {
  const auto block = std::make_shared<Noisy>();
  block->saves_more_each_time = true;
  const at::Tensor loss = checkpoint(block, at::randn({2, 2, 4, 4})).sum();
  EXPECT_THROW(loss.backward(), std::logic_error);
}

/// Bytes taken by this thread's tensors and not given back.
struct Bytes final : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(
      void* address, int64_t bytes, std::size_t, std::size_t, c10::Device) override {
    if (bytes > 0) {
      live[address] = bytes;
    } else {
      live.erase(address);
    }
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t sum() const {
    int64_t total = 0;
    for (const auto& [address, bytes] : live) total += bytes;
    return total;
  }
  std::unordered_map<void*, int64_t> live;
};

int64_t kept_bytes(Model& model, const at::Tensor& image) {
  const auto bytes = std::make_shared<Bytes>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, bytes);
  const at::Tensor loss = model(image).square().mean();
  return bytes->sum();
}

TEST(Checkpoint, KeepsAThirdLessAtLeast) {
  for (const char* options : {"filters: [16, 32, 64]", "filters: [16, 32, 64], res_block: true"}) {
    const at::Tensor image = at::randn({1, 1, 64, 64});
    const int64_t plain = kept_bytes(*model_of(options, false), image);
    const int64_t checkpointed = kept_bytes(*model_of(options, true), image);
    EXPECT_GT(checkpointed, 0);
    EXPECT_LT(checkpointed, plain * 2 / 3) << options;
  }
}

}  // namespace
}  // namespace cytra::nn
