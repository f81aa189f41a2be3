#include "data/sample/same_grid.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "data/loader/loader.h"
#include "data/loader/pipeline.h"
#include "io/reader.h"
#include "tests/data/make_transform.h"
#include "tests/data/monai_affine.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

using data::compare_grids;
using GridKind = data::GridRelation::Kind;

std::string pair_file(const std::string& name) {
  return std::string(CYTRA_SOURCE_DIR) + "/tests/golden/geometry/" + name;
}

io::Geometry geometry_from(const std::array<double, 12>& affine) {
  io::Geometry geometry;
  geometry.affine = affine;
  geometry.spacing_um = spacing_of(affine);
  return geometry;
}

TEST(Geometries, OfEveryFormatAreCompared) {
  const auto kind = [](const std::string& image, const std::string& target) {
    const auto info = [](const std::string& name) {
      const std::string folder = CYTRA_SOURCE_DIR "/tests/golden/places/";
      return io::open_image(folder + name)->info();
    };
    const io::ImageInfo one = info(image), other = info(target);
    return compare_grids(other.geometry,
                         {other.shape.begin() + 1, other.shape.end()},
                         one.geometry,
                         {one.shape.begin() + 1, one.shape.end()})
        .kind;
  };
  EXPECT_EQ(kind("meta_position.mha", "nrrd_dimension.nrrd"), GridKind::same);
  EXPECT_EQ(kind("meta_position.mha", "nrrd_mins.nrrd"), GridKind::other);
  EXPECT_EQ(kind("meta_position.mha", "meta_spacing.mha"), GridKind::unknown);
  EXPECT_EQ(kind("nrrd_mins.nrrd", "nrrd_mins_nodes.nrrd"), GridKind::other);
  EXPECT_EQ(kind("zarr_translation.ome.zarr", "ome_plane.ome.tif"), GridKind::other);
  EXPECT_EQ(kind("zarr_translation.ome.zarr", "zarr_scale.ome.zarr"), GridKind::unknown);
  EXPECT_EQ(kind("ome_stage.ome.tif", "imagej_origin.tif"), GridKind::other);
  EXPECT_EQ(kind("ome_stage.ome.tif", "ome_reference_frame.ome.tif"), GridKind::unknown);
  EXPECT_EQ(kind("nifti_qform.nii", "nifti_both.nii"), GridKind::same);
  EXPECT_EQ(kind("nifti_qfac_minus_1.nii", "nifti_qfac_0.nii"), GridKind::other);
}

TEST(Geometries, EveryKeyFollowsItsOwnAffineAsInMonai) {
  const test::Golden golden("geometry");
  for (const test::GoldenCase& entry : golden.cases(54)) {
    SCOPED_TRACE(entry.name);
    data::Sample sample;
    sample.id = entry.name;
    for (const char* key : {"image", "label"}) {
      sample.tensors[key] = entry.tensor(key);
      sample.geometries[key] =
          geometry_from(of_xyz(entry.node.get<std::string>(std::string("affine_") + key), 3));
    }
    Rng rng(0);
    for (const config::Node& step : entry.node.at("steps").list) {
      make<data::Transform>(
          test::component("monai.transforms." + step.get<std::string>("transform"),
                          step.at("options")))
          ->apply(sample, rng);
    }
    const at::Tensor label = sample.at("label"),
                     expected = entry.tensor("label.out").to(at::kFloat);
    ASSERT_EQ(label.sizes(), expected.sizes());
    EXPECT_EQ(label.ne(expected).sum().item<int64_t>(), 0);
    for (const std::string key : {"image", "label"}) {
      const auto affine = of_xyz(entry.node.get<std::string>("affine_" + key + "_out"), 3);
      for (std::size_t i = 0; i < 12; ++i)
        EXPECT_NEAR(sample.geometries[key].affine[i], affine[i], 2e-5) << key << " " << i;
    }
  }
}

/// An image of 4 x 5 x 6 voxels with an oblique affine, and the same under another one.
struct Grid {
  io::Geometry geometry;
  std::vector<int64_t> size;
};
Grid oblique_grid() {
  return {geometry_from({0.7, 0.2, -0.1, 12, -0.25, 1.1, 0.3, -30, 0.1, -0.3, 2.0, 7}), {4, 5, 6}};
}

