// All losses: peers' values and gradients, and what every one promises of voxels that do not count.
#include <filesystem>
#include <fstream>
#include <set>

#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/loss.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"

namespace cytra {
namespace {

using config::Node;
using Ints = std::vector<int64_t>;

void expect_equal_peers(const std::string& topic, std::size_t least) {
  const test::Golden golden(topic);
  for (const test::GoldenCase& entry : golden.cases(least)) {
    const auto name = entry.node.get<std::string>("loss");
    if (name == "levels") continue;
    SCOPED_TRACE(entry.name);
    const auto loss = make<nn::Loss>(test::component("monai.losses." + name, entry.options()));
    at::Tensor logits = entry.tensor("logits");
    logits.requires_grad_(true);
    const at::Tensor value = (*loss)(logits, entry.tensor("target"));
    value.backward();
    EXPECT_LT(test::relative_difference(value.reshape({1}), entry.tensor("loss")), 1e-5);
    EXPECT_LT(test::relative_difference(logits.grad(), entry.tensor("grad")), 1e-5);
  }
}

TEST(Losses, ValuesAndGradientsEqualMonaiTorchAndNnunet) {
  expect_equal_peers("losses", 91);
}
TEST(Losses, ShapesAndImagesEqualMonaiAndTorch) {
  expect_equal_peers("losses_shape", 52);
}

/// A loss as it is tried below: of a mask, of three classes or of numbers.
struct Trial {
  std::string name;
  Node node;
  bool is_classes;
  at::Tensor target(const Ints& size) const {
    return at::randint(is_classes ? 3 : 2, size).to(at::kFloat);
  }
  at::Tensor logits(Ints size) const {
    size[1] = is_classes ? 3 : 1;
    return at::randn(size);
  }
};

/// Every loss that takes ignore_index (those of instances have targets of their own): a new one is
/// tried without a line here. ExportedLoss computes what its file says: exported_test.cpp.
std::vector<Trial> trials() {
  const config::Components& losses = Registry<nn::Loss>::instance().components();
  std::vector<Trial> all;
  for (const auto& [name, type] : losses.types) {
    if (name == "ExportedLoss") continue;
    for (const bool is_classes : {false, true}) {
      Node node = Node::make_map();
      node.set("_target_", Node::make_string(name));
      bool takes_ignored = false;
      bool knows_classes = name == "CrossEntropyLoss" || name == "TopKLoss";
      for (const config::OptionInfo& option : type.describe()) {
        if (option.name == (is_classes ? "softmax" : "sigmoid") || option.name == "to_onehot_y") {
          const bool is_on = is_classes || option.name == "sigmoid";
          node.set(option.name, config::parse_yaml(is_on ? "true" : "false", "test"));
          knows_classes = true;
        }
        takes_ignored = takes_ignored || option.name == "ignore_index";
        if (option.name == "win_size") node.set("win_size", Node::make_integer(3));
        if (option.name == "losses")
          node.set("losses", config::parse_yaml("{a: {_target_: L1Loss}}", "test"));
        if (option.name == "loss")
          node.set("loss", config::parse_yaml("{_target_: L1Loss}", "test"));
      }
      if (takes_ignored && (!is_classes || knows_classes)) all.push_back({name, node, is_classes});
    }
  }
  return all;
}

/// The loss, and its gradient.
std::pair<at::Tensor, at::Tensor> step(const Node& node,
                                       at::Tensor logits,
                                       const at::Tensor& target,
                                       const at::Tensor& mask = {}) {
  logits = logits.detach().requires_grad_(true);
  const at::Tensor value = (*make<nn::Loss>(node))(logits, target, mask);
  value.backward();
  return {value.detach(), logits.grad()};
}

TEST(Losses, IgnoredVoxelsChangeNothingAndGetNoGradient) {
  at::manual_seed(0);
  for (const Trial& trial : test::at_least(30, trials())) {
    for (const Ints& size : {Ints{2, 1, 8, 7}, Ints{1, 1, 5, 6, 7}}) {
      SCOPED_TRACE(trial.name + (trial.is_classes ? " of classes, " : ", ") +
                   std::to_string(size.size() - 2) + "D");
      const at::Tensor target = trial.target(size), logits = trial.logits(size);
      at::Tensor ignored = at::rand(size).lt(0.2);
      ignored.slice(2, 0, 4).slice(3, 0, 4).fill_(false);  // a window of the SSIM counts
      const at::Tensor changed = at::where(ignored, at::randn_like(logits) * 3, logits);
      Node node = trial.node;
      node.set("ignore_index", Node::make_integer(9));
      const auto [value, grad] = step(node, logits, target.masked_fill(ignored, 9));
      const auto [other, other_grad] = step(node, changed, target.masked_fill(ignored, 9));
      const auto [masked, masked_grad] =
          step(trial.node, changed, target.masked_fill(ignored, 0), ignored.logical_not());
      EXPECT_EQ(value.item<float>(), other.item<float>());
      EXPECT_EQ(value.item<float>(), masked.item<float>());
      EXPECT_EQ(grad.mul(ignored).abs().max().item<float>(), 0);
      EXPECT_GT(grad.abs().max().item<float>(), 0);
      EXPECT_EQ(test::max_difference(masked_grad, other_grad), 0);
    }
  }
}

TEST(Losses, WithoutAVoxelThatCountsThereIsNoGradient) {
  for (const Trial& trial : trials()) {
    SCOPED_TRACE(trial.name);
    Node node = trial.node;
    node.set("ignore_index", Node::make_integer(9));
    const Ints size{2, 1, 8, 7};
    const auto [value, grad] = step(node, trial.logits(size), at::full(size, 9.0F));
    EXPECT_TRUE(value.isfinite().item<bool>());
    EXPECT_EQ(grad.abs().max().item<float>(), 0);
  }
}

/// Whether they read short floats as they are or widen them. A gradient is rounded, once for each
/// part of the loss.
TEST(Losses, OfShortLogitsAreThoseOfTheSameFloats) {
  at::manual_seed(0);
  const Ints size{2, 1, 8, 7};
  for (const Trial& trial : trials()) {
    const at::Tensor mask = at::rand(size).gt(0.2), target = trial.target(size);
    for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
      SCOPED_TRACE(testing::Message() << trial.name << ' ' << trial.is_classes << ' ' << type);
      const at::Tensor logits = trial.logits(size).to(type);
      for (const bool is_composed : {false, true}) {
        if (is_composed && trial.name.rfind("Dice", 0) != 0) continue;
        const at::Tensor one = is_composed ? target.to(at::kByte) : target;
        const auto [value, grad] = step(trial.node, logits, one, mask);
        const auto [expected, expected_grad] =
            step(trial.node, logits.to(at::kFloat), one, mask.to(at::kFloat));
        EXPECT_EQ(value.item<float>(), expected.item<float>());
        EXPECT_EQ(grad.scalar_type(), type);
        EXPECT_LT((grad - expected_grad).norm().item<double>(),
                  1e-2 * expected_grad.norm().item<double>());
      }
    }
  }
}

/// The mean is over the voxels that count.
TEST(Losses, EqualThoseOfAnImageWithoutTheIgnoredVoxels) {
  at::manual_seed(1);
  int tried = 0;
  for (const Trial& trial : trials()) {
    if (trial.name.find("cl") != std::string::npos) continue;  // a border is one to its pooling
    if (trial.name.find("Hausdorff") != std::string::npos) continue;  // and to distances
    if (trial.name == "BoundaryLoss") continue;
    SCOPED_TRACE(trial.name);
    const Ints size{2, 1, 8, 10};
    const at::Tensor target = trial.target(size), logits = trial.logits(size);
    Node node = trial.node;
    node.set("ignore_index", Node::make_integer(9));
    at::Tensor scribbled = target.clone();
    scribbled.narrow(3, 6, 4).fill_(9);
    const auto [value, grad] = step(node, logits, scribbled);
    const auto [expected, cropped] =
        step(trial.node, logits.narrow(3, 0, 6), target.narrow(3, 0, 6));
    EXPECT_LT(test::relative_difference(value, expected), 1e-6);
    EXPECT_LT(test::max_difference(grad.narrow(3, 0, 6), cropped), 1e-6);
    ++tried;
  }
  EXPECT_GE(tried, 20);
}

TEST(Losses, HaveAConfigThatListsEveryOption) {
  const config::Components& losses = Registry<nn::Loss>::instance().components();
  std::set<std::string> seen;
  for (const auto& file : std::filesystem::directory_iterator(CYTRA_SOURCE_DIR "/configs/loss")) {
    SCOPED_TRACE(file.path());
    std::ifstream stream(file.path());
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    Node node = config::parse_yaml(text, file.path());
    const std::string name = losses.name_of(node);
    seen.insert(name);
    for (const config::OptionInfo& option : losses.types.at(name).describe())
      EXPECT_NE(node.find_direct(option.name), nullptr) << option.name;
    if (name == "ExportedLoss")
      node.set("file",
               Node::make_string(test::golden_folder() + "/exported/functions/tversky.pt2"));
    make<nn::Loss>(node);
  }
  for (const std::string& name : losses.names())
    EXPECT_TRUE(name == "MaskedDiceLoss" || seen.count(name) == 1) << name;
}

TEST(CrossEntropyLoss, IsTheSameWithDeterministicAlgorithms) {
  const auto loss =
      make<nn::Loss>("{_target_: CrossEntropyLoss, weight: [1, 2, 3], label_smoothing: 0.1}");
  const at::Tensor logits = at::randn({2, 3, 5, 4}), target = at::randint(3, {2, 1, 5, 4});
  const at::Tensor expected = (*loss)(logits, target);
  at::globalContext().setDeterministicAlgorithms(true, false);
  const at::Tensor value = (*loss)(logits, target);
  at::globalContext().setDeterministicAlgorithms(false, false);
  EXPECT_LT(test::relative_difference(value, expected), 1e-6);
}

TEST(FocalTverskyLoss, IsAPowerOfTversky) {
  const at::Tensor logits = at::randn({1, 1, 6, 5}),
                   target = at::randint(2, {1, 1, 6, 5}).to(at::kFloat);
  const std::string options = "sigmoid: true, alpha: 0.2, beta: 0.8}";
  const double tversky =
      (*make<nn::Loss>("{_target_: TverskyLoss, " + options))(logits, target).item<double>();
  const auto focal = make<nn::Loss>("{_target_: FocalTverskyLoss, gamma: 2, " + options);
  EXPECT_NEAR((*focal)(logits, target).item<double>(), std::sqrt(tversky), 1e-6);
  // No slope without end where nothing is wrong.
  const auto [value, grad] =
      step(config::parse_yaml("{_target_: FocalTverskyLoss}", ""), target, target);
  EXPECT_TRUE(grad.isfinite().all().item<bool>());
}

TEST(WeightedLoss, SumsItsPartsByName) {
  const at::Tensor x = at::randn({1, 1, 6, 5}), y = at::randn({1, 1, 6, 5});
  const auto value = [&](const std::string& yaml) {
    return (*make<nn::Loss>(yaml))(x, y).item<double>();
  };
  const double l1 = value("{_target_: L1Loss}"), mse = value("{_target_: MSELoss}");
  const std::string both =
      "{_target_: WeightedLoss, losses: {a: {_target_: L1Loss}, b: {_target_: MSELoss}, c: null}";
  EXPECT_NEAR(value(both + "}"), l1 + mse, 1e-6);
  EXPECT_NEAR(value(both + ", weights: {b: 0.5}}"), l1 + mse / 2, 1e-6);
  const auto error = [](const std::string& yaml) {
    return message_of<ConfigError>([&] { make<nn::Loss>(yaml); });
  };
  EXPECT_NE(error(both + ", weights: {d: 1}}").find("no loss of that name"), std::string::npos);
  EXPECT_NE(error(both + ", weights: {a: -1}}").find("of at least 0"), std::string::npos);
  EXPECT_NE(error("{_target_: WeightedLoss, losses: {}}").find("at least one"), std::string::npos);
  EXPECT_NE(error("{_target_: WeightedLoss, losses: {a: {_target_: DeepSupervisionLoss, loss: "
                  "{_target_: L1Loss}}}}")
                .find("around this one"),
            std::string::npos);
}

TEST(DeepSupervisionLoss, EqualsMonaiAndWithoutItTheWeightsAreNnunets) {
  const test::Golden golden("losses_shape");
  int tried = 0;
  for (const test::GoldenCase& entry : golden.cases(56)) {
    if (entry.node.get<std::string>("loss") != "levels") continue;
    SCOPED_TRACE(entry.name);
    const std::string inner = "{_target_: DiceCELoss, sigmoid: true}";
    Node node = config::parse_yaml(inner, "test");
    if (entry.name != "levels.nnunet") {
      node = test::component("DeepSupervisionLoss", entry.options());
      node.set("loss", config::parse_yaml(inner, "test"));
    }
    std::vector<at::Tensor> levels;
    for (int l = 0; l < 6; ++l) levels.push_back(entry.tensor("level." + std::to_string(l)));
    const at::Tensor value = make<nn::Loss>(node)->of_levels(levels, entry.tensor("target"));
    EXPECT_LT(test::relative_difference(value.reshape({1}), entry.tensor("loss")), 1e-5);
    ++tried;
  }
  EXPECT_EQ(tried, 4);
}

TEST(Losses, TheCoarserOfTwoLevelsCounts) {
  const auto loss = make<nn::Loss>("{_target_: MSELoss}");
  const at::Tensor target = at::zeros({1, 1, 8, 8});
  const std::vector<at::Tensor> levels{at::zeros({1, 1, 8, 8}), at::ones({1, 1, 4, 4})};
  EXPECT_NEAR(loss->of_levels(levels, target).item<double>(), 1.0 / 3, 1e-6);
  EXPECT_NEAR(
      loss->of_levels({levels[0], levels[1], levels[1]}, target).item<double>(), 1.0 / 3, 1e-6);
}

TEST(SSIMLoss, RefusesAWindowLargerThanTheImage) {
  const auto loss = make<nn::Loss>("{_target_: SSIMLoss}");
  const at::Tensor image = at::zeros({1, 1, 8, 16});
  EXPECT_NE(message_of<ConfigError>([&] { (*loss)(image, image); }).find("win_size"),
            std::string::npos);
}

TEST(Losses, RefuseNumbersOfClassesThatDoNotFit) {
  const at::Tensor logits = at::zeros({1, 3, 4, 4}), target = at::zeros({1, 1, 4, 4});
  const auto loss = make<nn::Loss>("{_target_: CrossEntropyLoss, weight: [1, 2]}");
  EXPECT_NE(message_of<ConfigError>([&] { (*loss)(logits, target); }).find("weight: 2 numbers"),
            std::string::npos);
}

}  // namespace
}  // namespace cytra
