#include <cmath>
#include <set>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/datamodule.h"
#include "tests/data/make_transform.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"

namespace cytra {
namespace {

TEST(Transforms, DeterministicOnesEqualMonai) {
  const test::Golden golden("transforms");
  const std::set<std::string> ours{"NormalizeIntensity", "AsDiscrete"};
  int compared = 0;
  for (const test::GoldenCase& entry : golden.cases(53)) {
    const auto name = entry.node.get<std::string>("transform");
    if (ours.count(name) == 0 || entry.options().has("argmax") || entry.options().has("to_onehot"))
      continue;
    SCOPED_TRACE(entry.name);
    config::Node node = test::component("monai.transforms." + name + "d", entry.options());
    node.set("keys", config::Node::make_string("x"));
    const auto transform = cytra::make<data::Transform>(node);
    data::Sample sample;
    sample.tensors["x"] = entry.tensor("input");
    const at::Tensor before = sample.tensors["x"].clone();
    const at::Tensor given = sample.tensors["x"];
    Rng rng(0);
    transform->apply(sample, rng);
    EXPECT_LT(test::max_difference(sample.at("x"), entry.tensor("output")), 1e-5);
    EXPECT_TRUE(given.equal(before)) << "the input was written to";
    ++compared;
  }
  EXPECT_GE(compared, 8);
}

TEST(RandomTransforms, TreatImageAndMaskAlike) {
  const auto crop = make_transform(
      "{_target_: RandSpatialCropSamplesd, keys: [a, b], roi_size: [8, 6], num_samples: 3}");
  const auto flip = make_transform("{_target_: RandFlipd, keys: [a, b], prob: 0.5}");
  const auto turn = make_transform("{_target_: RandRotate90d, keys: [a, b], prob: 0.5}");
  EXPECT_EQ(crop->num_samples(), 3);
  std::set<std::string> seen;
  for (uint64_t draw = 0; draw < 40; ++draw) {
    data::Sample sample;
    sample.tensors["a"] = at::arange(20 * 30, at::kFloat).reshape({1, 20, 30});
    sample.tensors["b"] = sample.tensors["a"].clone();
    Rng rng(7, 0, draw);
    for (const auto& transform : {crop, flip, turn}) transform->apply(sample, rng);
    EXPECT_TRUE(sample.at("a").equal(sample.at("b")));
    EXPECT_EQ(sample.at("a").numel(), 48);
    seen.insert(std::to_string(sample.at("a").flatten()[0].item<int>()) + "," +
                std::to_string(sample.at("a").size(1)));
  }
  EXPECT_GT(seen.size(), 20U);
}

TEST(SpatialCropd, ClipsAndRefuses) {
  data::Sample sample;
  sample.tensors["a"] = at::arange(12, at::kFloat).reshape({1, 3, 4});
  Rng rng(0);
  make_transform("{_target_: SpatialCropd, keys: a, roi_start: [0, 2], roi_end: [99, 99]}")
      ->apply(sample, rng);
  EXPECT_EQ(sample.at("a").sizes(), (std::vector<int64_t>{1, 3, 2}));
  EXPECT_THROW(make_transform("{_target_: SpatialCropd, keys: a, roi_start: [0], roi_end: [9]}")
                   ->apply(sample, rng),
               ConfigError);
  EXPECT_THROW(
      make_transform("{_target_: SpatialCropd, keys: a, roi_start: [5, 0], roi_end: [9, 9]}")
          ->apply(sample, rng),
      DataError);
  EXPECT_THROW(
      make_transform("{_target_: SpatialCropd, keys: c, roi_start: [0, 0], roi_end: [9, 9]}")
          ->apply(sample, rng),
      DataError);
}

TEST(AsDiscreted, NamesValuesThatAreNoClass) {
  const auto one_hot = make_transform("{_target_: AsDiscreted, keys: seg, to_onehot: 3}");
  for (const double value : {3.0, -1.0, 0.5, std::nan("")}) {
    data::Sample sample;
    sample.id = "seg_1.tif";
    sample.tensors["seg"] = at::ones({1, 2, 2});
    sample.tensors["seg"][0][0][0] = value;
    Rng rng(0);
    const std::string message = message_of<DataError>([&] { one_hot->apply(sample, rng); });
    EXPECT_EQ(message.rfind(fmt::format("seg_1.tif: 'seg': 1 values (such as {:g})", value), 0), 0U)
        << message;
  }
}

}  // namespace
}  // namespace cytra
