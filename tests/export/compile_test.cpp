#include "export/compile.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include "base/error.h"
#include "config/registry.h"
#include "device/device.h"
#include "nn/model.h"
#include "tests/support/golden.h"

namespace cytra {
namespace {

TEST(Compile, GivesTheSameResult) {
  for (const char* text : {"{_target_: DynUNet, filters: [4, 8, 16]}",
                           "{_target_: DynUNet, filters: [4, 8, 16], spatial_dims: 3}"}) {
    const auto model = make<nn::Model>(text);
    model->eval();
    for (at::Tensor& parameter : model->parameters()) parameter.requires_grad_(false);
    const at::NoGradGuard no_grad;
    const at::Tensor image =
        model->spatial_dims() == 2 ? at::randn({2, 1, 32, 32}) : at::randn({1, 1, 8, 16, 16});
    const auto compiled =
        exporting::compile([&](const at::Tensor& x) { return model->all(x); }, image);
    const at::Tensor other = at::randn_like(image);  // not the image it was traced with
    for (int run = 0; run < 3; ++run)
      EXPECT_LT(test::max_difference(compiled(other)[0], (*model)(other)), 1e-4);
  }
}

TEST(Compile, TorchScriptTakesOtherShapes) {
  for (const char* text : {"{_target_: DynUNet, filters: [4, 8, 16]}",
                           "{_target_: DynUNet, filters: [4, 8, 16], spatial_dims: 3, res_block: "
                           "true, dropout: 0.5}"}) {
    const auto model = make<nn::Model>(text);
    model->eval();
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : model->parameters()) parameter.requires_grad_(false);
    std::vector<int64_t> traced{2, 1, 16, 16}, other{1, 1, 24, 8};
    if (model->spatial_dims() == 3) {
      traced.push_back(16);
      other.push_back(12);
    }
    const auto forward = [&](const at::Tensor& x) { return model->forward_all(x); };
    const auto loaded = exporting::from_torchscript(
        exporting::to_torchscript(forward, at::randn(traced), {{"a", "b"}}));
    const at::Tensor image = at::randn(other);
    EXPECT_LT(test::max_difference(loaded(image)[0], forward(image)[0]), 1e-4);
  }
}

TEST(Device, AGpuThatIsNotThereIsNamed) {
  EXPECT_EQ(device::choose_device("cpu"), c10::Device(c10::kCPU));
  const c10::Device device = device::choose_device("auto");
  if (device.is_cuda()) GTEST_SKIP() << "there is a GPU";
  EXPECT_THROW(device::choose_device("gpu"), ConfigError);
}

TEST(Device, ReportsPeakMemory) {
  device::reset_peak_memory(c10::kCPU);
  const int64_t before = device::peak_memory(c10::kCPU);
  const at::Tensor large = at::ones({64, 1024, 1024});  // 256 MiB
  EXPECT_GT(device::peak_memory(c10::kCPU) - before, 200'000'000);
}

TEST(Device, MatmulPrecisionHoldsWithoutEnableTf32) {
  device::PerformanceOptions options;
  options.matmul_precision = "high";
  device::apply(options, c10::Device(c10::kCUDA, 0));
  EXPECT_EQ(at::globalContext().float32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL),
            at::Float32Precision::TF32);
}

TEST(Compile, LinearLayersInInt8AreAQuarterAsLarge) {
  at::manual_seed(0);
  const at::Tensor first = at::randn({512, 256}), second = at::randn({64, 512}),
                   bias = at::randn({512});
  const exporting::Forward network = [&](const at::Tensor& x) {
    return std::vector<at::Tensor>{at::linear(at::gelu(at::linear(x, first, bias)), second)};
  };
  const std::string whole = exporting::to_torchscript(network, at::randn({3, 256}), {}),
                    small = exporting::to_int8_torchscript(network, at::randn({3, 256}), {});
  EXPECT_LT(small.size(), 0.3 * static_cast<double>(whole.size()));
  const exporting::Forward loaded = exporting::from_torchscript(small);
  const at::Tensor x = at::randn({2, 7, 256}), made = loaded(x)[0], expected = network(x)[0];
  const double share =
      ((made - expected).square().mean() / expected.square().mean()).sqrt().item<double>();
  EXPECT_LT(share, 0.03);
  EXPECT_GT(share, 1e-4);
  EXPECT_THROW(exporting::to_int8_torchscript(
                   [](const at::Tensor& image) { return std::vector<at::Tensor>{at::relu(image)}; },
                   at::randn({3}),
                   {}),
               ConfigError);
}

}  // namespace
}  // namespace cytra
