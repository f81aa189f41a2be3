#include "pipelines/job/names.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/files.h"
#include "inference/outputs/image.h"
#include "io/reader.h"
#include "pipelines/predict/options.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;

std::string name_of(const std::string& path, int64_t scene = -1, int64_t timepoint = -1) {
  data::Source source;
  source.path = path;
  source.selection.scene = scene;
  source.selection.timepoint = timepoint;
  return pipelines::OutputNames().next(source);
}

TEST(OutputNames, AreTheImagesWithoutItsEnding) {
  EXPECT_EQ(name_of("in/brain.nii.gz"), "brain");
  EXPECT_EQ(name_of("BRAIN.NII.GZ"), "BRAIN");
  EXPECT_EQ(name_of("in/cells.ome.tif"), "cells");
  EXPECT_EQ(name_of("cells.ome.tiff"), "cells");
  EXPECT_EQ(name_of("cells.v1.2.tif"), "cells.v1.2");
  EXPECT_EQ(name_of("plate.ome.zarr"), "plate");
  EXPECT_EQ(name_of("in/plate.zarr/"), "plate");
  EXPECT_EQ(name_of("in/series"), "series");
  EXPECT_EQ(name_of("a.png.tif"), "a.png");
  EXPECT_EQ(name_of(".tif"), ".tif");
  EXPECT_EQ(name_of("film.mp4", -1, 12), "film_t12");
  EXPECT_EQ(name_of("film.tif", 2, 0), "film_s2_t0");
  const test::TmpDir dir;
  write_file(dir / "a.h5", "");
  EXPECT_EQ(name_of(dir / "a.h5/volumes/raw"), "a_volumes_raw");
}

