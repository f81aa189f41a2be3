// Against PyTorch: tests/golden/make_models.py.
#include "inference/predictor/averages.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"

namespace cytra::inference {
namespace {

class Averages : public ::testing::Test {
 protected:
  Averages() : expected_(folder() + "expected.safetensors") {
    CheckpointOptions options;
    options.ckpt_path = {folder() + "traced.pt"};
    model_ = load_models(options).at(0);
  }
  static std::string folder() { return std::string(CYTRA_SOURCE_DIR) + "/tests/golden/models/"; }
  at::Tensor stored(const std::string& key) const {
    return nn::tensor_of(expected_.tensors().at("tta/" + key), key);
  }
  at::Tensor average(const TtaOptions& options, bool exclusive = true) const {
    return averaged({model_.forward}, options, model_.divisor, exclusive)(stored("in")).at(0);
  }
  const c10::InferenceMode inference_mode_;
  io::SafetensorsFile expected_;
  LoadedModel model_;
};

TEST_F(Averages, OfMirroredAndTurnedWindowsEqualPyTorchs) {
  const at::Tensor none = average({});
  EXPECT_EQ(test::max_difference(none, model_.forward(stored("in"))[0]), 0);
  for (const auto& [name, options] :
       std::vector<std::pair<std::string, TtaOptions>>{{"mirror", {{0, 1}}},
                                                       {"mirror_last", {{-1}}},
                                                       {"rotate90", {{}, true}},
                                                       {"all_turns", {{0}, true}},
                                                       {"all_turns", {{1}, true}},
                                                       {"all_turns", {{0, 1}, true}},
                                                       {"scales", {{}, false, {0.75, 1, 1.5}}}}) {
    SCOPED_TRACE(name);
    EXPECT_LT(test::max_difference(average(options), stored(name)), 2e-6);
    EXPECT_GT(test::max_difference(none, stored(name)), 1e-3) << "nothing was to be averaged";
  }
}

TEST_F(Averages, OfProbabilitiesAreGivenAsTheirLogits) {
  const TtaOptions options{{0, 1}, false, {1}, "probabilities"};
  EXPECT_LT(test::max_difference(at::softmax(average(options), 1), stored("softmax")), 2e-6);
  EXPECT_LT(test::max_difference(average(options, false).sigmoid(), stored("sigmoid")), 2e-6);
  EXPECT_GT(test::max_difference(at::softmax(stored("mirror"), 1), stored("softmax")), 1e-5);
}

TEST_F(Averages, VarianceIsThatOfAllProbabilities) {
  const at::Tensor image = stored("in");
  const auto softmax_of = [&](const at::Tensor& x) { return at::softmax(model_.forward(x)[0], 1); };
  const at::Tensor all =
      at::stack({softmax_of(image), softmax_of(image.flip({3})).flip({3})});  // N,S,K,H,W
  const at::Tensor expected = all.var(0, /*unbiased=*/false);
  const at::Tensor variance =
      averaged({model_.forward}, {{1}}, model_.divisor, true, true)(image)[0];
  EXPECT_GT(expected.max().item<double>(), 1e-5);
  EXPECT_LT(test::max_difference(variance, expected), 2e-7);
  const at::Tensor twice =
      averaged({model_.forward, model_.forward}, {}, model_.divisor, false, true)(image)[0];
  EXPECT_LT(twice.max().item<double>(), 1e-7);
  EXPECT_NE(message_of<ConfigError>([&] {
              averaged({model_.forward}, {}, model_.divisor, true, true);
            }).find("expected several"),
            std::string::npos);
}

TEST_F(Averages, OfASymmetricImageAreExactlySymmetric) {
  const at::Tensor quarter = at::rand({1, 2, 8, 8});
  const at::Tensor half = at::cat({quarter, quarter.flip({3})}, 3);
  const at::Tensor image = at::cat({half, half.flip({2})}, 2);
  const at::Tensor result = averaged({model_.forward}, {{0, 1}}, model_.divisor, true)(image).at(0);
  EXPECT_TRUE(at::equal(result, result.flip({2})));
  EXPECT_TRUE(at::equal(result, result.flip({3})));
  const at::Tensor other = at::rand({1, 2, 16, 16});  // and of a turned image the turned result
  const Forward all = averaged({model_.forward}, {{0, 1}, true}, model_.divisor, true);
  EXPECT_TRUE(at::equal(all(other.flip({3})).at(0), all(other).at(0).flip({3})));
  EXPECT_TRUE(
      at::equal(all(at::rot90(other, 1, {2, 3})).at(0), at::rot90(all(other).at(0), 1, {2, 3})));
}

TEST_F(Averages, LeaveTheirMembersOutputsAlone) {
  at::Tensor own = at::ones({1, 1, 4, 4});
  const Forward buffered = [&](const at::Tensor&) { return std::vector<at::Tensor>{own}; };
  const at::Tensor mean = mean_of({buffered, buffered, buffered})(own).at(0);
  EXPECT_EQ(test::max_difference(mean, own), 0);
  EXPECT_EQ(own.sum().item<double>(), 16);
}

TEST_F(Averages, AxesThatWindowsDoNotHaveAreRefused) {
  EXPECT_EQ(message_of<ConfigError>([&] {
              average({{0, 2}});
            }),
            "mirror_axes: 2, expected -2 to 1: windows have 2 spatial axes");
}

}  // namespace
}  // namespace cytra::inference
