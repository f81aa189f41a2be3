#include <cmath>

#include "base/error.h"
#include "io/reader.h"
#include "ops/labels/flow_labels.h"
#include "ops/labels/star_labels.h"
#include "ops/labels/stitch_planes.h"
#include "tests/support/golden.h"
#include "tests/support/object_iou.h"

namespace cytra::ops {
namespace {

/// (C,...) at every 61st voxel, as the golden file has it.
at::Tensor some_of(const at::Tensor& field) {
  return field.flatten(1).slice(1, 0, {}, 61);
}

/// What make_instances.py's noisy() makes of a field.
at::Tensor noisy(const at::Tensor& field, double scale, double phase) {
  const at::Tensor wave = (at::arange(field.numel(), at::kDouble) * 0.7 + phase).sin();
  return (field.to(at::kDouble) + scale * wave.view(field.sizes())).to(at::kFloat);
}

template <class Options>
Options options_of(const test::GoldenCase& entry) {
  config::Node node = config::Node::make_map();
  for (const auto& [key, value] : entry.options().map) {
    if (key != "scale" && key != "rays" && key != "longer") node.set(key, value);
  }
  return config::parse<Options>(node);
}

TEST(Flows, TargetsEqualCellpose) {
  const test::Golden golden("instances");
  for (const test::GoldenCase& entry : golden.cases(35)) {
    if (entry.node.get<std::string>("what") != "flows") continue;
    const at::Tensor flows = masks_to_flows(entry.tensor("labels"));
    EXPECT_LT(test::max_difference(some_of(flows), entry.tensor("out")), 1e-5) << entry.name;
  }
}

TEST(Flows, LabelsEqualCellpose) {
  const test::Golden golden("instances");
  for (const test::GoldenCase& entry : golden.cases(35)) {
    if (entry.node.get<std::string>("what") != "flow_labels") continue;
    const at::Tensor labels = entry.tensor("labels");
    const auto scale = entry.options().get<double>("scale");
    const at::Tensor output =
        at::cat({noisy(5 * masks_to_flows(labels), scale, 0),
                 noisy(labels.ne(0).to(at::kFloat) * 4 - 2, scale, 1).unsqueeze(0)});
    const at::Tensor found = options_of<FlowsToLabels>(entry)(output);
    EXPECT_GT(test::least_iou(found, entry.tensor("out")), 0.9) << entry.name;
  }
}

TEST(Stars, TargetsEqualStarDist) {
  const test::Golden golden("instances");
  for (const test::GoldenCase& entry : golden.cases(35)) {
    if (entry.node.get<std::string>("what") != "stars") continue;
    const at::Tensor labels = entry.tensor("labels");
    const auto anisotropy = options_of<StarsToLabels>(entry).anisotropy;
    const Rays rays = make_rays(entry.options().get<int64_t>("rays"), labels.dim(), anisotropy);
    EXPECT_LT(test::max_difference(some_of(star_distances(labels, rays)), entry.tensor("out")),
              1e-4)
        << entry.name;
    EXPECT_LT(test::max_difference(some_of(edt_probability(labels, anisotropy).unsqueeze(0)),
                                   entry.tensor("probability")),
              1e-5)
        << entry.name;
  }
}

TEST(Stars, LabelsEqualStarDist) {
  const test::Golden golden("instances");
  for (const test::GoldenCase& entry : golden.cases(35)) {
    if (entry.node.get<std::string>("what") != "star_labels") continue;
    const at::Tensor labels = entry.tensor("labels");
    const auto scale = entry.options().get<double>("scale");
    const auto step = options_of<StarsToLabels>(entry);
    const Rays rays =
        make_rays(entry.options().get<int64_t>("rays"), labels.dim(), step.anisotropy);
    const at::Tensor output = at::cat(
        {noisy(6 * edt_probability(labels, step.anisotropy) - 3, 0.5 * scale, 1).unsqueeze(0),
         noisy(star_distances(labels, rays), scale, 0)});
    EXPECT_GT(test::least_iou(step(output), entry.tensor("out")), 0.9) << entry.name;
  }
}

TEST(Stars, OfManyObjectsOnGridsEqualStarDist) {  // tests/golden/make_stars.py
  for (const char* topic : {"stars_2d", "stars_3d"}) {
    const test::Golden golden(topic);
    for (const test::GoldenCase& entry : golden.cases(1)) {
      const at::Tensor labels = entry.tensor("labels");
      const auto step = options_of<StarsToLabels>(entry);
      const bool is_plane = labels.dim() == 2;
      at::Tensor coarse = labels, depth = edt_probability(labels, step.anisotropy);
      for (int64_t d = 0; d < labels.dim(); ++d) {
        const int64_t times = step.grid.at(static_cast<std::size_t>(d));
        coarse = coarse.slice(d, 0, {}, times);
        depth = depth.slice(d, 0, {}, times);
      }
      if (is_plane) depth = edt_probability(coarse);
      const auto count = entry.options().get<int64_t>("rays");
      const at::Tensor distances =
          star_distances(labels, make_rays(count, labels.dim(), step.anisotropy), step.grid);
      EXPECT_LT(test::max_difference(some_of(depth.unsqueeze(0)), entry.tensor("prob")), 1e-5);
      EXPECT_LT(test::max_difference(some_of(distances), entry.tensor("dist")), 1e-4);
      const auto longer = entry.options().get<double>("longer");
      at::Tensor output =
          at::cat({noisy(6 * depth - 3, 0.3, 1).unsqueeze(0), noisy(longer * distances, 0.3, 0)});
      for (int64_t d = 0; d < labels.dim(); ++d) {
        output = output.repeat_interleave(step.grid[static_cast<std::size_t>(d)], d + 1)
                     .narrow(d + 1, 0, labels.size(d));
      }
      EXPECT_GT(test::least_iou(step(output), entry.tensor("out")), 0.999)
          << topic << " " << entry.name;
    }
  }
}

TEST(Stars, BorderCountsFromTheFilledUpImage) {
  at::Tensor output = at::full({9, 21, 24}, -5.0);
  output[0][19][12] = 5;  // two from the end of 21, five from that of 24
  output.slice(0, 1).fill_(3);
  StarsToLabels step;
  EXPECT_EQ(step(output).max().item<int64_t>(), 0);
  step.divisor = {8};
  EXPECT_EQ(step(output).max().item<int64_t>(), 1);
  step.divisor = {8, 8, 8};
  EXPECT_THROW(step(output), DataError);
}

TEST(Stars, OverlapsAreCountedUnderOtherObjects) {
  at::Tensor output = at::full({33, 40, 60}, -5.0);
  output.slice(0, 1).fill_(8);  // discs of radius 8
  const auto put = [&](int64_t y, int64_t x, double score) { output[0][y][x] = score; };
  put(20, 16, 4);
  put(20, 27, 3);  // its left end is under the first
  put(20, 22, 2);  // shares two thirds with the second, less with what is seen of it
  StarsToLabels step;
  step.nms_thresh = 0.55;
  EXPECT_EQ(step(output).max().item<int64_t>(), 2);
}

TEST(Stars, MayBeOfAnyLength) {
  for (const float length : {1e9F, 3e38F, INFINITY}) {
    at::Tensor output = at::full({9, 8, 8}, length);
    output[0].fill_(9);
    const at::Tensor labels = StarsToLabels()(output);
    EXPECT_TRUE(std::isinf(length) || labels.eq(1).all().item<bool>()) << length;
  }
}

TEST(Stars, SayWhatDoesNotFit) {
  EXPECT_THROW(FlowsToLabels()(at::zeros({2, 8, 8})), DataError);
  EXPECT_THROW(StarsToLabels()(at::zeros({3, 8, 8})), DataError);
  EXPECT_EQ(FlowsToLabels()(at::zeros({3, 8, 8})).count_nonzero().item<int64_t>(), 0);
  EXPECT_EQ(StarsToLabels()(at::full({9, 8, 8}, -1.0)).count_nonzero().item<int64_t>(), 0);
}

/// Balls of 13 to 15 pixels' radius in voxels that are six times as long along Z, 30 apart, so that
/// some touch: in voxels they are 4 to 5 planes thick.
at::Tensor balls_of_coarse_planes() {
  at::Tensor labels = at::zeros({16, 120, 120}, at::kInt);
  const std::vector<at::Tensor> axes = at::meshgrid(
      {at::arange(16, at::kFloat), at::arange(120, at::kFloat), at::arange(120, at::kFloat)}, "ij");
  int32_t number = 0;
  for (const double z : {4.0, 11.2}) {
    for (const double y : {17.0, 47.0, 77.0, 107.0}) {
      for (const double x : {15.0, 45.0, 75.0, 103.0}) {
        const double radius = 13 + number % 3;
        const at::Tensor distance =
            ((axes[0] - z) * 6).square() + (axes[1] - y).square() + (axes[2] - x).square();
        labels.masked_fill_(distance.le(radius * radius).logical_and(labels.eq(0)), ++number);
      }
    }
  }
  return labels;
}

TEST(Flows, ObjectsOfCoarsePlanesComeBackWhole) {
  const at::Tensor labels = balls_of_coarse_planes();
  const at::Tensor logit = labels.gt(0).to(at::kFloat) * 12 - 6;
  const at::Tensor output = at::cat({masks_to_flows(labels) * 5, logit.unsqueeze(0)});
  EXPECT_GT(test::least_iou(FlowsToLabels{}(output), labels), 0.95);
}

TEST(Stars, ObjectsOfCoarsePlanesComeBackWhole) {
  const at::Tensor labels = balls_of_coarse_planes();
  StarsToLabels step;
  step.anisotropy = {6, 1, 1};
  step.border = {0};
  const at::Tensor depth = edt_probability(labels, step.anisotropy).unsqueeze(0).logit(1e-4),
                   distances = star_distances(labels, make_rays(96, 3, step.anisotropy));
  EXPECT_GT(test::least_iou(step(at::cat({depth, distances})), labels), 0.8);
}

TEST(Flows, WhatIsNotFiniteMovesNothing) {
  at::Tensor output = at::zeros({3, 24, 24});
  output[2].slice(0, 4, 20).slice(1, 4, 20).fill_(3);
  const at::Tensor still = FlowsToLabels{}(output);
  for (const double wrong : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    at::Tensor bad = output.clone();
    bad.slice(0, 0, 2).fill_(wrong);
    EXPECT_TRUE(FlowsToLabels{}(bad).equal(still)) << wrong;
  }
}

TEST(StitchPlanes, JoinsAsCellposeDoes) {  // tests/golden/make_stitch.py
  io::Image both = io::read_image(CYTRA_SOURCE_DIR "/tests/golden/stitch.npy");
  const at::Tensor values =
      at::from_blob(both.pixels.data(), {2, 8, 24, 24}, at::kByte).to(at::kInt);
  EXPECT_TRUE(at::equal(stitch_planes(values[0], 0, 0.3), values[1]));
  // As its planes come from a model, numbered on
  at::Tensor numbered = values[0].clone();
  for (int64_t z = 1; z < 8; ++z) numbered[z] += (numbered[z] != 0).to(at::kInt) * 100 * z;
  EXPECT_TRUE(at::equal(stitch_planes(numbered, 0, 0.3), values[1]));
  EXPECT_TRUE(at::equal(stitch_planes(numbered.movedim(0, 2), 2, 0.3), values[1].movedim(0, 2)));
  numbered[3].zero_();  // what comes behind an empty plane is new
  const at::Tensor stitched = stitch_planes(numbered, 0, 0.3);
  const int32_t before = stitched.slice(0, 0, 3).max().item<int32_t>();
  EXPECT_EQ(stitched[4].masked_select(stitched[4] > 0).min().item<int32_t>(), before + 1);
  EXPECT_EQ(stitch_planes(at::zeros({0, 4, 4}, at::kInt), 0, 0.3).numel(), 0);
}

}  // namespace
}  // namespace cytra::ops
