#include "nn/flop_counter.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "config/registry.h"
#include "nn/model.h"
#include "tests/support/at_least.h"
#include "tests/support/golden.h"

namespace cytra::nn {
namespace {

TEST(FlopCounter, EqualsTorchWithTheBackwardPass) {
  const std::string path = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/summary.json";
  const config::Node golden = config::parse_yaml(read_file(path), path);
  for (const config::Node& entry : test::at_least(3, golden.at("cases").list)) {
    SCOPED_TRACE(entry.get<std::string>("name"));
    config::Node options = config::Node::make_map();
    for (const auto& [key, value] : entry.at("options").map) {
      if (key != "norm_name" && key != "act_name" && key != "deep_supervision")
        options.set(key, value);
    }
    const auto model = make<Model>(test::component("monai.networks.nets.DynUNet", options));
    const at::Tensor image = at::zeros(entry.get<std::vector<int64_t>>("shape"));
    const Flops flops = count_flops([&] { (*model)(image); });
    EXPECT_EQ(flops.forward, entry.at("modules").find_direct("")->get<int64_t>("flops"));
    EXPECT_EQ(flops.forward + flops.backward, entry.get<int64_t>("training_flops"));
  }
}

TEST(FlopCounter, CountsByHand) {
  const at::Tensor image = at::zeros({2, 3, 8, 10});
  const at::Tensor weight = at::zeros({4, 3, 3, 3}).requires_grad_();
  const Flops convolution = count_flops([&] { at::conv2d(image, weight, {}, 1, "same"); });
  EXPECT_EQ(convolution.forward, 2 * (2 * 4 * 8 * 10) * (3 * 3 * 3));
  EXPECT_EQ(convolution.backward, convolution.forward) << "the image needs no gradient";
  EXPECT_EQ(convolution.values, 2 * 3 * 80 + 4 * 27 + 2 * 4 * 80);
  {
    const at::NoGradGuard no_grad;
    EXPECT_EQ(count_flops([&] { at::conv2d(image, weight); }).backward, 0);
  }

  const at::Tensor a = at::zeros({5, 6}).requires_grad_(), b = at::zeros({6, 7}).requires_grad_();
  const Flops product = count_flops([&] { at::matmul(a, b); });
  EXPECT_EQ(product.forward, 2 * 5 * 6 * 7);
  EXPECT_EQ(product.backward, 2 * product.forward);
  EXPECT_EQ(count_flops([&] { at::matmul(a.detach(), b.detach()); }).backward, 0);

  const at::Tensor q = at::zeros({1, 2, 10, 8});  // (N, heads, S, E)
  EXPECT_EQ(count_flops([&] { at::scaled_dot_product_attention(q, q, q); }).forward,
            2 * (2 * 2 * 10 * 10 * 8));
  EXPECT_EQ(count_flops([&] { at::relu(image).sum(); }).forward, 0);
}

TEST(FlopCounter, CountsWhileItLives) {
  const at::Tensor a = at::zeros({4, 4});
  int64_t told = 0;
  {
    const FlopCounter counter([&](const Flops& flops) { told += flops.forward; });
    at::mm(a, a);
  }
  at::mm(a, a);
  EXPECT_EQ(told, 2 * 4 * 4 * 4);
}

}  // namespace
}  // namespace cytra::nn
