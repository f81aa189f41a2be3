// The same on a GPU as on the CPU. Skipped without one; with CYTRA_REQUIRE_GPU=1 that is a failure.
#include <cstdlib>
#include <map>
#include <thread>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "config/registry.h"
#include "data/loader/batch.h"
#include "data/loader/batch_transform.h"
#include "data/loader/device_feed.h"
#include "data/loader/loader.h"
#include "data/sample/sample.h"
#include "device/cuda_graph.h"
#include "device/device.h"
#include "device/memory.h"
#include "inference/engines/engine.h"
#include "inference/windows/slabs.h"
#include "inference/windows/sliding_window.h"
#include "nn/loss.h"
#include "nn/model.h"
#include "ops/labels/distance.h"
#include "ops/norm/norm.h"
#include "ops/windows/sums.h"
#include "tests/inference/window_model.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"
#include "training/optimizer.h"
#include "training/scheduler.h"
#include "training/task.h"
#include "training/trainer.h"

namespace cytra {
namespace {

class Cuda : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      device::choose_device("gpu");
    } catch (const ConfigError& error) {
      if (const char* required = std::getenv("CYTRA_REQUIRE_GPU");
          required != nullptr && std::string(required) == "1")
        FAIL() << error.what();
      GTEST_SKIP() << error.what();
    }
    use_tf32(false);  // torch's default for convolutions; its 10 bits would hide what is compared
  }
  static void use_tf32(bool use) {
    at::globalContext().setFloat32MatmulPrecision(use ? "high" : "highest");
    at::globalContext().setAllowTF32CuDNN(use);
  }

  /// The largest difference from the CPU's logits of a whole image.
  static double logits_difference(const char* topic) {
    const test::Golden golden(topic);
    const test::GoldenCase& image = golden.at("image");
    config::Node options = config::Node::make_map();
    for (const char* key : {"spatial_dims", "in_channels", "out_channels", "filters"})
      options.set(key, golden.at("forward").options().at(key));
    const auto model = make<nn::Model>(test::component("DynUNet", options));
    nn::load_state(*model, golden.file.tensors(), golden.path, "model.", nn::Fit::all);
    model->eval();
    model->to(at::kCUDA);
    const c10::InferenceMode inference_mode;
    const auto window = config::parse<inference::SlidingWindowOptions>(image.options());
    const at::Tensor logits = inference::sliding_window(
        image.tensor("image").to(at::kCUDA),
        [&](const at::Tensor& x) { return (*model)(x); },
        window);
    return test::max_difference(logits.cpu(), image.tensor("image_logits"));
  }
};

TEST_F(Cuda, EnginesGiveEagersValues) {
  const auto model = make<nn::Model>("{_target_: DynUNet, filters: [4, 8, 16]}");
  model->eval();
  for (at::Tensor& parameter : model->parameters()) parameter.requires_grad_(false);
  nn::place(*model, at::kCUDA);
  inference::EngineModel engine_model{
      [&](const at::Tensor& x) { return std::vector<at::Tensor>{(*model)(x)}; }, at::kCUDA};
  for (const auto& [mode, text] : std::map<std::string, std::string>{
           {"default", "TorchScript, float32"},
           {"reduce-overhead", "CUDA graph, float32"},
           {"max-autotune", "TorchScript in a CUDA graph, float32"}}) {
    inference::EngineOptions options;
    options.compile_model = true;
    options.compile_mode = mode;
    const auto engine = inference::make_engine(
        engine_model, options, at::randn({3, 1, 32, 32}, at::device(at::kCUDA)));
    EXPECT_EQ(engine->text(), text);
    for (const int64_t count : {3, 2, 7, 3}) {
      const at::Tensor windows = at::randn({count, 1, 32, 32}, at::device(at::kCUDA));
      const c10::InferenceMode inference_mode;
      EXPECT_LT(test::max_difference(engine->run(windows)[0].cpu(), (*model)(windows).cpu()), 1e-4);
    }
  }
}