TEST(OutputNames, AreUsedOnce) {
  pipelines::OutputNames names;
  const auto next = [&](const std::string& path) {
    data::Source source;
    source.path = path;
    return names.next(source);
  };
  EXPECT_EQ(next("1/a.tif"), "a");
  EXPECT_EQ(next("2/a.tif"), "a_2");
  EXPECT_EQ(next("3/a_2.tif"), "a_2_2");
  EXPECT_EQ(next("4/a.nii"), "a_3");
  EXPECT_EQ(next("a_overlay.png"), "a_overlay_2") << "the overlay of a has that name";
  const std::string longest(251, 'y'), other = longest.substr(1) + "z";
  const std::string name = next(longest + ".tif");
  EXPECT_LE((name + "_overlay.png").size(), 220U) << "no room for the ending";
  EXPECT_EQ(name.substr(0, 100), longest.substr(0, 100));
  EXPECT_NE(next(other + ".tif"), name);
  std::string letters;  // of three bytes each
  for (int i = 0; i < 80; ++i) letters += "\u20ac";
  EXPECT_TRUE(is_utf8(next(letters + ".png")));
  std::string last;
  for (int i = 0; i < 20'000; ++i) last = next("many.tif");  // minutes when it is quadratic
  EXPECT_EQ(last, "many_20000");
}

io::Image image_of(io::Dtype dtype, std::array<int64_t, 4> shape) {
  io::Image image;
  image.dtype = dtype;
  image.shape = shape;
  image.pixels.resize(image.bytes(), 1);
  return image;
}

io::ImageInfo info_of(const io::Image& image) {
  io::ImageInfo info;
  info.dtype = image.dtype;
  info.shape = image.shape;
  info.geometry = image.geometry;
  return info;
}

std::string extension(const std::string& source,
                      const io::Image& image,
                      const std::string& format = "auto",
                      const std::string& save = "mask") {
  const test::TmpDir dir;
  pipelines::PredictOptions options;
  options.format = format;
  options.save = save;
  const std::string path =
      inference::output_path(dir / "out", source, info_of(image), options.format);
  const auto writer = io::create_image(path, info_of(image));
  writer->write(image);
  writer->finish();
  EXPECT_EQ(io::read_image(path).pixels, image.pixels) << path;
  return path.substr((dir / "out").size());
}

TEST(OutputNames, OfFramesDoNotMeetThoseOfOtherImages) {
  pipelines::OutputNames names;
  data::Source source;
  for (const char* path : {"a.tif", "a_t1.tif"}) {
    source.path = path;
    names.next(source);
  }
  const auto frame = [&](const std::string& stem, int64_t timepoint, int64_t plane) {
    source.selection.timepoint = timepoint;
    source.selection.plane = plane;
    return names.frame(stem, source);
  };
  EXPECT_EQ(frame("a", 0, -1), "a_t0");
  EXPECT_EQ(frame("a", 1, -1), "a_t1_2");
  EXPECT_EQ(frame("a", -1, 1), "a_z1");
  EXPECT_EQ(names.scene("a", 2), "a_s2");
  EXPECT_EQ(frame("a_s2", 1, -1), "a_s2_t1");
}

TEST(PredictionFormat, IsThatOfTheImage) {
  const io::Image stack = image_of(io::Dtype::u8, {1, 4, 16, 16}),
                  plane = image_of(io::Dtype::u16, {1, 1, 16, 16});
  EXPECT_EQ(extension("a.nii.gz", stack), ".nii.gz");
  EXPECT_EQ(extension("a.nii", stack), ".nii.gz");
  EXPECT_EQ(extension("a.NII.GZ", stack), ".nii.gz");
  EXPECT_EQ(extension("a.hdr", stack), ".nii.gz");
  EXPECT_EQ(extension("a.ome.zarr", stack), ".ome.zarr");
  EXPECT_EQ(extension("a.npy", stack), ".npy");
  for (const char* name : {"a.tif", "a.ome.tif", "series", "a.dcm", "a.h5/raw", "a.mp4"})
    EXPECT_EQ(extension(name, stack), ".ome.tif") << name;
  io::Image placed = stack;
  placed.geometry.affine = {1, 0, 0, 5, 0, 1, 0, 6, 0, 0, 2, 7};
  for (const char* name : {"series", "a.dcm"}) EXPECT_EQ(extension(name, placed), ".nii.gz");
  EXPECT_EQ(extension("a.ome.tif", placed), ".ome.tif");
  EXPECT_EQ(extension("a.png", plane), ".png");
  EXPECT_EQ(extension("a.JPG", plane), ".png");
}

TEST(PredictionFormat, IsOmeTiffWherePngHoldsLess) {
  EXPECT_EQ(extension("a.png", image_of(io::Dtype::u32, {1, 1, 16, 16})), ".ome.tif");
  EXPECT_EQ(extension("a.png", image_of(io::Dtype::f32, {1, 1, 16, 16}), "auto", "logits"),
            ".ome.tif");
}

TEST(PredictionFormat, IsWhatWasAskedFor) {
  const io::Image stack = image_of(io::Dtype::f32, {2, 4, 16, 16});
  EXPECT_EQ(extension("a.tif", stack, "nifti", "logits"), ".nii.gz");
  EXPECT_EQ(extension("a.nii", stack, "ome_tiff", "logits"), ".ome.tif");
  EXPECT_EQ(extension("a.nii", stack, "ome_zarr", "logits"), ".ome.zarr");
  EXPECT_EQ(extension("a.nii", stack, "npy", "logits"), ".npy");
  EXPECT_EQ(extension("a.tif", image_of(io::Dtype::u8, {1, 1, 16, 16}), "png"), ".png");
}

TEST(PredictionFormat, PngRefusesWhatItCantHold) {
  const test::TmpDir dir;
  pipelines::PredictOptions options;
  options.format = "png";
  const auto message = [&](const io::Image& image) {
    return message_of<DataError>(
        [&] { inference::output_path(dir / "out", "a.tif", info_of(image), options.format); });
  };
  EXPECT_NE(message(image_of(io::Dtype::u8, {1, 5, 8, 8})).find("a.tif: PNG"), std::string::npos);
  EXPECT_NE(message(image_of(io::Dtype::u32, {1, 1, 8, 8})).find("uint32"), std::string::npos);
  options.save = "probability";
  EXPECT_NE(message_of<ConfigError>([&] { options.check(); }).find("ome_tiff"), std::string::npos);
}

}  // namespace
}  // namespace cytra
