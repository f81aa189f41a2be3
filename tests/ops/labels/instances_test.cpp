#include <cmath>

#include "base/error.h"
#include "io/reader.h"
#include "ops/labels/flow_labels.h"
#include "ops/labels/star_labels.h"
#include "ops/labels/stitch_planes.h"
#include "tests/support/golden.h"

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

/// The least IoU of an object with that of the other image that it overlaps most.
double least_iou(const at::Tensor& found, const at::Tensor& expected) {
  double least = found.max().item<int64_t>() == expected.max().item<int64_t>() ? 1 : 0;
  for (int64_t label = 1; label <= expected.max().item<int64_t>(); ++label) {
    const at::Tensor object = expected.eq(label);
    const at::Tensor inside = found.masked_select(object);
    const at::Tensor other = found.eq(std::get<0>(inside.mode()).item());
    const double both = object.logical_and(other).sum().item<double>();
    least = std::min(least, both / object.logical_or(other).sum().item<double>());
  }
  return least;
}

template <class Options>
Options options_of(const test::GoldenCase& entry) {
  config::Node node = config::Node::make_map();
  for (const auto& [key, value] : entry.options().map) {
    if (key != "scale" && key != "rays") node.set(key, value);
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
    EXPECT_GT(least_iou(found, entry.tensor("out")), 0.9) << entry.name;
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
    EXPECT_GT(least_iou(step(output), entry.tensor("out")), 0.9) << entry.name;
  }
}

TEST(Stars, SayWhatDoesNotFit) {
  EXPECT_THROW(FlowsToLabels()(at::zeros({2, 8, 8})), DataError);
  EXPECT_THROW(StarsToLabels()(at::zeros({3, 8, 8})), DataError);
  EXPECT_EQ(FlowsToLabels()(at::zeros({3, 8, 8})).count_nonzero().item<int64_t>(), 0);
  EXPECT_EQ(StarsToLabels()(at::full({9, 8, 8}, -1.0)).count_nonzero().item<int64_t>(), 0);
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
