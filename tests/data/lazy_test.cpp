#include <filesystem>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/loader/loader.h"
#include "data/loader/pipeline.h"
#include "data/sample/image_tensor.h"
#include "io/image.h"
#include "tests/data/make_transform.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

data::Sample sample_at(const std::string& path) {
  data::Sample sample;
  sample.id = path;
  sample.sources["raw"].path = path;
  sample.sources["seg"].path = std::filesystem::path(path).replace_filename("seg.ome.tif").string();
  return sample;
}

class Lazy : public ::testing::Test {
 protected:
  void SetUp() override {
    at::manual_seed(1);
    io::WriteOptions options;
    options.tile = 16;
    options.compression = io::WriteOptions::Compression::none;
    io::Geometry geometry;
    geometry.spacing_um = {1, 0.5, 0.25};
    io::write_ome_tiff(dir_ / "a.ome.tif",
                       data::to_image(at::randint(1000, {2, 6, 64, 80}), io::Dtype::u16, geometry),
                       options);
    std::filesystem::copy_file(dir_ / "a.ome.tif", dir_ / "seg.ome.tif");
  }
  test::TmpDir dir_;
};

TEST_F(Lazy, ACropIsThatOfTheWholeImage) {
  for (const char* crop :
       {"{_target_: RandSpatialCropd, keys: [raw, seg], roi_size: [3, 20, 24]}",
        "{_target_: SpatialCropd, keys: [raw, seg], roi_start: [1, 30, 3], roi_end: [5, 63, 70]}",
        "{_target_: RandCropByPosNegLabeld, keys: [raw, seg], label_key: seg, spatial_size: [2, "
        "16, 16]}",
        "{_target_: CenterSpatialCropd, keys: [raw, seg], roi_size: [2, 16, 16]}"}) {
    data::Sample whole = sample_at(dir_ / "a.ome.tif"), part = whole;
    Rng rng(3), same(3);
    make_transform("{_target_: LoadImaged, keys: [raw, seg], spatial_dims: 3}")->apply(whole, rng);
    make_transform("{_target_: LoadImaged, keys: [raw, seg], spatial_dims: 3, lazy: true}")
        ->apply(part, same);
    EXPECT_TRUE(part.tensors.empty());
    EXPECT_EQ(part.size("raw"), (std::vector<int64_t>{6, 64, 80}));
    for (int twice = 0; twice < 2; ++twice) {
      make_transform(crop)->apply(whole, rng);
      make_transform(crop)->apply(part, same);
    }
    for (const char* key : {"raw", "seg"})
      EXPECT_TRUE(part.at(key).equal(whole.at(key))) << crop << " " << key;
    EXPECT_EQ(part.geometry().spacing_um, whole.geometry().spacing_um);
  }
}

TEST_F(Lazy, ReadsNoMoreThanTheCrop) {
  const std::string path = dir_ / "a.ome.tif";
  data::Sample sample = sample_at(path);
  Rng rng(0);
  make_transform("{_target_: LoadImaged, keys: raw, spatial_dims: 3, lazy: true}")
      ->apply(sample, rng);
  make_transform("{_target_: SpatialCropd, keys: raw, roi_start: [0, 0, 0], roi_end: [1, 16, 16]}")
      ->apply(sample, rng);
  EXPECT_EQ(sample.unread.count("raw"), 1U);
  EXPECT_EQ(sample.unread.at("raw").region.size, (std::array<int64_t, 3>{1, 16, 16}));
  EXPECT_EQ(sample.stored("raw").scalar_type(), at::kUInt16);
  EXPECT_EQ(sample.unread.count("raw"), 0U);
}