TEST_F(Cuda, AGraphReplaysItsCall) {
  using Tensors = std::vector<at::Tensor>;
  const auto model = make<nn::Model>("{_target_: DynUNet, filters: [4, 8, 16]}");
  model->eval();
  nn::place(*model, at::kCUDA);
  int64_t calls = 0;
  const auto call = [&](const Tensors& inputs) {
    ++calls;
    return Tensors{(*model)(inputs[0]) * inputs[1], inputs[0].mean()};
  };
  const auto image = [](const std::vector<int64_t>& shape) {
    return at::randn(shape, at::device(at::kCUDA));
  };
  device::CUDAGraphWrapper graph(call, {image({2, 1, 32, 32}), image({1})});
  EXPECT_EQ(calls, 5);
  const c10::InferenceMode inference_mode;
  const auto expect_replay = [&](const Tensors& inputs) {
    const Tensors played = graph(inputs),
                  expected = call({inputs[0].to(at::kCUDA), inputs[1].to(at::kCUDA)});
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_LT(test::max_difference(played[i].cpu(), expected[i].cpu()), 1e-5) << i;
  };
  const at::Tensor last = image({2, 1, 32, 32}).contiguous(at::MemoryFormat::ChannelsLast);
  for (const Tensors& inputs : std::vector<Tensors>{{image({2, 1, 32, 32}), image({1})},
                                                    {last, image({1})},
                                                    {at::randn({2, 1, 32, 32}), at::randn({1})}})
    expect_replay(inputs);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const c10::InferenceMode of_thread;
      for (int turn = 0; turn < 20; ++turn) {
        const Tensors inputs{image({2, 1, 32, 32}), image({1})};
        const at::Tensor expected = (*model)(inputs[0]) * inputs[1];
        EXPECT_LT(test::max_difference(graph(inputs)[0].cpu(), expected.cpu()), 1e-5);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(message_of<DataError>([&] {
              graph({image({3, 1, 32, 32}), image({1})});
            }).find("input 0 is Float (3,1,32,32), it was recorded with Float (2,1,32,32)"),
            std::string::npos);
}

TEST_F(Cuda, AGraphThatIsNotItsCallIsRefused) {
  using Tensors = std::vector<at::Tensor>;
  const at::Tensor sample = at::randn({64}, at::device(at::kCUDA));
  const auto said = [&](const device::CUDAGraphWrapper::Call& call) {
    return message_of<ConfigError>([&] { device::CUDAGraphWrapper graph(call, {sample}); });
  };
  double counted = 0;
  EXPECT_NE(said([&](const Tensors& inputs) {
              return Tensors{inputs[0] * ++counted};
            }).find("depends on more than its inputs"),
            std::string::npos);
  EXPECT_NE(said([](const Tensors& inputs) {
              return Tensors{inputs[0] * inputs[0].sum().item<double>()};
            }).find("waits for the GPU"),
            std::string::npos);
  // and the device is as it was
  EXPECT_LT(test::max_difference((sample * 2).cpu(), sample.cpu() * 2), 1e-6);
}

TEST_F(Cuda, WholeImageLogitsEqualTheCpu) {
  for (const char* topic : {"dynunet_2d", "dynunet_3d"})
    EXPECT_LT(logits_difference(topic), 1e-3) << topic;  // cuDNN sums in another order
}

TEST_F(Cuda, WithTf32LogitsAreNear) {
  use_tf32(true);
  for (const char* topic : {"dynunet_2d", "dynunet_3d"})
    EXPECT_LT(logits_difference(topic), 0.1) << topic;  // a product is right to 2^-11
}

TEST_F(Cuda, SeveralClassesTrainDeterministically) {
  device::prepare({}, "true");
  const config::Node node = config::parse_yaml(
      "{_target_: SegmentationTask, model: {_target_: DynUNet, out_channels: 3}, loss: {_target_: "
      "DiceCELoss, softmax: true, to_onehot_y: true}, inference_args: {}}",
      "test");
  std::vector<at::Tensor> gradients;
  for (int run = 0; run < 2; ++run) {
    at::manual_seed(0);
    const auto task = make<training::Task>(node);
    data::Batch batch;
    batch.tensors["raw"] = at::randn({2, 1, 32, 32}).to(at::kCUDA);
    batch.tensors["seg"] = at::randint(3, {2, 1, 32, 32}).to(at::kFloat).to(at::kCUDA);
    task->model().to(at::kCUDA);
    task->training_step(batch).backward();
    gradients.push_back(task->model().parameters().front().grad().cpu());
  }
  at::globalContext().setDeterministicAlgorithms(false, false);
  EXPECT_TRUE(gradients[0].equal(gradients[1]));
}

TEST_F(Cuda, ATrainingStepEqualsTheCpus) {
  const config::Node node = config::parse_yaml(
      "{_target_: SegmentationTask, model: {_target_: DynUNet}, loss: {_target_: DiceCELoss, "
      "sigmoid: true}, inference_args: {}}",
      "test");
  std::vector<double> losses;
  for (const c10::DeviceType device : {at::kCPU, at::kCUDA}) {
    at::manual_seed(0);
    const auto task = make<training::Task>(node);
    const auto optimizer =
        make<training::Optimizer>(config::parse_yaml("{_target_: AdamW}", "test"));
    data::Batch batch;
    batch.tensors["raw"] = at::randn({2, 1, 32, 32});
    batch.tensors["seg"] = at::randint(2, {2, 1, 32, 32}).to(at::kFloat);
    for (auto& [key, tensor] : batch.tensors) tensor = tensor.to(device);
    task->model().to(device);
    optimizer->attach(task->model().named_parameters().pairs());
    for (int step = 0; step < 3; ++step) {
      const at::Tensor loss = task->training_step(batch);
      loss.backward();
      optimizer->step({1e-3});
      optimizer->zero_grad();
      losses.push_back(loss.item<double>());
    }
  }
  for (int step = 0; step < 3; ++step) EXPECT_NEAR(losses[step], losses[3 + step], 1e-3);
}

/// Parameters, then the optimizer's state by name, after six steps on a device, one of them bad,
/// one without a gradient of all.
std::vector<at::Tensor> after_updates(const std::string& text, c10::DeviceType device) {
  at::manual_seed(0);
  training::NamedParameters parameters;
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{8, 4, 3, 3}, {8}, {6, 8, 3, 3}, {6}, {2, 6, 1, 1}, {1}}) {
    at::Tensor values = at::randn(shape);
    if (shape.size() == 4) values = values.contiguous(at::MemoryFormat::ChannelsLast);
    parameters.emplace_back("p" + std::to_string(parameters.size()),
                            values.to(device).requires_grad_(true));
  }
  const auto optimizer = make<training::Optimizer>(config::parse_yaml(text, "test"));
  optimizer->attach(parameters);
  for (int step = 0; step < 6; ++step) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const at::Tensor& parameter = parameters[i].second;
      const at::Tensor gradient = at::randn(parameter.sizes()) * 8;
      if (step == 3 && i == 2) continue;
      parameter.mutable_grad() = at::empty_like(parameter).copy_(gradient.to(device));
      if (step == 2) parameter.mutable_grad().fill_(INFINITY);
    }
    const at::Tensor one = at::ones({}, at::device(device));
    optimizer->step({1e-2, std::nullopt, one * 8, one * (step == 2 ? 1 : 0)});
    optimizer->zero_grad();
  }
  std::vector<at::Tensor> all;
  for (const auto& [name, parameter] : parameters) all.push_back(parameter.detach().cpu());
  for (const auto& [name, tensor] : optimizer->state()) all.push_back(tensor.cpu());
  return all;
}

