#include "inference/predictor/object_slabs.h"

#include <map>

#include "tests/support/golden.h"

namespace cytra::inference {
namespace {

/// Numbers in the order of first voxels.
at::Tensor in_raster_order(const at::Tensor& objects) {
  at::Tensor result = objects.to(at::kInt).contiguous().clone();
  std::map<int32_t, int32_t> numbers{{0, 0}};
  int32_t* label = result.mutable_data_ptr<int32_t>();
  for (int64_t i = 0; i < result.numel(); ++i)
    label[i] = numbers.try_emplace(label[i], static_cast<int32_t>(numbers.size())).first->second;
  return result;
}

PostprocessSteps steps_of(const std::string& yaml) {
  return make_postprocess(config::parse_yaml(yaml, "test"));
}

at::Tensor by_slabs(const at::Tensor& image,
                    const std::string& steps,
                    int64_t rows,
                    int64_t most_rows) {
  ObjectSlabs slabs(steps_of(steps), {}, most_rows);
  std::vector<at::Tensor> parts;
  for (int64_t first = 0; first < image.size(0); first += rows)
    parts.push_back(slabs.add(image.narrow(0, first, std::min(rows, image.size(0) - first))));
  parts.push_back(slabs.finish());
  return at::cat(parts);
}

TEST(ObjectSlabs, MakeTheObjectsOfTheWholeImage) {
  const test::Golden golden("watershed");
  // Distances of which few are equal: see the class.
  const std::string split = "[{_target_: Watershed, min_distance: 3, sampling: [1, 1.37]}]",
                    split_3d =
                        "[{_target_: Watershed, min_distance: 3, sampling: [1, 1.37, 1.71]}]",
                    number = "[{_target_: ConnectedComponents}]";
  int64_t seen = 0;
  for (const test::GoldenCase& entry : golden.cases(60)) {
    if (entry.node.get<std::string>("what") != "recipe") continue;
    const at::Tensor image = entry.tensor("image");
    for (const std::string& steps : {image.dim() == 3 ? split_3d : split, number}) {
      Result whole;
      whole.values = image.to(at::kInt).unsqueeze(0);
      whole.is_labels = true;
      apply_all(steps_of(steps), whole);
      for (const int64_t rows : {1, 4, 9}) {
        const at::Tensor found = by_slabs(image, steps, rows, INT64_MAX);
        EXPECT_TRUE(in_raster_order(found).equal(in_raster_order(whole.values[0])))
            << entry.name << " " << steps << " " << rows;
      }
    }
    ++seen;
  }
  EXPECT_GE(seen, 8);
}

TEST(ObjectSlabs, GiveRowsAsSoonAsTheirObjectsEnd) {
  ObjectSlabs slabs(steps_of("[{_target_: ConnectedComponents}]"), {});
  EXPECT_EQ(slabs.add(at::tensor({1, 0, 0}, at::kInt).reshape({1, 3})).size(0), 0);
  EXPECT_EQ(slabs.add(at::tensor({1, 0, 2}, at::kInt).reshape({1, 3})).size(0), 0);
  const at::Tensor rows = slabs.add(at::tensor({0, 0, 2}, at::kInt).reshape({1, 3}));
  EXPECT_TRUE(rows.equal(at::tensor({1, 0, 0}, at::kInt).reshape({1, 3})));
  EXPECT_TRUE(slabs.finish().equal(at::tensor({1, 0, 2, 0, 0, 2}, at::kInt).reshape({2, 3})));
  EXPECT_EQ(slabs.count(), 2);
}

TEST(ObjectSlabs, CutWhatIsTallerThanMemoryHolds) {
  const at::Tensor objects = by_slabs(at::ones({10, 4}, at::kInt),
                                      "[{_target_: ConnectedComponents}]",
                                      /*rows=*/1,
                                      /*most_rows=*/3);
  EXPECT_EQ(objects.size(0), 10);
  EXPECT_TRUE(objects.gt(0).all().item<bool>());
  EXPECT_EQ(objects.max().item<int32_t>(), 3);  // rows 0 to 3, 4 to 7, 8 and 9
}

}  // namespace
}  // namespace cytra::inference
