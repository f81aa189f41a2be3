#include "inference/predictor/input.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/node.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra::inference {
namespace {

InputTransforms transforms(const std::string& more) {
  return {config::parse_yaml(
              "{train: [], predict: null, valid: [{_target_: LoadImaged, keys: [raw, seg], "
              "spatial_dims: 3}, {_target_: NormalizeIntensityd, keys: raw, channel_wise: true}" +
                  more + "]}",
              "test"),
          "seg"};
}

/// (2,70,40,30), larger than one block of rows is made to be.
data::Sample written_sample(const std::string& path) {
  io::Image image;
  image.dtype = io::Dtype::u16;
  image.shape = {2, 70, 40, 30};
  image.pixels.resize(image.bytes());
  uint32_t state = 1;
  for (unsigned char& byte : image.pixels)
    byte = static_cast<unsigned char>((state = state * 1664525 + 1013904223) >> 24);
  image.geometry.spacing_um = {2, 1, 1};
  io::write_ome_tiff(path, image);
  data::Sample sample;
  sample.id = path;
  sample.sources["raw"].path = path;
  return sample;
}

TEST(ModelInput, ByRowsIsTheWholeImage) {
  const test::TmpDir dir;
  const data::Sample sample = written_sample(dir / "a.ome.tif");
  for (const char* more : {"",
                           ", {_target_: ScaleIntensityRangePercentilesd, keys: raw, lower: 1, "
                           "upper: 99, b_min: 0, b_max: 1, clip: true}"}) {
    const ModelInput whole = transforms(more).apply(sample, "raw"),
                     rows = transforms(more).apply(sample, "raw", {3, 1, 1}, 1000);
    EXPECT_FALSE(whole.is_by_rows());
    ASSERT_TRUE(rows.is_by_rows());
    EXPECT_EQ(rows.shape, (std::vector<int64_t>{2, 70, 40, 30}));
    EXPECT_EQ(rows.shape, whole.shape);
    EXPECT_EQ(rows.sample.geometry().spacing_um[0], 3);
    for (int64_t first = 0, count = 1; first < 70; first += count, count = count % 13 + 3) {
      count = std::min(count, 70 - first);
      EXPECT_TRUE(rows.rows(first, count).equal(whole.rows(first, count))) << first;
      EXPECT_TRUE(rows.shown(first, count).equal(whole.shown(first, count).to(at::kFloat)));
    }
    EXPECT_TRUE(rows.rows(5, 2).equal(whole.rows(5, 2))) << "back again";
  }
}

TEST(ModelInput, IsReadWholeWhereATransformTakesThat) {
  const test::TmpDir dir;
  const data::Sample sample = written_sample(dir / "a.ome.tif");
  const char* more = ", {_target_: Spacingd, keys: raw, pixdim: [0.004, 0.002, 0.002]}";
  const ModelInput rows = transforms(more).apply(sample, "raw", {}, 1000),
                   whole = transforms(more).apply(sample, "raw");
  EXPECT_FALSE(rows.is_by_rows());
  EXPECT_EQ(rows.shape, whole.shape);
  EXPECT_TRUE(rows.rows(0, rows.shape[1]).equal(whole.rows(0, whole.shape[1])));
  EXPECT_EQ(rows.sample.geometry().spacing_um, whole.sample.geometry().spacing_um);
}

TEST(ModelInput, WhatIsShownGoesWhereTheTransformsMoveIt) {
  const test::TmpDir dir;
  io::Image image;
  image.dtype = io::Dtype::u8;
  image.shape = {1, 4, 4, 4};
  for (int value = 0; value < 64; ++value)
    image.pixels.push_back(static_cast<unsigned char>(3 * value));
  image.geometry.spacing_um = {1000, 1000, 1000};
  image.geometry.affine = {-1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};  // x to the left
  io::write_nifti(dir / "a.nii.gz", image);
  data::Sample sample;
  sample.id = dir / "a.nii.gz";
  sample.sources["raw"].path = sample.id;
  const at::Tensor values = 3 * at::arange(64, at::TensorOptions(at::kFloat)).view({1, 4, 4, 4});
  for (const int64_t by_rows_from : {INT64_MAX, int64_t{1}}) {
    const ModelInput turned = transforms(", {_target_: Orientationd, keys: raw, axcodes: RAS}")
                                  .apply(sample, "raw", {}, by_rows_from);
    EXPECT_TRUE(turned.shown(0, 4).to(at::kFloat).equal(values.flip(3)))
        << "the same size in another direction";
    EXPECT_TRUE(turned.rows(0, 4).gt(0).equal(values.flip(3).gt(values.mean())))
        << "as the model's";
  }
}

TEST(ModelInput, WhatIsShownFollowsWithoutAnAffine) {
  const test::TmpDir dir;
  io::Image image;
  image.shape = {1, 2, 4, 4};
  for (int value = 0; value < 32; ++value)
    image.pixels.push_back(static_cast<unsigned char>(3 * value));
  io::write_npy(dir / "a.npy", image);
  data::Sample sample;
  sample.id = dir / "a.npy";
  sample.sources["raw"].path = sample.id;
  const at::Tensor values = 3 * at::arange(32, at::TensorOptions(at::kFloat)).view({1, 2, 4, 4});
  for (const char* more : {", {_target_: Flipd, keys: raw, spatial_axis: 2}",
                           ", {_target_: GaussianSmoothd, keys: raw, sigma: 1}, {_target_: Flipd, "
                           "keys: raw, spatial_axis: 2}",
                           ", {_target_: Flipd, keys: raw, spatial_axis: 2}, {_target_: "
                           "GaussianSmoothd, keys: raw, sigma: 1}"}) {
    const ModelInput turned = transforms(more).apply(sample, "raw");
    EXPECT_TRUE(turned.shown(0, 2).to(at::kFloat).equal(values.flip(3))) << more;
    EXPECT_FALSE(turned.sample.geometry().has_affine());
  }
  const ModelInput same =
      transforms(", {_target_: GaussianSmoothd, keys: raw, sigma: 1}").apply(sample, "raw");
  EXPECT_TRUE(same.shown(0, 2).to(at::kFloat).equal(values)) << "no transform moves voxels";
}

TEST(ModelInput, TheTargetsShareOfOptionsGoesWithIt) {
  const test::TmpDir dir;
  const data::Sample sample = written_sample(dir / "a.ome.tif");
  const auto resampled = [&](const std::string& keys, const std::string& modes) {
    return transforms(", {_target_: Spacingd, keys: " + keys +
                      ", pixdim: [0.002, 0.0013, 0.0013], mode: " + modes + "}")
        .apply(sample, "raw")
        .rows(0, 4);
  };
  const at::Tensor expected = resampled("[raw]", "nearest");
  EXPECT_TRUE(resampled("[seg, raw]", "[bilinear, nearest]").equal(expected));
  EXPECT_TRUE(resampled("[raw, seg]", "[nearest, bilinear]").equal(expected));
  EXPECT_FALSE(resampled("[raw, seg]", "[bilinear, nearest]").equal(expected));
}

TEST(ModelInput, AnErrorNamesTheTransform) {
  data::Sample sample;
  sample.id = "gone.tif";
  sample.sources["raw"].path = "gone.tif";
  const std::string message = message_of<ConfigError>([&] { transforms("").apply(sample, "raw"); });
  EXPECT_NE(message.find("gone.tif"), std::string::npos) << message;
  EXPECT_NE(message.find("(in LoadImaged)"), std::string::npos) << message;
}

}  // namespace
}  // namespace cytra::inference