TEST_F(Cuda, UpdatesOfOptimizersWithoutAFusedKernelEqualTheCpus) {
  for (const char* text : {"{_target_: Novograd, weight_decay: 0.01}",
                           "{_target_: Novograd, amsgrad: true, grad_averaging: true}",
                           "{_target_: Novograd, foreach: false}",
                           "{_target_: Lion}",
                           "{_target_: NAdam}"}) {
    SCOPED_TRACE(text);
    const std::vector<at::Tensor> expected = after_updates(text, at::kCPU),
                                  found = after_updates(text, at::kCUDA);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_TRUE(found[i].isfinite().all().item<bool>()) << i;
      EXPECT_LT(test::max_difference(found[i], expected[i]), 1e-5) << i;
    }
  }
}

TEST_F(Cuda, NormsEqualTheCpus) {
  at::manual_seed(0);
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    for (const auto& [type, tolerance] : std::map<at::ScalarType, double>{
             {at::kFloat, 1e-4}, {at::kBFloat16, 5e-2}, {at::kHalf, 1e-2}}) {
      for (const std::vector<int64_t>& shape :
           {std::vector<int64_t>{2, 6, 33, 47}, {1, 70, 300, 200}}) {
        std::vector<at::Tensor> results;  // output and three gradients, of each device
        const at::Tensor x = (at::randn(shape) * 2 + 3).to(type).contiguous(format),
                         grad = at::randn(shape).to(type).contiguous(format),
                         weight = at::rand({shape[1]}) + 0.5, bias = at::randn({shape[1]});
        for (const c10::DeviceType device : {at::kCPU, at::kCUDA}) {
          const auto leaf = [&](const at::Tensor& tensor) {
            const auto to = device == at::kCPU ? at::kFloat : tensor.scalar_type();
            return tensor.to(device, to).detach().requires_grad_(true);
          };
          const at::Tensor input = leaf(x), w = leaf(weight), b = leaf(bias);
          const at::Tensor y =
              ops::group_norm(input, 2, w, b, 1e-5, {ops::Activation::kLeakyRelu, 0.01});
          y.backward(grad.to(y.options()));
          for (const at::Tensor& tensor : {y, input.grad(), w.grad(), b.grad()})
            results.push_back(tensor.detach().to(at::kCPU, at::kFloat));
          EXPECT_TRUE(y.is_contiguous(format));
        }
        for (std::size_t i = 0; i < 4; ++i) {
          const double size = results[i].abs().max().item<double>();
          EXPECT_LT(test::max_difference(results[4 + i], results[i]), tolerance * size) << i;
        }
      }
    }
  }
}

