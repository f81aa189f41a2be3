// Where voxels lie, as the libraries of the formats read it: tests/golden/make_places.py.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/pixels/format.h"
#include "io/reader.h"
#include "io/writer.h"
#include "tests/support/tmp_dir.h"

namespace cytra::io {
namespace {

const std::string kPlaces = CYTRA_SOURCE_DIR "/tests/golden/places/";

nlohmann::json cases() {
  std::ifstream file(kPlaces + "cases.json");
  return nlohmann::json::parse(file);
}

void expect_near(double value, double expected) {
  EXPECT_NEAR(value, expected, 1e-6 * std::max(1.0, std::abs(expected)));
}

TEST(Places, AreReadAsTheFormatsOwnLibrariesDo) {
  int count = 0;
  for (const auto& entry : cases()) {
    const auto name = entry["file"].get<std::string>();
    SCOPED_TRACE(name);
    const auto image = open_image(kPlaces + name);
    const Geometry& geometry = image->info().geometry;
    const bool is_plane = image->info().shape[1] == 1;
    for (std::size_t side = is_plane ? 1 : 0; side < 3; ++side)
      expect_near(geometry.spacing_um[side], entry["spacing_um"][side].get<double>());
    ++count;
    ASSERT_EQ(geometry.has_affine(), !entry["affine"].is_null());
    for (std::size_t i = 0; i < 12 && geometry.has_affine(); ++i)
      if (!is_plane || i % 4 != 2)
        expect_near(geometry.affine[i], entry["affine"][i].get<double>());
    if (!entry.contains("values")) continue;
    const Image pixels = image->read({});
    for (std::size_t i = 0; i < entry["values"].size(); ++i) {
      int16_t value = 0;
      std::memcpy(&value, pixels.pixels.data() + 2 * i, sizeof value);
      EXPECT_EQ(value, entry["values"][i].get<double>());
    }
  }
  EXPECT_GE(count, 80);
}

TEST(Places, AreWrittenWhereAFormatHoldsThem) {
  const test::TmpDir folder;
  for (const auto& entry : cases()) {
    const auto name = entry["file"].get<std::string>();
    const Image image = read_image(kPlaces + name);
    ImageInfo info;
    info.dtype = image.dtype;
    info.shape = image.shape;
    info.geometry = image.geometry;
    const auto back_from = [&](const std::string& ending) {
      const std::string path = folder / "a" + ending;
      std::filesystem::remove_all(path);
      const auto writer = create_image(path, info);
      writer->write(image);
      writer->finish();
      return read_image(path).geometry;
    };
    for (const std::string ending : {".nii.gz", ".nrrd", ".mha"}) {
      SCOPED_TRACE(name + " as " + ending);
      const Geometry back = back_from(ending);
      ASSERT_EQ(back.is_placed(), image.geometry.is_placed());
      for (std::size_t i = 0; i < 12 && back.is_placed(); ++i)
        expect_near(back.affine[i], image.geometry.affine[i]);
      for (std::size_t side = image.shape[1] == 1 ? 1 : 0; side < 3; ++side)
        expect_near(back.spacing_um[side], image.geometry.spacing_um[side]);
    }
    const auto origin = axis_aligned_origin_um(image.geometry);
    for (const std::string ending : {".ome.tif", ".ome.zarr"}) {  // along the world's axes only
      SCOPED_TRACE(name + " as " + ending);
      const Geometry back = back_from(ending);
      ASSERT_EQ(back.is_placed(), origin.has_value());
      for (std::size_t row = 0; row < 3 && origin; ++row)
        expect_near(back.affine[4 * row + 3], image.geometry.affine[4 * row + 3]);
      for (std::size_t side = image.shape[1] == 1 ? 1 : 0; side < 3; ++side)
        expect_near(back.spacing_um[side], image.geometry.spacing_um[side]);
    }
  }
}

TEST(Places, OfALevelAndOfARegionAreTheirFirstVoxels) {
  const std::string file = kPlaces + "zarr_translation.ome.zarr";
  const Geometry whole = read_image(file).geometry;
  Region region;
  region.begin = {1, 2, 3};
  const Geometry part = open_image(file)->read(region).geometry;
  for (std::size_t row = 0; row < 3; ++row) {
    double expected = whole.affine[4 * row + 3];
    for (std::size_t axis = 0; axis < 3; ++axis)
      expected += whole.affine[4 * row + axis] * static_cast<double>(3 - axis);
    expect_near(part.affine[4 * row + 3], expected);
  }
}

TEST(Places, ThatAFormatCantHoldAreSaid) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own, as each says it once
  const auto convert = [](const std::string& name, const std::string& ending) {
    const test::TmpDir folder;
    const Image image = read_image(kPlaces + name);
    ImageInfo info;
    info.dtype = image.dtype;
    info.shape = image.shape;
    info.geometry = image.geometry;
    create_image(folder / "b" + ending, info);
    std::_Exit(0);
  };
  const auto ended = ::testing::ExitedWithCode(0);
  EXPECT_EXIT(convert("nifti_qform.nii", ".ome.tif"), ended, "TIFF can't hold axes");
  EXPECT_EXIT(convert("meta_offset.mha", ".ome.tif"), ended, "^$");
  EXPECT_EXIT(convert("imagej_plane.tif", ".png"), ended, "PNG can't hold where");
  EXPECT_EXIT(convert("imagej_micron.tif", ".ome.tif"), ended, "^$");
}

}  // namespace
}  // namespace cytra::io
