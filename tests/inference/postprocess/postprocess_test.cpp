#include "inference/postprocess/postprocess.h"

#include "tests/support/golden.h"
#include "tests/support/message_of.h"

namespace cytra::inference {
namespace {

/// (1,Y,X) or (1,Z,Y,X) of labels.
Result labels_of(const at::Tensor& image) {
  Result result;
  result.values = image.to(at::kInt).unsqueeze(0);
  result.is_labels = true;
  return result;
}
Result scores_of(const at::Tensor& values) {
  Result result;
  result.values = values;
  return result;
}

Result after(const std::string& steps, Result result) {
  apply_all(make_postprocess(config::parse_yaml(steps, "test")), result);
  return result;
}

at::Tensor ints(at::ArrayRef<int64_t> values, at::IntArrayRef shape) {
  return at::tensor(values, at::kInt).reshape(shape);
}

TEST(Postprocess, FromLogitsToObjects) {
  const at::Tensor logits = at::full({2, 6, 7}, -1.0);
  logits[0].zero_();
  logits[1].slice(0, 1, 3).slice(1, 1, 3).fill_(1);
  logits[1].slice(0, 4, 6).slice(1, 4, 7).fill_(1);
  const Result result = after(
      "[{_target_: Activations, softmax: true}, {_target_: AsDiscrete, argmax: true},"
      " {_target_: ConnectedComponents}, {_target_: RemoveSmallObjects, min_size: 5}]",
      scores_of(logits));
  EXPECT_TRUE(result.is_labels);
  EXPECT_EQ(result.values.scalar_type(), at::kInt);
  at::Tensor expected = at::zeros({1, 6, 7}, at::kInt);
  expected[0].slice(0, 4, 6).slice(1, 4, 7).fill_(2);
  EXPECT_TRUE(result.values.equal(expected));
}

TEST(Postprocess, PlanesOfA2DModelHaveObjectsOfTheirOwn) {
  at::Tensor flows = at::zeros({3, 3, 20, 20});  // (C,Z,Y,X): to the middle of a square
  flows[2].fill_(-5);
  const at::Tensor from_middle = at::arange(-4, 5, at::kFloat);
  const at::Tensor y = from_middle.unsqueeze(1).expand({9, 9}),
                   x = from_middle.unsqueeze(0).expand({9, 9});
  const at::Tensor length = (y * y + x * x).sqrt() + 1e-3;
  for (int64_t z = 0; z < 3; ++z) {
    const auto square = flows.select(1, z).slice(1, 2 + z, 11 + z).slice(2, 3, 12);
    square[0].copy_(-5 * y / length);
    square[1].copy_(-5 * x / length);
    square[2].fill_(5);
  }
  const std::string steps = "[{_target_: FlowsToLabels, flow_threshold: 0, min_size: 1}";
  const auto numbers = [&](const std::string& more, int64_t axis) {
    Result result = scores_of(flows.movedim(1, 1 + axis));
    result.plane_axis = axis;
    result = after(steps + more + "]", std::move(result));
    std::vector<int32_t> found;
    for (const at::Tensor& plane : result.values[0].unbind(axis))
      found.push_back(plane.max().item<int32_t>());
    return found;
  };
  for (const int64_t axis : {0, 2}) {
    EXPECT_EQ(numbers("", axis), (std::vector<int32_t>{1, 2, 3}));
    EXPECT_EQ(numbers(", {_target_: StitchPlanes, threshold: 0.3}", axis),
              (std::vector<int32_t>{1, 1, 1}));
  }
}

TEST(Postprocess, WatershedEqualsScikitImagesRecipe) {
  const test::Golden golden("watershed");
  int64_t seen = 0;
  for (const test::GoldenCase& entry : golden.cases(60)) {
    if (entry.node.get<std::string>("what") != "recipe") continue;
    const Result result =
        after("[{_target_: Watershed, min_distance: " +
                  std::to_string(entry.options().get<int64_t>("min_distance")) + "}]",
              labels_of(entry.tensor("image")));
    EXPECT_EQ(test::max_difference(result.values[0], entry.tensor("out")), 0) << entry.name;
    ++seen;
  }
  EXPECT_GE(seen, 8);
}

TEST(Postprocess, MorphologyEqualsScipy) {
  const test::Golden golden("morphology");
  for (const test::GoldenCase& entry : golden.cases(100)) {
    const auto steps = config::Node::make_list({test::component("Morphology", entry.options())});
    Result result = labels_of(entry.tensor("image").to(at::kInt) * 3);
    apply_all(make_postprocess(steps), result);
    EXPECT_EQ(test::max_difference(result.values[0], entry.tensor("out").to(at::kInt) * 3), 0)
        << entry.name;
  }
}

TEST(Postprocess, DilationGivesTheNearestLabel) {
  const Result result = after("[{_target_: Morphology, operation: dilation, radius: 2}]",
                              labels_of(ints({4, 0, 0, 0, 0, 0, 0, 9}, {1, 8})));
  EXPECT_TRUE(result.values[0].equal(ints({4, 4, 4, 0, 0, 9, 9, 9}, {1, 8})));
}

TEST(Postprocess, ThresholdsAreFixedOrFound) {
  const at::Tensor scores = at::tensor({0.0F, 0.1F, 0.2F, 0.8F, 0.9F, 1.0F}).reshape({1, 2, 3});
  const at::Tensor expected = ints({0, 0, 0, 1, 1, 1}, {1, 2, 3});
  for (const char* step : {"threshold: 0.2", "method: otsu", "method: li"}) {
    const Result result =
        after(std::string("[{_target_: Threshold, ") + step + "}]", scores_of(scores));
    EXPECT_TRUE(result.is_labels);
    EXPECT_TRUE(result.values.equal(expected)) << step;
  }
  EXPECT_THROW(make_postprocess(config::parse_yaml("[{_target_: Threshold}]", "test")),
               ConfigError);
  EXPECT_THROW(make_postprocess(config::parse_yaml(
                   "[{_target_: Threshold, method: otsu, threshold: 1}]", "test")),
               ConfigError);
}

TEST(Postprocess, DistancesAreScores) {
  const Result result = after("[{_target_: DistanceTransformEDT, sampling: [2, 1]}]",
                              labels_of(ints({0, 1, 1, 0, 1, 1, 0, 1, 1}, {3, 3})));
  EXPECT_FALSE(result.is_labels);
  EXPECT_TRUE(result.values.equal(at::tensor({0.0F, 1.0F, 2.0F}).expand({1, 3, 3})));
}

TEST(Postprocess, KeepsLabelsBeyondWhatAFloatHolds) {
  const int32_t large = (1 << 24) + 1;
  at::Tensor image = at::full({5, 5}, large, at::kInt);
  image[2][2] = 0;
  image[4].zero_();
  const Result filled = after(
      "[{_target_: FillHoles}, {_target_: RemoveSmallObjects, min_size: 9},"
      " {_target_: KeepLargestConnectedComponent}]",
      labels_of(image));
  image[2][2] = large;
  EXPECT_TRUE(filled.values[0].equal(image));
}

TEST(Postprocess, RemovesByTheVolumeOfTheImagesVoxels) {
  Result result = labels_of(ints({1, 1, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2}, {3, 4}));
  EXPECT_NE(message_of<DataError>([&] {
              after("[{_target_: RemoveSmallObjects, min_size: 5, by_measure: true}]", result);
            }).find("RemoveSmallObjects: by_measure: the image's spacing is not known"),
            std::string::npos);
  result.geometry.spacing_um = {0, 2, 1};
  result = after("[{_target_: RemoveSmallObjects, min_size: 5, by_measure: true}]", result);
  EXPECT_TRUE(result.values[0].equal(ints({0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2}, {3, 4})));
}

TEST(Postprocess, NamesTheStepThatDoesNotFit) {
  EXPECT_EQ(message_of<ConfigError>([] {
              after("[{_target_: FillHoles}]", scores_of(at::zeros({1, 3, 3})));
            }),
            "FillHoles: expects labels, gets a model's scores; put AsDiscrete or Threshold before "
            "it, or predict.save=mask");
  EXPECT_THROW(after("[{_target_: Activations, sigmoid: true}]", labels_of(at::zeros({3, 3}))),
               ConfigError);
  EXPECT_THROW(make_postprocess(config::parse_yaml("[{_target_: Activations}]", "test")),
               ConfigError);
  EXPECT_THROW(make_postprocess(config::parse_yaml("[{_target_: AsDiscrete}]", "test")),
               ConfigError);
}

}  // namespace
}  // namespace cytra::inference