TEST_F(Cuda, LossesEqualMonaiTorchAndNnunet) {
  for (const char* topic : {"losses", "losses_shape"}) {
    const test::Golden golden(topic);
    for (const test::GoldenCase& entry : golden.cases(52)) {
      const auto name = entry.node.get<std::string>("loss");
      if (name == "levels") continue;
      const auto loss = make<nn::Loss>(test::component("monai.losses." + name, entry.options()));
      const at::Tensor target = entry.tensor("target").to(at::kCUDA);
      for (const bool channels_last : {false, true}) {
        SCOPED_TRACE(entry.name + (channels_last ? ", channels last" : ""));
        at::Tensor logits = entry.tensor("logits").to(at::kCUDA);
        if (channels_last && (logits.dim() < 4 || logits.dim() > 5)) continue;
        if (channels_last)
          logits = logits.contiguous(logits.dim() == 4 ? at::MemoryFormat::ChannelsLast
                                                       : at::MemoryFormat::ChannelsLast3d);
        logits.requires_grad_(true);
        const at::Tensor value = (*loss)(logits, target);
        value.backward();
        EXPECT_LT(test::relative_difference(value.reshape({1}).cpu(), entry.tensor("loss")), 1e-4);
        EXPECT_LT(test::relative_difference(logits.grad().cpu(), entry.tensor("grad")), 1e-4);
      }
    }
  }
}

TEST_F(Cuda, ClassLossesTakeHalfPrecision) {
  at::manual_seed(0);
  for (const char* text : {"DiceCELoss, softmax: true, to_onehot_y: true",
                           "TverskyLoss, softmax: true, to_onehot_y: true",
                           "CrossEntropyLoss"}) {
    const auto loss = make<nn::Loss>(std::string("{_target_: ") + text + "}");
    const at::Tensor logits = at::randn({3, 4, 65, 67}), target = at::randint(4, {3, 1, 65, 67});
    for (const auto& [type, tolerance] :
         std::map<at::ScalarType, double>{{at::kBFloat16, 2e-2}, {at::kHalf, 2e-3}}) {
      std::vector<at::Tensor> results;
      for (const c10::DeviceType device : {at::kCPU, at::kCUDA}) {
        const at::Tensor x = logits.to(type).to(device).detach().requires_grad_(true);
        const at::Tensor value = (*loss)(x, target.to(at::kFloat).to(device));
        value.backward();
        EXPECT_EQ(value.scalar_type(), at::kFloat);
        results.push_back(value.detach().cpu().reshape({1}));
        results.push_back(x.grad().to(at::kCPU, at::kFloat));
      }
      EXPECT_LT(test::relative_difference(results[2], results[0]), 1e-4) << text;
      EXPECT_LT(test::relative_difference(results[3], results[1]), tolerance) << text;
    }
  }
}

