// GridPatchd against MONAI's patches (tests/golden/make_grid_patch.py), and by a loader.
#include <ATen/ATen.h>

#include "base/error.h"
#include "data/loader/loader.h"
#include "tests/data/make_transform.h"
#include "tests/support/golden.h"

namespace cytra {
namespace {

TEST(GridPatchd, EqualsMonai) {
  const test::Golden golden("grid_patch");
  for (const test::GoldenCase& entry : golden.cases(16)) {
    SCOPED_TRACE(entry.name);
    const auto transform =
        make<data::Transform>(test::component("monai.transforms.GridPatchd", entry.options()));
    std::vector<at::Tensor> patches;
    for (int64_t draw = 0; draw < transform->num_samples(); ++draw) {
      data::Sample sample;
      sample.tensors["image"] = entry.tensor("image");
      sample.draw = draw;
      Rng rng(0);
      transform->apply(sample, rng);
      patches.push_back(sample.at("image"));
    }
    EXPECT_TRUE(at::stack(patches).equal(entry.tensor("out")));
  }
}

TEST(GridPatchd, ALoaderGivesEachPatchOnce) {
  data::DataLoaderSpec spec;
  data::Sample item;
  item.id = "a";
  item.tensors["image"] = at::arange(36, at::kFloat).reshape({1, 6, 6});
  spec.items = {item};
  spec.transforms = {
      make_transform("{_target_: GridPatchd, keys: image, patch_size: 3, num_patches: 4}")};
  spec.options.batch_size = 1;
  data::DataLoader loader(spec);
  loader.start_epoch(0);
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  const at::Tensor corners = batch->at("image").flatten(1).select(1, 0);
  EXPECT_TRUE(corners.equal(at::tensor({0.F, 3.F, 18.F, 21.F})));
}

TEST(GridPatchd, SaysWhatDoesNotFit) {
  EXPECT_THROW(make_transform("{_target_: GridPatchd, keys: image, patch_size: 3, num_patches: 0}"),
               ConfigError);
  EXPECT_THROW(make_transform("{_target_: GridPatchd, keys: image, patch_size: 3, num_patches: 1, "
                              "offset: [-1, 0]}"),
               ConfigError);
  data::Sample sample;
  sample.tensors["image"] = at::zeros({1, 2, 6});
  Rng rng(0);
  EXPECT_THROW(make_transform("{_target_: GridPatchd, keys: image, patch_size: 3, num_patches: 1}")
                   ->apply(sample, rng),
               DataError);
}

}  // namespace
}  // namespace cytra
