#include "inference/decoders/decoder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "ops/windows/sums.h"
#include "tests/support/message_of.h"

namespace cytra::inference {
namespace {

std::shared_ptr<Decoder> decoder(const std::string& task) {
  return decoder_of(config::parse_yaml(task, "task"));
}

TEST(Decoder, TakesTheLargestLogitOrWhatIsAboveTheThreshold) {
  const at::Tensor logits =
      at::tensor({-1.0, 2.0, 0.1, 1.0, 3.0, -4.0}, at::kFloat).view({1, 3, 1, 2});
  const auto classes = decoder("{num_classes: 3}"),
             masks = decoder("{num_classes: 3, multilabel: true}");
  EXPECT_TRUE(
      classes->decode(logits, "mask").equal(at::tensor({2, 0}, at::kByte).view({1, 1, 1, 2})));
  EXPECT_TRUE(masks->decode(logits, "mask").equal(logits.gt(0).to(at::kByte)));
  EXPECT_TRUE(masks->decode(logits, "mask", 0.8).equal(at::sigmoid(logits).gt(0.8).to(at::kByte)));
  EXPECT_FALSE(masks->decode(logits, "mask", 1).any().item<bool>());
  EXPECT_TRUE(masks->decode(logits, "mask", 0).all().item<bool>());
  EXPECT_TRUE(masks->decode(logits, "probability").allclose(at::sigmoid(logits), 1e-6, 1e-7));
  EXPECT_TRUE(classes->decode(logits, "probability").allclose(at::softmax(logits, 1), 1e-6, 1e-7));
  EXPECT_TRUE(classes->decode(logits, "logits").equal(logits));
}

TEST(Decoder, MoreThan256ClassesNeed16Bits) {
  const auto dtype = [](const std::string& task) {
    return dtype_of(decoder(task)->finish("mask", 0.5));
  };
  EXPECT_EQ(dtype("{num_classes: 256}"), io::Dtype::u8);
  EXPECT_EQ(dtype("{num_classes: 257}"), io::Dtype::u16);
  EXPECT_EQ(dtype("{num_classes: 300, multilabel: true}"), io::Dtype::u8) << "each is 0 and 1";
  const at::Tensor logits = at::zeros({1, 300, 2, 2});
  logits[0][299].fill_(1);
  const at::Tensor mask = decoder("{num_classes: 300}")->decode(logits, "mask");
  EXPECT_TRUE(mask.to(at::kInt).equal(at::full({1, 1, 2, 2}, 299, at::kInt)));
}

TEST(Decoder, IsTheTasksOwnOrFollowsItsClasses) {
  EXPECT_EQ(decoder("{decoder: {_target_: RegressionDecoder}}")->forms(),
            std::vector<std::string>{"value"});
  EXPECT_EQ(decoder("{model: {out_channels: 4}}")->finish("mask", 0.5).kind,
            ops::Finish::Kind::argmax);
  const std::string message = message_of<ConfigError>(
      [] { decoder("{num_classes: 2}")->form_of("probabilty", "predict.save"); });
  EXPECT_EQ(message,
            "predict.save=probabilty: this model gives mask, probability, logits, entropy, "
            "variance. Did you mean "
            "'probability'?");
}

}  // namespace
}  // namespace cytra::inference