TEST_F(Cuda, WindowsEqualMonai) {
  for (const char* topic : {"windows_2d", "windows_3d", "windows_outputs", "windows_spacing"}) {
    const test::Golden golden(topic);
    for (const test::GoldenCase& entry : golden.cases(28)) {
      if (!entry.has("output_0")) continue;
      SCOPED_TRACE(std::string(topic) + ", " + entry.name);
      const std::vector<at::Tensor> outputs =
          inference::sliding_window(entry.tensor("input").to(at::kCUDA),
                                    test::window_model(entry),
                                    test::window_options(entry));
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const at::Tensor expected = entry.tensor("output_" + std::to_string(i));
        EXPECT_LT(test::relative_difference(outputs[i].cpu(), expected), 5e-6) << i;
      }
    }
  }
}

TEST_F(Cuda, SlabsEqualTheCpus) {
  at::manual_seed(0);
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{2, 70, 45}, {1, 40, 19, 23}}) {
    for (const char* padding : {"constant", "reflect"}) {
      const at::Tensor image = at::randn(shape);
      inference::SlidingWindowOptions options;
      options.roi_size = {16};
      options.roi_size.resize(shape.size() - 1, 24);
      options.overlap = {0.5};
      options.padding_mode = padding;
      for (const auto range : {inference::RowRange{}, inference::RowRange{9, 31}}) {
        std::vector<at::Tensor> results;
        for (const char* device : {"cpu", "cuda"}) {
          options.sw_device = options.device = device;
          std::vector<at::Tensor> rows;
          int64_t next = range.begin;
          const int64_t bad = inference::predict_slabs(
              {shape, [&](int64_t first, int64_t count) { return image.narrow(1, first, count); }},
              [](const at::Tensor& x) { return std::vector<at::Tensor>{x * 2 + x.mean()}; },
              options,
              {ops::Finish::Kind::sigmoid},
              [&](int64_t first, const std::vector<at::Tensor>& values) {
                EXPECT_EQ(first, next);
                EXPECT_TRUE(values[0].is_cpu());
                next += values[0].size(1);
                rows.push_back(values[0].clone());
              },
              {},
              range);
          EXPECT_EQ(bad, 0);
          results.push_back(at::cat(rows, 1));
        }
        ASSERT_EQ(results[1].sizes(), results[0].sizes());
        EXPECT_LT(test::max_difference(results[1], results[0]), 1e-5);
      }
    }
  }
}

TEST_F(Cuda, SlabsCountWhatIsNotFinite) {
  at::Tensor image = at::zeros({1, 90, 20});
  image[0][60][3] = NAN;
  image[0][70][4] = INFINITY;
  inference::SlidingWindowOptions options;
  options.roi_size = {16, 16};
  options.sw_device = options.device = "cuda";
  int64_t rows = 0;
  const int64_t bad = inference::predict_slabs(
      {{1, 90, 20}, [&](int64_t first, int64_t count) { return image.narrow(1, first, count); }},
      [](const at::Tensor& x) { return std::vector<at::Tensor>{x}; },
      options,
      {},
      [&](int64_t, const std::vector<at::Tensor>& values) { rows += values[0].size(1); });
  EXPECT_EQ(bad, 2);
  EXPECT_LE(rows, 60);
  EXPECT_GE(rows, 40);
}