TEST_F(Lazy, IsNotKeptByTheCacheAndGivesTheSameDraws) {
  const auto cache = std::make_shared<data::CacheManager>(data::CacheLimits{1, "", 0, false});
  const auto pipeline = [&](const char* load) {
    data::Transforms transforms{
        make_transform(load),
        make_transform("{_target_: RandSpatialCropd, keys: [raw], roi_size: [2, 8, 8]}")};
    return data::Pipeline({sample_at(dir_ / "a.ome.tif")}, std::move(transforms), cache, false);
  };
  const data::Pipeline lazy =
      pipeline("{_target_: LoadImaged, keys: [raw], spatial_dims: 3, lazy: true}");
  data::CurrentTransform current{nullptr};
  data::Sample part = lazy.load(0, current);
  EXPECT_EQ(cache->stats().ram_bytes, 0U);
  const data::Pipeline eager = pipeline("{_target_: LoadImaged, keys: [raw], spatial_dims: 3}");
  data::Sample whole = eager.load(0, current);
  EXPECT_GT(cache->stats().ram_bytes, 0U);
  Rng rng(5), same(5);
  lazy.transform(part, rng, current);
  eager.transform(whole, same, current);
  EXPECT_TRUE(part.at("raw").equal(whole.at("raw")));
}

TEST_F(Lazy, WhatNoTransformReadsIsInTheBatch) {
  for (const char* next : {"", "{_target_: RandFlipd, keys: [raw], prob: 0.5}"}) {
    data::DataLoaderSpec spec;
    spec.items.assign(6, sample_at(dir_ / "a.ome.tif"));
    spec.transforms = {
        make_transform("{_target_: LoadImaged, keys: [raw, seg], spatial_dims: 3, lazy: true}")};
    if (*next != 0) spec.transforms.push_back(make_transform(next));
    spec.options.batch_size = 3;
    spec.options.num_workers = 2;
    data::DataLoader loader(std::move(spec));
    loader.start_epoch(0);
    int64_t batches = 0;
    while (const auto batch = loader.next()) {
      ++batches;
      for (const char* key : {"raw", "seg"})
        EXPECT_EQ(batch->at(key).sizes(), (std::vector<int64_t>{3, 2, 6, 64, 80})) << key;
    }
    EXPECT_EQ(batches, 2);
  }
}

TEST_F(Lazy, PaddingReadsNothingWhereNothingIsMissing) {
  data::Sample sample = sample_at(dir_ / "a.ome.tif");
  Rng rng(0);
  make_transform("{_target_: LoadImaged, keys: [raw, seg], spatial_dims: 3, lazy: true}")
      ->apply(sample, rng);
  make_transform("{_target_: SpatialPadd, keys: [raw, seg], spatial_size: [4, 64, 16]}")
      ->apply(sample, rng);
  EXPECT_EQ(sample.unread.size(), 2U);
  make_transform("{_target_: SpatialPadd, keys: [raw, seg], spatial_size: [8, 64, 16]}")
      ->apply(sample, rng);
  EXPECT_EQ(sample.at("seg").sizes(), (std::vector<int64_t>{2, 8, 64, 80}));
}

// One pipeline after another may lie at the same address.
TEST_F(Lazy, ACacheTellsPipelinesApart) {
  const auto cache = std::make_shared<data::CacheManager>(data::CacheLimits{1, "", 0, false});
  std::optional<data::Pipeline> pipeline;
  data::CurrentTransform current{nullptr};
  for (const int64_t size : {8, 12}) {
    data::Transforms transforms{
        make_transform("{_target_: LoadImaged, keys: [raw], spatial_dims: 3}"),
        make_transform(
            "{_target_: CenterSpatialCropd, keys: [raw], roi_size: " + std::to_string(size) + "}")};
    pipeline.emplace(std::vector<data::Sample>{sample_at(dir_ / "a.ome.tif")},
                     std::move(transforms),
                     cache,
                     false);
    EXPECT_EQ(pipeline->load(0, current).at("raw").size(2), size);
  }
}

TEST_F(Lazy, AStackIsNoPlane) {
  data::Sample sample = sample_at(dir_ / "a.ome.tif");
  Rng rng(0);
  EXPECT_THROW(
      make_transform("{_target_: LoadImaged, keys: [raw], lazy: true}")->apply(sample, rng),
      DataError);
}

}  // namespace
}  // namespace cytra
