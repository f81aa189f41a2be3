#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/loss.h"
#include "nn/weights.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"

namespace cytra {
namespace {

struct ExportedLossCase {
  ExportedLossCase() : file(test::golden_folder() + "/exported/functions/tversky.safetensors") {
    options.set("_target_", config::Node::make_string("ExportedLoss"));
    options.set(
        "file",
        config::Node::make_string(test::golden_folder() + "/exported/functions/tversky.pt2"));
    loss = make<nn::Loss>(options);
  }
  at::Tensor at(const std::string& name) const {
    return nn::tensor_of(file.tensors().at(name), name);
  }
  io::SafetensorsFile file;
  config::Node options = config::Node::make_map();
  std::shared_ptr<nn::Loss> loss;
};

TEST(ExportedLoss, EqualsPythons) {
  const ExportedLossCase it;
  const at::Tensor logits = it.at("logits").requires_grad_();
  const at::Tensor value = (*it.loss)(logits, it.at("target"), it.at("mask"));
  EXPECT_NEAR(value.item<double>(), it.at("value").item<double>(), 1e-6);
  value.backward();
  EXPECT_TRUE(logits.grad().allclose(it.at("gradient"), 1e-4, 1e-8));
}

TEST(ExportedLoss, CountsAllWithoutAMask) {
  const ExportedLossCase it;
  const at::Tensor all = at::ones_like(it.at("mask"));
  EXPECT_TRUE((*it.loss)(it.at("logits"), it.at("target"))
                  .equal((*it.loss)(it.at("logits"), it.at("target"), all)));
}

TEST(ExportedLoss, IgnoredVoxelsAreLeftOutByTheMask) {
  ExportedLossCase it;
  const at::Tensor target = it.at("target"), mask = it.at("mask");
  it.options.set("ignore_index", config::Node::make_integer(9));
  const at::Tensor value =
      (*make<nn::Loss>(it.options))(it.at("logits"), target.masked_fill(mask.eq(0), 9));
  EXPECT_TRUE(value.equal((*it.loss)(it.at("logits"), target.masked_fill(mask.eq(0), 0), mask)));
}

TEST(ExportedLoss, RefusesOneThatReadsASingleTensor) {
  config::Node node = config::Node::make_map();
  node.set("_target_", config::Node::make_string("ExportedLoss"));
  const std::string file = test::golden_folder() + "/exported/functions/one_tensor.pt2";
  node.set("file", config::Node::make_string(file));
  EXPECT_NE(message_of<DataError>([&] {
              make<nn::Loss>(node);
            }).find("one_tensor.pt2: forward() does not use its tensor"),
            std::string::npos);
}

TEST(ExportedLoss, RefusesANetworkAndOtherShapes) {
  config::Node node = config::Node::make_map();
  node.set("_target_", config::Node::make_string("ExportedLoss"));
  node.set("file", config::Node::make_string(test::golden_folder() + "/exported/net.pt2"));
  EXPECT_NE(message_of<DataError>([&] {
              make<nn::Loss>(node);
            }).find("forward() takes 1 tensors, expected logits, target, mask, or the first 2"),
            std::string::npos);
  const ExportedLossCase it;
  const at::Tensor two = at::zeros({2, 2, 8, 8});
  EXPECT_NE(message_of<DataError>([&] {
              (*it.loss)(two, two);
            }).find("the shape of its logits is (any,1,any,any), got (2,2,8,8)"),
            std::string::npos);
}

}  // namespace
}  // namespace cytra