TEST_F(Cuda, DistancesEqualTheCpus) {
  const at::Tensor masks = at::rand({2, 40, 50}).lt(0.9);
  const at::Tensor found = ops::distance_transforms(masks.to(at::kCUDA)).cpu();
  for (int64_t i = 0; i < 2; ++i)
    EXPECT_TRUE(found[i].allclose(ops::distance_transform(masks[i]), 1e-6, 0));
}

TEST_F(Cuda, ToHostGivesThePresentValues) {
  const at::Tensor there = at::zeros({1 << 20}, at::device(at::kCUDA));
  for (int i = 1; i < 5; ++i) {
    there.add_(1);
    EXPECT_EQ(device::to_host(there).sum().item<double>(), i * (1 << 20));
  }
}

/// Random images of a place in the set.
struct Noise final : data::Transform {
  bool is_random() const override { return true; }
  void apply(data::Sample& sample, Rng& rng) const override {
    sample.tensors["raw"] = at::full({1, 32, 32}, rng.uniform()) + at::arange(32) / 32;
    sample.tensors["seg"] = sample.tensors["raw"].gt(1).to(at::kFloat);
  }
};

/// The weights after 30 steps, with dropout, clipping, a schedule and a last batch that is smaller.
std::vector<at::Tensor> weights_after(const std::string& compiles, const std::string& precision) {
  at::manual_seed(0);
  const auto task = make<training::Task>(config::parse_yaml(
      std::string(
          "{_target_: SegmentationTask, model: {_target_: DynUNet, filters: [8, 16], dropout: "
          "0.2, compile_model: ") +
          compiles + "}, loss: {_target_: DiceCELoss, sigmoid: true}, inference_args: {}}",
      "test"));
  nn::place(task->model(), at::kCUDA);
  const auto optimizer = make<training::Optimizer>(config::parse_yaml("{_target_: AdamW}", "test"));
  const auto scheduler = make<training::Scheduler>(
      config::parse_yaml("{_target_: CosineAnnealingLR, warmup_steps: 3}", "test"));
  training::Trainer trainer(
      config::parse<training::TrainerOptions>(config::parse_yaml(
          "{max_epochs: 6, gradient_clip_val: 1, enable_progress_bar: false, precision: " +
              precision + "}",
          "test")),
      *task,
      *optimizer,
      *scheduler);
  data::DataLoaderSpec spec;
  for (int i = 0; i < 18; ++i) {
    spec.items.emplace_back();
    spec.items.back().id = std::to_string(i);
  }
  spec.transforms = {std::make_shared<Noise>()};
  spec.options.batch_size = 4;
  spec.options.num_workers = 2;
  spec.options.drop_last = false;
  spec.pin = true;
  data::DataLoader train(std::move(spec)), none({});
  trainer.fit(train, none);
  std::vector<at::Tensor> weights;
  for (const at::Tensor& parameter : task->model().parameters())
    weights.push_back(parameter.detach().cpu());
  return weights;
}

TEST_F(Cuda, RecordedStepsTrainAsThoseThatAreNot) {
  const std::string path = testing::TempDir() + "recorded_steps.log";
  for (const char* precision : {"32", "bf16-mixed", "16-mixed"}) {
    SCOPED_TRACE(precision);
    const std::vector<at::Tensor> eager = weights_after("false", precision);
    log::set_file(path);
    const std::vector<at::Tensor> recorded = weights_after("true", precision);
    log::set_file("");
    for (std::size_t i = 0; i < eager.size(); ++i)
      EXPECT_LT(test::max_difference(recorded[i], eager[i]), 2e-3);  // of Adam's 30 steps of 1e-3
  }
  EXPECT_EQ(read_file(path).find("not recorded"), std::string::npos) << read_file(path);
}

// So that a training may be taken up, and decide otherwise.
TEST_F(Cuda, StepsAreTheSameToTheBitWhateverIsDecidedOfThem) {
  device::prepare({}, "true");
  for (const char* precision : {"32", "bf16-mixed", "16-mixed"}) {
    const std::vector<at::Tensor> recorded = weights_after("true", precision),
                                  open = weights_after("null", precision);
    for (std::size_t i = 0; i < open.size(); ++i)
      EXPECT_TRUE(open[i].equal(recorded[i])) << precision << ", parameter " << i;
  }
  at::globalContext().setDeterministicAlgorithms(false, false);
  at::globalContext().setDeterministicCuDNN(false);
}

