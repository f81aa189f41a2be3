#include "inference/engines/engine.h"

#include <algorithm>
#include <map>
#include <thread>

#include <torch/csrc/jit/api/module.h>

#include "base/error.h"
#include "config/registry.h"
#include "device/convolution.h"
#include "inference/engines/entry.h"
#include "inference/windows/window_run.h"
#include "nn/model.h"
#include "ops/conv/winograd/kernels.h"
#include "tests/inference/small_model.h"
#include "tests/support/message_of.h"

namespace cytra {
namespace {

using test::kModels;
using test::options_of;
using test::SmallModel;

TEST(Engine, TracedEqualsEager) {
  for (const char* text : kModels) {
    SmallModel small(text);
    const at::Tensor example = small.windows(3);
    const auto engine =
        inference::make_engine(small.engine_model(), options_of("torchscript"), example);
    EXPECT_EQ(engine->text(), "TorchScript, float32");
    for (const int64_t count : {3, 1, 2, 7}) {  // full, short and long batches
      const at::Tensor windows = small.windows(count);
      const std::vector<at::Tensor> made = engine->run(windows);
      ASSERT_EQ(made.size(), 1U);
      ASSERT_EQ(made[0].size(0), count);
      EXPECT_LT(test::max_difference(made[0], small.eager(windows)), 1e-4) << text << count;
    }
  }
}

TEST(Engine, AutoIsEagerWithoutAnythingFaster) {
  SmallModel small(kModels[0]);
  const auto engine =
      inference::make_engine(small.engine_model(), options_of("eager"), small.windows(2));
  EXPECT_EQ(engine->text(), "eager, float32");
  const at::Tensor windows = small.windows(2);
  EXPECT_TRUE(at::equal(engine->run(windows)[0], small.eager(windows)));
}

TEST(Engine, Bfloat16IsNearFloat32) {
  for (const char* backend : {"eager", "torchscript"}) {
    for (const char* precision : {"bf16-mixed", "bf16-true"}) {
      SmallModel small(kModels[0]);
      const at::Tensor windows = small.windows(2);
      const auto engine =
          inference::make_engine(small.engine_model(), options_of(backend, precision), windows);
      EXPECT_NE(engine->text().find("bfloat16"), std::string::npos);
      const at::Tensor made = engine->run(windows)[0];
      EXPECT_EQ(made.scalar_type(), at::kFloat);
      const double difference = test::max_difference(made, small.eager(windows));
      EXPECT_LT(difference, 0.3);  // of values up to 4, with 8 bits of mantissa
      EXPECT_GT(difference, 1e-5);
    }
  }
}

TEST(Engine, SeveralOutputs) {
  inference::EngineModel model{[](const at::Tensor& x) {
    return std::vector<at::Tensor>{x * 2, at::max_pool2d(x, 2), x.sum(1, true)};
  }};
  const at::Tensor windows = at::randn({2, 3, 8, 8});
  const auto engine = inference::make_engine(model, options_of("torchscript"), windows);
  for (const int64_t count : {2, 1, 5}) {
    const at::Tensor other = at::randn({count, 3, 8, 8});
    const std::vector<at::Tensor> made = engine->run(other), expected = model.forward(other);
    ASSERT_EQ(made.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_LT(test::max_difference(made[i], expected[i]), 1e-6);
  }
}

TEST(Engine, ASizeThatComesOftenGetsAnEngine) {
  SmallModel small(kModels[0]);
  const auto engine =
      inference::make_engine(small.engine_model(), options_of("torchscript"), small.windows(2));
  const at::Tensor other = small.windows(2, 48);
  const at::Tensor expected = small.eager(other);
  small.passes = 0;
  for (int pass = 0; pass < 8; ++pass)
    EXPECT_LT(test::max_difference(engine->run(other)[0], expected), 1e-4);
  const int passes = small.passes;
  EXPECT_LE(passes, 5);  // two eager, the trace, the comparison
  engine->run(other);
  EXPECT_EQ(small.passes, passes);
}

TEST(Engine, ThreadsMayShareIt) {
  SmallModel small(kModels[0]);
  const auto engine =
      inference::make_engine(small.engine_model(), options_of("torchscript"), small.windows(2));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int pass = 0; pass < 6; ++pass) {
        const at::Tensor windows = small.windows(1 + t, pass % 2 == 0 ? 32 : 16);
        if (test::max_difference(engine->run(windows)[0], small.eager(windows)) > 1e-4) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

/// An engine of the tests: what it is asked to be.
int given_rank = 0;
enum class Gives { unfit, failure, other_values } gives = Gives::unfit;
struct Odd final : inference::FixedEngine {
  std::vector<at::Tensor> run(const at::Tensor& windows) override { return {windows * 1.1}; }
  std::string text() const override { return "odd"; }
};
const bool added_odd = inference::add_engine(
    "odd",
    {[](const inference::EngineModel&, const inference::EngineOptions&) { return given_rank; },
     [](const inference::EngineModel&, const inference::EngineOptions&, const at::Tensor&)
         -> std::unique_ptr<inference::FixedEngine> {
       if (gives == Gives::unfit) throw inference::EngineUnfit("no aten::odd there", false);
       if (gives == Gives::failure) throw std::runtime_error("the library broke");
       return std::make_unique<Odd>();
     }});

TEST(Engine, AutoFallsBackAndSaysWhy) {
  const inference::EngineModel model{
      [](const at::Tensor& x) { return std::vector<at::Tensor>{x.clone()}; }};
  const at::Tensor windows = at::randn({1, 1, 8, 8});
  given_rank = 100;
  for (const auto& [given, why] :
       std::map<Gives, std::string>{{Gives::unfit, "no aten::odd there"},
                                    {Gives::failure, "the library broke"},
                                    {Gives::other_values, "differs from eager float32 by"}}) {
    gives = given;
    testing::internal::CaptureStderr();
    const auto engine = inference::make_engine(model, options_of("auto"), windows);
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_NE(log.find(why), std::string::npos) << log;
    EXPECT_TRUE(at::equal(engine->run(windows)[0], windows));
    const std::string message =
        message_of<ConfigError>([&] { inference::make_engine(model, options_of("odd"), windows); });
    EXPECT_NE(message.find(why), std::string::npos) << message;
  }
  given_rank = 0;
}

/// An engine of a fixed number of windows that finds memory for `room` of them.
int64_t room = 0;
std::vector<int64_t> made_for;  // numbers of windows
struct Narrow final : inference::FixedEngine {
  explicit Narrow(int64_t windows) : windows(windows) { made_for.push_back(windows); }
  std::vector<at::Tensor> run(const at::Tensor& given) override {
    TORCH_CHECK_WITH(OutOfMemoryError, given.size(0) <= room, "no memory");
    return {given.clone()};
  }
  int64_t count() const override { return windows; }
  std::string text() const override { return "narrow"; }
  const int64_t windows;
};
const bool added_narrow = inference::add_engine(
    "narrow",
    {[](const inference::EngineModel&, const inference::EngineOptions&) { return 0; },
     [](const inference::EngineModel&, const inference::EngineOptions&, const at::Tensor& example)
         -> std::unique_ptr<inference::FixedEngine> {
       return std::make_unique<Narrow>(example.size(0));
     }});

TEST(Engine, FewerWindowsAfterOutOfMemoryAreNotPaddedToTheOldNumber) {
  const inference::EngineModel model{[](const at::Tensor& x) {
    TORCH_CHECK_WITH(OutOfMemoryError, x.size(0) <= room, "no memory");
    return std::vector<at::Tensor>{x.clone()};
  }};
  const at::Tensor windows = at::randn({8, 1, 8, 8});
  room = 8;
  made_for.clear();
  const auto engine = inference::make_engine(model, options_of("narrow"), windows);
  EXPECT_TRUE(at::equal(engine->run(windows)[0], windows));
  room = 3;  // others took the rest
  inference::AdaptiveBatch adaptive;
  for (int pass = 0; pass < 4; ++pass) {
    const auto made = adaptive([&](const at::Tensor& part) { return engine->run(part); }, windows);
    EXPECT_TRUE(at::equal(made[0], windows));
  }
  EXPECT_EQ(made_for, (std::vector<int64_t>{8, 2}));
}

TEST(Engine, WhatATraceCannotSeeIsNoticed) {
  const inference::EngineModel model{[](const at::Tensor& x) {
    const at::Tensor made = at::empty_like(x);
    std::transform(x.const_data_ptr<float>(),
                   x.const_data_ptr<float>() + x.numel(),
                   made.mutable_data_ptr<float>(),
                   [](float value) { return value * 2; });
    return std::vector<at::Tensor>{made};
  }};
  const at::Tensor windows = at::randn({1, 1, 8, 8});
  EXPECT_THROW(inference::make_engine(model, options_of("torchscript"), windows), ConfigError);
  const auto engine = inference::make_engine(model, options_of("auto"), windows);
  EXPECT_EQ(engine->text(), "eager, float32");
  EXPECT_TRUE(at::equal(engine->run(windows)[0], windows * 2));
}

TEST(Engine, RefusesWhatItCannotDo) {
  SmallModel small(kModels[0]);
  EXPECT_THROW(
      inference::make_engine(small.engine_model(), options_of("eager", "64"), small.windows(1)),
      ConfigError);
  inference::EngineOptions options = options_of("torchscript");
  options.quantization = "int8";
  EXPECT_THROW(inference::make_engine(small.engine_model(), options, small.windows(1)),
               ConfigError);
}

TEST(Engine, Int8DynamicQuantizesLinearLayers) {
  SmallModel small(
      "{_target_: UNETR, img_size: [32, 32], spatial_dims: 2, in_channels: 1, out_channels: 2, "
      "hidden_size: 48, mlp_dim: 96, num_heads: 4}");
  inference::EngineOptions options = options_of("auto");
  options.quantization = "int8_dynamic";
  testing::internal::CaptureStderr();
  const auto engine = inference::make_engine(small.engine_model(), options, small.windows(2));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(engine->text(), "eager, 48 linear layers in int8, float32");  // 12 blocks of 4
  EXPECT_NE(log.find("differs from eager float32 by"), std::string::npos) << log;
  for (const int64_t count : {2, 3}) {
    const at::Tensor windows = small.windows(count);
    const at::Tensor made = engine->run(windows)[0], expected = small.eager(windows);
    const double off = (made - expected).square().mean().sqrt().item<double>();
    EXPECT_LT(off, 0.05 * expected.square().mean().sqrt().item<double>());
    EXPECT_GT(off, 0);
    EXPECT_TRUE(small.eager(windows).equal(expected));  // the model itself is as it was
  }
  options.precision = "bf16";
  EXPECT_EQ(inference::make_engine(small.engine_model(), options, small.windows(2))->text(),
            "eager, 48 linear layers in int8, bfloat16");
}

TEST(Engine, Int8DynamicNeedsLinearLayersAndACpu) {
  SmallModel small(kModels[0]);
  inference::EngineOptions options = options_of("auto");
  options.quantization = "int8_dynamic";
  const std::string message = message_of<ConfigError>(
      [&] { inference::make_engine(small.engine_model(), options, small.windows(1)); });
  EXPECT_NE(message.find("performance.quantization=int8_dynamic: the model has no linear layers"),
            std::string::npos)
      << message;
  EXPECT_NE(message_of<ConfigError>([&] { inference::expect_engine(options, c10::kCUDA); }), "");
  options.backend = "openvino";
  EXPECT_NE(message_of<ConfigError>([&] { options.check(); }).find("performance.backend=eager"),
            std::string::npos);
}

TEST(Engine, TracedEnginesTakeTheFusionStrategy) {
  SmallModel small(kModels[0]);
  inference::EngineOptions options = options_of("torchscript");
  const auto given = [&](const std::string& text) {
    options.fusion_strategy = config::parse_yaml("{a: " + text + "}", "test").at("a");
  };
  using torch::jit::FusionBehavior;
  given("[[STATIC, 3], [dynamic, 7]]");
  inference::make_engine(small.engine_model(), options, small.windows(1));
  const torch::jit::FusionStrategy strategy{{FusionBehavior::STATIC, 3},
                                            {FusionBehavior::DYNAMIC, 7}};
  EXPECT_EQ(torch::jit::getFusionStrategy(), strategy);
  for (const auto& [text, hint] :
       std::map<std::string, std::string>{{"[[STATC, 2]]", "Did you mean 'static'?"},
                                          {"[[STATIC, 0]]", "from 1 to 1000"},
                                          {"[STATIC, 2]", "[[STATIC, 2], [DYNAMIC, 10]]"},
                                          {"STATIC", "[[STATIC, 2], [DYNAMIC, 10]]"}}) {
    given(text);
    const std::string message = message_of<ConfigError>([&] { options.check(); });
    EXPECT_NE(message.find(hint), std::string::npos) << text << ": " << message;
  }
}

/// A network of 3x3 convolutions with 32 channels.
TEST(Engine, AutoIsEagerWhereWinogradsConvolutionsSpareEnough) {
  if (ops::cpu::winograd_kernels() == nullptr) GTEST_SKIP() << "a processor without AVX2";
  at::manual_seed(1);
  const auto model = make<nn::Model>(
      "{_target_: DynUNet, filters: [32, 32], strides: [1, 2], kernel_size: [3, 3], "
      "upsample_kernel_size: [2]}");
  model->eval();
  for (at::Tensor& parameter : model->parameters()) parameter.requires_grad_(false);
  nn::place(*model, at::kCPU);
  inference::EngineModel forward;
  int passes = 0;
  forward.forward = [&](const at::Tensor& x) {
    ++passes;
    return std::vector<at::Tensor>{(*model)(x)};
  };
  const at::Tensor windows = at::randn({3, 1, 64, 64}), others = at::randn({2, 1, 48, 80});
  const auto engine = inference::make_engine(forward, options_of("auto"), windows);
  EXPECT_EQ(engine->text(), "eager, float32");
  for (const at::Tensor& some : {windows, others, windows}) {
    const at::Tensor values = engine->run(some)[0];
    device::set_conv_algorithm(device::ConvAlgorithm::direct);
    const at::Tensor exact = (*model)(some);
    device::set_conv_algorithm(device::ConvAlgorithm::automatic);
    EXPECT_LT(test::max_difference(values, exact), 1e-4 * exact.abs().max().item<double>());
    EXPECT_GT(test::max_difference(values, exact), 0);
  }
  // The window by which it was chosen is not predicted again, unless its memory holds another.
  at::Tensor one = at::randn({1, 1, 64, 64});
  for (const int more : {0, 1}) {
    const auto chosen = inference::make_engine(forward, options_of("auto"), one);
    if (more == 1) one.normal_();
    const at::Tensor expected = (*model)(one);
    passes = 0;
    const at::Tensor values = chosen->run(one)[0];
    EXPECT_LT(test::max_difference(values, expected), 1e-4 * expected.abs().max().item<double>());
    EXPECT_EQ(passes, more);
    EXPECT_TRUE(chosen->run(one)[0].equal(values));
    EXPECT_EQ(passes, more + 1);
  }
}

}  // namespace
}  // namespace cytra
