// Steps on rows that come in order give the result of the whole image.
#include <map>

#include "base/rng.h"
#include "inference/postprocess/postprocess.h"
#include "ops/labels/components.h"
#include "ops/labels/distance.h"
#include "ops/labels/operations.h"
#include "ops/labels/row_step.h"
#include "ops/labels/watershed.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"

namespace cytra::inference {
namespace {

std::shared_ptr<Postprocess> step_of(const std::string& yaml) {
  return make_postprocess(config::parse_yaml("[" + yaml + "]", "test"))[0];
}

Result labelled(const at::Tensor& values) {
  Result result;
  result.values = values.to(at::kInt).unsqueeze(0);
  result.is_labels = true;
  return result;
}

/// The result of a step by so many rows at once; undefined where it needs the whole image.
Result by_rows(const Postprocess& step,
               const Result& before,
               int64_t rows,
               const std::string& folder = "") {
  Result form = before;
  form.values = at::Tensor();
  std::vector<int64_t> shape = before.values.sizes().vec();
  const auto work = step.by_rows(form, shape, folder);
  if (!work) return {};
  std::vector<at::Tensor> parts;
  for (int64_t first = 0; first < before.values.size(1); first += rows) {
    const at::Tensor made =
        work->add(before.values.narrow(1, first, std::min(rows, before.values.size(1) - first)));
    if (made.defined()) parts.push_back(made);
  }
  for (at::Tensor made = work->rest(); made.defined(); made = work->rest()) parts.push_back(made);
  form.values = at::cat(parts, 1);
  EXPECT_EQ(form.values.sizes(), at::IntArrayRef(shape));
  return form;
}

void expect_same(const std::string& yaml,
                 const Result& before,
                 const std::vector<int64_t>& all_rows,
                 bool with_ties = false) {
  const auto step = step_of(yaml);
  Result whole = before;
  whole.values = before.values.clone();
  step->apply(whole);
  for (const int64_t rows : all_rows) {
    const Result found = by_rows(*step, before, rows);
    ASSERT_TRUE(found.values.defined()) << yaml;
    // Which of two labels that are equally near a voxel gets, follows no order.
    EXPECT_TRUE(found.values.equal(whole.values) ||
                (with_ties && found.values.ne(0).equal(whole.values.ne(0)) &&
                 found.values.ne(whole.values).to(at::kFloat).mean().item<double>() < 0.02))
        << yaml << " by " << rows;
    EXPECT_EQ(found.is_labels, whole.is_labels) << yaml;
    EXPECT_EQ(found.is_objects, whole.is_objects) << yaml;
  }
}

/// Blobs and holes of some labels.
at::Tensor blobs(const std::vector<int64_t>& image, int64_t labels, uint64_t seed) {
  Rng rng(seed);
  at::Tensor result = at::zeros(image, at::kInt);
  for (int64_t n = 0; n < 12 * labels; ++n) {
    at::Tensor part = result;
    for (std::size_t d = 0; d < image.size(); ++d) {
      const auto size = static_cast<int64_t>(1 + rng.below(static_cast<uint64_t>(image[d] / 2)));
      const auto first =
          static_cast<int64_t>(rng.below(static_cast<uint64_t>(image[d] - size + 1)));
      part = part.narrow(static_cast<int64_t>(d), first, size);
    }
    part.fill_(static_cast<int64_t>(rng.below(static_cast<uint64_t>(labels) + 1)));
  }
  return result;
}

TEST(ByRows, StepsOnLabelsGiveThoseOfTheWholeImage) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    for (const auto& [labels, image] : {std::pair{1, std::vector<int64_t>{61, 47}},
                                        {4, {52, 60}},
                                        {30, {70, 41}},
                                        {3, {19, 23, 17}}}) {
      const Result before = labelled(blobs(image, labels, seed));
      for (const char* yaml :
           {"{_target_: ConnectedComponents}",
            "{_target_: ConnectedComponents, connectivity: 1}",
            "{_target_: RemoveSmallObjects, min_size: 40}",
            "{_target_: RemoveSmallObjects, min_size: 9, connectivity: null}",
            "{_target_: KeepLargestConnectedComponent}",
            "{_target_: KeepLargestConnectedComponent, applied_labels: [1, 3], connectivity: 1, "
            "num_components: 2}",
            "{_target_: FillHoles}",
            "{_target_: FillHoles, applied_labels: [1], connectivity: 1}",
            "{_target_: Morphology, operation: dilation, radius: 2}",
            "{_target_: Morphology, operation: erosion, radius: 1}",
            "{_target_: Morphology, operation: opening, radius: 2, footprint: box}",
            "{_target_: Morphology, operation: closing, radius: 3}",
            "{_target_: Watershed, min_distance: 3, sampling: 1}"})
        expect_same(yaml, before, {1, 7, 100}, labels > 1 && std::string(yaml).find("Morph") < 20);
    }
  }
}