TEST_F(Cuda, BatchTransformsEqualTheCpus) {
  for (const char* text :
       {"RandFlipd",
        "RandAxisFlipd",
        "RandRotate90d",
        "RandGaussianSmoothd",
        "RandGaussianNoised",
        "RandAdjustContrastd",
        "MixUpd",
        "CutMixd",
        "RandAffined, rotate_range: [1, 1, 1], scale_range: 0.2",
        "Rand2DElasticd, spacing: 8, magnitude_range: [1, 3], rotate_range: 1",
        "Rand3DElasticd, sigma_range: [1, 3], magnitude_range: [10, 50], rotate_range: 1"}) {
    for (const std::vector<int64_t>& size : {std::vector<int64_t>{64, 64}, {16, 16, 16}}) {
      const std::string name(text);
      if (name.find(size.size() == 2 ? "3D" : "2D") != std::string::npos) continue;
      if (name.find("[1, 1, 1]") != std::string::npos && size.size() == 2) continue;
      SCOPED_TRACE(name);
      const bool mixes = name.find("Mix") != std::string::npos;
      const auto transform = make<data::BatchTransform>("{_target_: " + name + ", keys: image" +
                                                        (mixes ? "}" : ", prob: 0.7}"));
      std::vector<int64_t> shape{6, 2};
      shape.insert(shape.end(), size.begin(), size.end());
      at::manual_seed(0);
      data::Batch cpu;
      cpu.tensors["image"] = at::rand(shape);
      cpu.ids.assign(6, "a.tif");
      data::Batch gpu = cpu;
      gpu.tensors["image"] = cpu.at("image").to(at::kCUDA);
      const std::vector<uint64_t> keys{3, 1, 4, 1, 5, 9};
      data::apply_all({transform}, cpu, keys);
      data::apply_all({transform}, gpu, keys);
      EXPECT_TRUE(gpu.at("image").is_cuda());
      // Coordinates of 64 voxels are rounded to 4e-6 of one; noise steps by 1 from voxel to voxel.
      EXPECT_LT(test::max_difference(gpu.at("image").cpu(), cpu.at("image")), 1e-4);
    }
  }
}

/// A number and its noise for each sample, so that every batch tells its place.
struct Numbered final : data::Transform {
  bool is_random() const override { return true; }
  void apply(data::Sample& sample, Rng& rng) const override {
    sample.tensors["x"] = at::full({3, 16, 16}, std::stod(sample.id) + rng.uniform());
  }
};

TEST_F(Cuda, TheFeedGivesTheLoadersBatches) {
  const auto loader = [](bool pin) {
    data::DataLoaderSpec spec;
    for (int i = 0; i < 50; ++i) {
      data::Sample sample;
      sample.id = std::to_string(i);
      spec.items.push_back(sample);
    }
    spec.transforms = {std::make_shared<Numbered>()};
    spec.options.batch_size = 4;
    spec.shuffle = true;
    spec.channels_last = true;
    spec.pin = pin;
    return data::DataLoader(std::move(spec));
  };
  data::DataLoader plain = loader(false), pinned = loader(true);
  data::DeviceFeed feed(pinned, at::kCUDA);
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    plain.start_epoch(epoch);
    feed.start_epoch(epoch, 0, epoch < 19);
    while (const auto expected = plain.next()) {
      const auto batch = feed.next();
      ASSERT_TRUE(batch);
      ASSERT_TRUE(batch->at("x").is_cuda());
      ASSERT_TRUE(batch->at("x").is_contiguous(at::MemoryFormat::ChannelsLast));
      const at::Tensor busy = at::randn({512, 512}, at::kCUDA).mm(at::randn({512, 512}, at::kCUDA));
      ASSERT_TRUE(batch->at("x").cpu().equal(expected->at("x"))) << epoch;
      ASSERT_EQ(batch->ids, expected->ids);
    }
    ASSERT_FALSE(feed.next());
  }
}

}  // namespace
}  // namespace cytra