TEST(SameGrid, FindsEveryOrderAndDirectionOfAxes) {
  const Grid image = oblique_grid();
  const at::Tensor voxels = at::arange(4 * 5 * 6).reshape({1, 4, 5, 6}).to(at::kInt);
  std::vector<int64_t> order{0, 1, 2};
  int turned = 0;
  do {
    for (int flips = 0; flips < 8; ++flips) {
      data::Sample sample;
      sample.tensors["raw"] = voxels;
      std::vector<int64_t> flipped;
      for (int64_t axis = 0; axis < 3; ++axis) {
        if ((flips >> axis & 1) != 0) flipped.push_back(axis + 1);
      }
      sample.tensors["seg"] =
          voxels.permute({0, order[0] + 1, order[1] + 1, order[2] + 1}).flip(flipped).contiguous();
      sample.geometries["raw"] = image.geometry;
      io::Geometry& own = sample.geometries["seg"] = image.geometry;
      for (std::size_t row = 0; row < 3; ++row) {
        for (std::size_t axis = 0; axis < 3; ++axis) {  // of the target, z first
          const auto from = static_cast<std::size_t>(order[axis]);
          const bool is_mirrored = (flips >> axis & 1) != 0;
          const double step = image.geometry.affine[4 * row + 2 - from];
          own.affine[4 * row + 2 - axis] = is_mirrored ? -step : step;
          if (is_mirrored)
            own.affine[4 * row + 3] += step * static_cast<double>(image.size[from] - 1);
        }
      }
      own.spacing_um = spacing_of(own.affine);
      turned += compare_grids(own, sample.size("seg"), image.geometry, image.size).kind ==
                GridKind::turned;
      data::expect_same_grid(sample, "seg", "raw");
      EXPECT_TRUE(sample.stored("seg").equal(voxels)) << flips;
      for (std::size_t i = 0; i < 12; ++i)
        EXPECT_NEAR(sample.geometries["seg"].affine[i], image.geometry.affine[i], 1e-9);
    }
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(turned, 47);
}

TEST(SameGrid, TellsWhatDiffersAndForgivesRounding) {
  const Grid image = oblique_grid();
  const auto of = [&](const std::function<void(io::Geometry&)>& change,
                      std::vector<int64_t> size = {4, 5, 6}) {
    io::Geometry other = image.geometry;
    change(other);
    other.spacing_um = spacing_of(other.affine);
    return compare_grids(other, size, image.geometry, image.size);
  };
  const auto scaled = [](double factor) {
    return [factor](io::Geometry& other) {
      for (std::size_t i = 0; i < 12; ++i) other.affine[i] *= i % 4 == 3 ? 1 : factor;
    };
  };
  const auto shifted = [](double voxels) {
    return [voxels](io::Geometry& other) {
      for (std::size_t row = 0; row < 12; row += 4)
        other.affine[row + 3] += voxels * other.affine[row];
    };
  };
  EXPECT_EQ(of([](io::Geometry& other) {
              for (double& value : other.affine)
                value = static_cast<double>(static_cast<float>(value));
            }).kind,
            GridKind::same);
  EXPECT_EQ(of(shifted(0.05)).kind, GridKind::same);
  EXPECT_EQ(of(shifted(0.5)).kind, GridKind::other);
  EXPECT_NE(of(shifted(0.5)).difference.find("0.5 voxels beside"), std::string::npos)
      << of(shifted(0.5)).difference;
  EXPECT_EQ(of(scaled(1.001)).kind, GridKind::same);
  EXPECT_NE(of(scaled(1.1)).difference.find("voxels of"), std::string::npos);
  EXPECT_NE(of(scaled(1), {4, 5, 7}).difference.find("4x5x7 voxels, expected 4x5x6"),
            std::string::npos);
  const auto tilted = of([](io::Geometry& other) {
    const double c = std::cos(0.1), s = std::sin(0.1);
    for (std::size_t i = 0; i < 4; ++i) {
      const double x = other.affine[i], y = other.affine[4 + i];
      other.affine[i] = c * x - s * y;
      other.affine[4 + i] = s * x + c * y;
    }
  });
  EXPECT_NE(tilted.difference.find("tilted by"), std::string::npos) << tilted.difference;
}

TEST(SameGrid, WhatAFileDoesNotTellSpeaksAgainstNothing) {
  const Grid image = oblique_grid();
  const io::Geometry nothing;
  EXPECT_EQ(compare_grids(nothing, {4, 5, 6}, image.geometry, image.size).kind, GridKind::unknown);
  EXPECT_EQ(compare_grids(nothing, {9, 9}, nothing, {7, 7}).kind, GridKind::other);
  io::Geometry guess = geometry_from({-3, 0, 0, 1, 0, 3, 0, 1, 0, 0, 3, 1});
  guess.spacing_um = image.geometry.spacing_um;
  guess.sform = guess.qform = 0;
  EXPECT_EQ(compare_grids(guess, {4, 5, 6}, image.geometry, image.size).kind, GridKind::unknown);
  // Pixel sizes: of OME-TIFF beside OME-Zarr or NIfTI.
  io::Geometry pixels;
  pixels.spacing_um = {0, 0.25, 0.25};
  io::Geometry others = pixels;
  EXPECT_EQ(compare_grids(pixels, {9, 9}, others, {9, 9}).kind, GridKind::unknown);
  others.spacing_um = {0, 0.5, 0.5};
  EXPECT_EQ(compare_grids(pixels, {9, 9}, others, {9, 9}).kind, GridKind::other);
  EXPECT_EQ(compare_grids(pixels, {9, 8}, pixels, {9, 9}).kind, GridKind::other);
  io::Geometry zoomed = image.geometry;
  zoomed.affine = {};
  EXPECT_EQ(compare_grids(zoomed, {4, 5, 6}, image.geometry, image.size).kind, GridKind::unknown);
  zoomed.spacing_um[1] *= 2;
  EXPECT_EQ(compare_grids(zoomed, {4, 5, 6}, image.geometry, image.size).kind, GridKind::other);
  // The direction of an axis of one voxel does not matter.
  io::Geometry plane = geometry_from({0.5, 0, 0, 1, 0, 0.5, 0, 2, 0, 0, 3, 4}), flat = plane;
  flat.affine[10] = -3;
  EXPECT_EQ(compare_grids(flat, {8, 9}, plane, {8, 9}).kind, GridKind::same);
  flat.affine[0] = -0.5;
  flat.affine[3] = 1 + 0.5 * 8;
  const auto mirrored = compare_grids(flat, {8, 9}, plane, {8, 9});
  EXPECT_EQ(mirrored.kind, GridKind::turned);
  EXPECT_EQ(mirrored.mirrored, (std::vector<bool>{false, true}));
  flat.affine[11] += 3;
  EXPECT_EQ(compare_grids(flat, {8, 9}, plane, {8, 9}).kind, GridKind::other) << "another slice";
}

data::Sample pair_of(const std::string& raw, const std::string& seg) {
  data::Sample sample;
  sample.id = pair_file(raw);
  sample.sources["raw"].path = pair_file(raw);
  sample.sources["seg"].path = pair_file(seg);
  return sample;
}

data::Sample loaded_pair(const std::string& raw,
                         const std::string& seg,
                         data::Mismatch on_mismatch = data::Mismatch::error,
                         const std::string& keys = "[raw, seg]") {
  data::Sample sample = pair_of(raw, seg);
  sample.on_mismatch = on_mismatch;
  sample.image = "raw";
  Rng rng(0);
  make_transform("{_target_: LoadImaged, keys: " + keys + ", spatial_dims: 3}")->apply(sample, rng);
  return sample;
}

TEST(SameGrid, LoadImagedTurnsWhatNibabelWroteInAnotherOrder) {
  for (const std::string keys : {"[raw, seg]", "[seg, raw]"}) {
    for (const std::string name : {"same", "flip_x", "flip_xy", "flip_z", "permuted", "no_forms"}) {
      SCOPED_TRACE(name + keys);
      data::Sample sample =
          loaded_pair("raw.nii.gz", "seg_" + name + ".nii.gz", data::Mismatch::error, keys);
      EXPECT_TRUE(sample.at("seg").eq(sample.at("raw").gt(0)).all().item<bool>());
      data::expect_same_grid(sample, "seg", "raw");
    }
  }
}

TEST(SameGrid, ADicomSeriesHasAConvertersMask) {
  if (!io::is_image_path(pair_file("series"))) GTEST_SKIP() << "built without DICOM";
  data::Sample sample = loaded_pair("series", "seg_converter.nii.gz");
  EXPECT_TRUE(sample.at("seg").eq(sample.at("raw").gt(0)).all().item<bool>());
}

TEST(SameGrid, AnythingElseIsAnErrorWhoseAdviceWorks) {
  for (const auto& [name, what] :
       {std::pair<std::string, std::string>{"half_voxel", "0.5 voxels beside"},
        {"spacing", "voxels of"},
        {"tilted", "tilted by"},
        {"finer", "16x20x24 voxels, expected 8x10x12"}}) {
    SCOPED_TRACE(name);
    const std::string file = "seg_" + name + ".nii.gz";
    data::Sample sample = loaded_pair("raw.nii.gz", file);
    const std::string message =
        message_of<DataError>([&] { data::expect_same_grid(sample, "seg", "raw"); });
    for (const std::string& part : {what,
                                    pair_file(file),
                                    pair_file("raw.nii.gz"),
                                    std::string("its affine is [["),
                                    std::string("that of 'raw' [["),
                                    std::string("data.on_mismatch=resample"),
                                    std::string("data.on_mismatch=ignore")})
      EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
    const std::size_t begin = message.find("{_target_: ResampleToMatchd");
    ASSERT_NE(begin, std::string::npos) << message;
    const std::string line = message.substr(begin, message.find('}', begin) + 1 - begin);
    Rng rng(0);
    make_transform(line)->apply(sample, rng);
    data::expect_same_grid(sample, "seg", "raw");
    EXPECT_EQ(sample.size("seg"), sample.size("raw"));
    data::Sample other = loaded_pair("raw.nii.gz", file, data::Mismatch::resample);
    data::expect_same_grid(other, "seg", "raw");
    EXPECT_TRUE(other.at("seg").eq(sample.at("seg")).to(at::kFloat).mean().item<double>() > 0.95);
    if (name == "finer") {
      EXPECT_TRUE(other.at("seg").eq(other.at("raw").gt(0)).all().item<bool>());
      continue;
    }
    data::Sample taken = loaded_pair("raw.nii.gz", file, data::Mismatch::ignore);
    data::expect_same_grid(taken, "seg", "raw");
    EXPECT_TRUE(taken.at("seg").eq(taken.at("raw").gt(0)).all().item<bool>());
  }
}

TEST(SameGrid, TransformsOfOneKeyAloneAreSeenAtTheEnd) {
  Rng rng(0);
  data::Sample turned = loaded_pair("raw.nii.gz", "seg_same.nii.gz");
  make_transform("{_target_: Orientationd, keys: [raw], axcodes: LPS}")->apply(turned, rng);
  data::expect_same_grid(turned, "seg", "raw");
  EXPECT_TRUE(turned.at("seg").eq(turned.at("raw").gt(0)).all().item<bool>());
  data::Sample cropped = loaded_pair("raw.nii.gz", "seg_same.nii.gz");
  make_transform(
      "{_target_: SpatialCropd, keys: [seg], roi_start: [0, 0, 1], roi_end: [8, 10, 12]}")
      ->apply(cropped, rng);
  EXPECT_THROW(data::expect_same_grid(cropped, "seg", "raw"), DataError);
  data::Sample spaced = loaded_pair("raw.nii.gz", "seg_finer.nii.gz");
  for (const char* key : {"raw", "seg"})
    make_transform(std::string("{_target_: Spacingd, keys: ") + key +
                   ", pixdim: [2.0, 1.1, 0.8], mode: nearest}")
        ->apply(spaced, rng);
  EXPECT_EQ(spaced.size("seg"), spaced.size("raw"));
}

TEST(SameGrid, ACacheKeepsWhereEachImageLiesAndGoesByOnMismatch) {
  const test::TmpDir dir;
  data::CacheLimits limits;
  limits.cache_dir = dir / "cache";
  const auto cache = std::make_shared<data::CacheManager>(limits);
  const auto load = [&](data::Mismatch on_mismatch) {
    data::Sample item = pair_of("raw.nii.gz", "seg_half_voxel.nii.gz");
    item.image = "raw";
    item.on_mismatch = on_mismatch;
    const data::Pipeline pipeline(
        {item},
        {make_transform("{_target_: LoadImaged, keys: [raw, seg], spatial_dims: 3}")},
        cache,
        true);
    data::CurrentTransform current{nullptr};
    return pipeline.load(0, current);
  };
  for (int time = 0; time < 2; ++time) {  // made, then kept
    data::Sample sample = load(data::Mismatch::error);
    EXPECT_THROW(data::expect_same_grid(sample, "seg", "raw"), DataError);
    EXPECT_EQ(sample.geometries.at("raw").sform, 2) << "nibabel's code";
    sample = load(data::Mismatch::ignore);
    data::expect_same_grid(sample, "seg", "raw");
  }
  EXPECT_EQ(cache->stats().misses, 2);
}

TEST(SameGrid, AMaskOfAnotherPlaceIsNotPadding) {
  data::Sample sample = loaded_pair("raw.nii.gz", "seg_same.nii.gz");
  sample.geometries["seg"].affine[3] += 1000;
  sample.on_mismatch = data::Mismatch::resample;
  const std::string message =
      message_of<DataError>([&] { data::expect_same_grid(sample, "seg", "raw"); });
  EXPECT_NE(message.find("no voxel in common"), std::string::npos) << message;
  EXPECT_NE(message.find("seg_same.nii.gz"), std::string::npos) << message;
}

TEST(SameGrid, NamesOrientations) {
  EXPECT_EQ(data::orientation_of(geometry_from({1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0})), "RAS");
  EXPECT_EQ(data::orientation_of(geometry_from({0, -1, 0, 0, -1, 0, 0, 0, 0, 0, 1, 0})), "PLS");
  EXPECT_EQ(data::orientation_of({}), "");
}

TEST(Spacingd, SaysMillimetresWhereOneVoxelWouldBeLeft) {
  data::Sample sample;
  sample.id = "cell.tif";
  sample.tensors["image"] = at::zeros({1, 64, 48});
  sample.geometries["image"].spacing_um = {0, 0.25, 0.25};
  Rng rng(0);
  const auto message = [&](const std::string& pixdim) {
    return message_of<DataError>([&] {
      make_transform("{_target_: Spacingd, keys: image, pixdim: " + pixdim + "}")
          ->apply(sample, rng);
    });
  };
  EXPECT_NE(message("1").find("0.001 for each um"), std::string::npos) << message("1");
  EXPECT_NE(message("1e-9").find("pixdim in mm"), std::string::npos) << message("1e-9");
  EXPECT_EQ(message("0.0005"), "");
}

/// A pair in memory, in whose pixels no place is known, after transforms. "": it fits.
std::string after(const std::vector<int64_t>& image,
                  const std::vector<int64_t>& target,
                  const std::vector<std::string>& transforms,
                  double spacing_um = 0,
                  double target_spacing_um = 0) {
  data::Sample item;
  item.id = "pair";
  item.image = "raw";
  item.tensors["raw"] = at::rand(image);
  item.tensors["seg"] = at::rand(target).gt(0.5).to(at::kByte);
  item.geometries["raw"].spacing_um = {spacing_um, spacing_um, spacing_um};
  item.geometries["seg"].spacing_um = {target_spacing_um, target_spacing_um, target_spacing_um};
  data::Transforms list;
  for (const std::string& one : transforms)
    list.push_back(make_transform("{_target_: " + one + ", keys: [raw, seg]}"));
  const data::Pipeline pipeline({item}, list, nullptr, false);
  data::CurrentTransform current{nullptr};
  data::Sample sample = pipeline.load(0, current);
  Rng rng(1);
  pipeline.transform(sample, rng, current);
  EXPECT_EQ(sample.size("raw"), sample.size("seg")) << transforms.back();
  return message_of<DataError>([&] { data::expect_same_grid(sample, "seg", "raw"); });
}

TEST(SameGrid, ATargetOfAnotherSizeIsNoneOfItsImageWhateverPadsOrCutsBoth) {
  const std::string pad = "SpatialPadd, spatial_size: [128]",
                    crop = "RandSpatialCropd, random_size: false, roi_size: [32]";
  for (const auto& [image, target] :
       {std::pair<std::vector<int64_t>, std::vector<int64_t>>{{1, 96, 96}, {1, 48, 48}},
        {{1, 100, 100}, {1, 80, 90}},
        {{1, 96, 96}, {1, 96, 95}},
        {{3, 96, 96}, {4, 120, 97}},
        {{1, 20, 40, 40}, {1, 10, 40, 40}}}) {
    for (const double spacing : {0., 250.}) {
      for (const std::vector<std::string>& steps :
           {std::vector<std::string>{pad},
            {pad, crop},
            {"SpatialPadd, method: end, spatial_size: [128]"},
            {"RandRotate90d, prob: 1", pad},
            {"ResizeWithPadOrCropd, spatial_size: [64]"},
            {"CenterSpatialCropd, roi_size: [8]"}})
        EXPECT_NE(after(image, target, steps, spacing, spacing), "") << steps[0] << target[1];
    }
  }
  EXPECT_NE(after({1, 64, 64}, {1, 128, 128}, {crop}), "") << "a larger target was cut";
  // What gives both one size on purpose.
  const std::string resize = "Resized, mode: [area, nearest], spatial_size: ";
  EXPECT_EQ(after({1, 96, 96}, {1, 48, 48}, {resize + "[64, 64]", pad}), "");
  EXPECT_EQ(after({1, 20, 40, 40}, {1, 10, 20, 40}, {resize + "[16, 32, 32]", pad}), "");
  EXPECT_EQ(after({1, 96, 96}, {1, 48, 48}, {"Spacingd, pixdim: [2, 2]", pad}, 1000, 2000), "");
  EXPECT_EQ(after({1, 90, 96}, {1, 90, 96}, {pad, crop}), "");
}

}  // namespace
}  // namespace cytra