TEST(ByRows, HolesOfLargeBoxesAreThoseOfSmallOnes) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    for (const std::vector<int64_t>& image : {std::vector<int64_t>{1, 40, 33}, {1, 14, 22, 19}}) {
      const at::Tensor labels = blobs({image.begin() + 1, image.end()}, 3, seed).unsqueeze(0);
      for (const int64_t reach : {1, 2}) {
        ops::FillHoles flood, slabs;
        flood.connectivity = slabs.connectivity = reach;
        slabs.flood_voxels = 0;
        EXPECT_TRUE(slabs(labels).equal(flood(labels))) << seed;
      }
    }
  }
}

TEST(ByRows, WatershedOfALongImageIsThatOfTheWhole) {
  Rng rng(5);
  at::Tensor mask = at::zeros({4700, 120}, at::kBool);
  const at::Tensor y = at::arange(21).view({21, 1}) - 10, x = at::arange(21).view({1, 21}) - 10;
  for (int64_t n = 0; n < 1500; ++n) {
    const auto top = static_cast<int64_t>(rng.below(4700 - 21)),
               left = static_cast<int64_t>(rng.below(120 - 21));
    const auto radius = static_cast<int64_t>(4 + rng.below(7));
    at::Tensor part = mask.narrow(0, top, 21).narrow(1, left, 21);
    part.logical_or_((y.square() + x.square()).le(radius * radius));
  }
  ops::PeakOptions search;
  search.min_distance = 5;
  search.labels = ops::connected_components(mask, 1).labels;
  search.threshold_abs = 0;
  const at::Tensor distance = ops::distance_transform(mask, {1, 1.37});
  at::Tensor peaks = at::zeros(mask.sizes(), at::kBool);
  for (const int64_t voxel : ops::peak_local_max(distance, search)) peaks.view(-1)[voxel] = true;
  const at::Tensor whole =
      ops::watershed(distance.neg(), ops::connected_components(peaks, 1).labels, mask, 1);
  const Result found =
      by_rows(*step_of("{_target_: Watershed, sampling: [1, 1.37]}"), labelled(mask), 300);
  EXPECT_GT(whole.max().item<int32_t>(), 500);
  EXPECT_EQ(found.values.max().item<int32_t>(), whole.max().item<int32_t>());
  // The same objects, but for voxels that floods from two markers reach at one level.
  std::map<std::pair<int32_t, int32_t>, int64_t> voxels;
  std::map<int32_t, int64_t> most;
  for (int64_t i = 0; i < whole.numel(); ++i) {
    const int32_t own = whole.const_data_ptr<int32_t>()[i];
    int64_t& common = voxels[{own, found.values.const_data_ptr<int32_t>()[i]}];
    most[own] = std::max(most[own], ++common);
  }
  int64_t same = 0;
  for (const auto& [number, count] : most) same += count;
  EXPECT_LE(whole.numel() - same, whole.numel() / 2000);
}

TEST(ByRows, StepsOnScoresGiveThoseOfTheWholeImage) {
  at::manual_seed(3);
  Result scores;
  scores.values = at::rand({4, 23, 31});
  expect_same("{_target_: AsDiscrete, argmax: true}", scores, {1, 5, 23});
  expect_same("{_target_: AsDiscrete, argmax: true, to_onehot: 4}", scores, {1, 5, 23});
  expect_same("{_target_: AsDiscrete, threshold: 0.3}", scores, {4});
  expect_same("{_target_: Threshold, threshold: 0.5}", scores, {4});
  EXPECT_FALSE(
      by_rows(*step_of("{_target_: Threshold, method: otsu}"), scores, 4).values.defined());
}

TEST(ByRows, PlanesAreNumberedOnAndStitched) {
  Result stack;
  stack.values = at::zeros({3, 5, 40, 40});
  stack.values.select(0, 2).fill_(-6);
  for (int64_t z = 0; z < 5; ++z) {
    const at::Tensor spots = stack.values.select(1, z).slice(1, 5 + z, 17 + z).slice(2, 6, 18);
    spots[2].fill_(6);
    spots[0].copy_(at::arange(12).view({12, 1}).sub(5.5).neg().sign().mul(2));
    spots[1].copy_(at::arange(12).view({1, 12}).sub(5.5).neg().sign().mul(2));
  }
  stack.plane_axis = 0;
  expect_same("{_target_: FlowsToLabels}", stack, {1, 3, 5});
  const Result planes = by_rows(*step_of("{_target_: FlowsToLabels}"), stack, 2);
  EXPECT_EQ(planes.values.max().item<int32_t>(), 5);
  expect_same("{_target_: StitchPlanes}", planes, {1, 3, 5});
  EXPECT_EQ(by_rows(*step_of("{_target_: StitchPlanes}"), planes, 2).values.max().item<int32_t>(),
            1);
  stack.plane_axis = 1;
  EXPECT_FALSE(by_rows(*step_of("{_target_: FlowsToLabels}"), stack, 2).values.defined());
}

TEST(ByRows, MistakesAreToldBeforeTheFirstRow) {
  Result scores;
  scores.values = at::rand({1, 8, 8});
  for (const std::string name :
       {"FillHoles", "RemoveSmallObjects", "ConnectedComponents", "Watershed"}) {
    EXPECT_NE(message_of<ConfigError>([&] {
                by_rows(*step_of("{_target_: " + name + "}"), scores, 8);
              }).find("put AsDiscrete"),
              std::string::npos)
        << name;
  }
}

}  // namespace
}  // namespace cytra::inference
