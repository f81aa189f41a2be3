// Every format, as other programs write it: tests/golden/make_images.py.
#include <cmath>
#include <thread>

#include <nlohmann/json.hpp>
#include <zlib.h>

#include "base/error.h"
#include "base/files.h"
#include "tests/io/golden_cases.h"
#include "tests/support/at_least.h"
#include "tests/support/tmp_dir.h"

namespace cytra::io {
namespace {

using nlohmann::json;

std::string golden_image(const std::string& name) {
  return std::string(CYTRA_SOURCE_DIR) + "/tests/golden/images/" + name;
}

Selection selection_for(const json& entry) {
  Selection selection;
  selection.scene = entry.value("scene", 0);
  selection.level = entry.value("level", 0);
  selection.timepoint = entry.value("timepoint", -1);
  selection.channels = entry.value("channels", std::vector<int64_t>{});
  return selection;
}

/// A part of `whole` by the plainest way.
std::vector<unsigned char> part_of_image(const Image& whole, const Region& region) {
  std::vector<unsigned char> part;
  const std::size_t size = size_of(whole.dtype);
  for (int64_t c = 0; c < whole.shape[0]; ++c) {
    for (int64_t z = 0; z < region.size[0]; ++z) {
      for (int64_t y = 0; y < region.size[1]; ++y) {
        for (int64_t x = 0; x < region.size[2]; ++x) {
          const int64_t index =
              ((c * whole.shape[1] + region.begin[0] + z) * whole.shape[2] + region.begin[1] + y) *
                  whole.shape[3] +
              region.begin[2] + x;
          const auto at = whole.pixels.begin() + index * static_cast<int64_t>(size);
          part.insert(part.end(), at, at + static_cast<int64_t>(size));
        }
      }
    }
  }
  return part;
}

Region some_region(const ImageInfo& info, uint32_t& state) {
  Region region;
  const auto random = [&](int64_t below) {
    state = state * 1664525 + 1013904223;
    return static_cast<int64_t>((state >> 8) % static_cast<uint32_t>(below));
  };
  for (std::size_t i = 0; i < 3; ++i) {
    region.begin[i] = random(info.shape[i + 1]);
    region.size[i] = 1 + random(info.shape[i + 1] - region.begin[i]);
  }
  return region;
}

json image_cases() {
  std::ifstream file(golden_image("cases.json"));
  return test::at_least(161, json::parse(file));
}

TEST(Images, AreReadAsTheirWritersMeant) {
  int count = 0;
  for (const json& entry : image_cases()) {
    const auto name = entry["file"].get<std::string>();
    SCOPED_TRACE(entry.dump());
    const auto reader = open_image(golden_image(name), selection_for(entry));
    const ImageInfo& info = reader->info();
    EXPECT_EQ(name_of(info.dtype), entry["dtype"].get<std::string>());
    EXPECT_EQ(json(info.shape), entry["shape"]);
    EXPECT_EQ(info.scenes, entry.value("scenes", 1));
    EXPECT_EQ(info.levels, entry.value("levels", 1));
    EXPECT_EQ(info.timepoints, entry.value("timepoints", 1));
    EXPECT_EQ(info.channel_names, entry.value("names", std::vector<std::string>{}));
    if (entry.contains("spacing_um")) {
      for (std::size_t i = 0; i < 3; ++i) {
        const auto spacing = entry["spacing_um"][i].get<double>();
        EXPECT_NEAR(info.geometry.spacing_um[i], spacing, 1e-5 * spacing);
      }
    }
    if (entry.contains("affine")) {
      for (std::size_t i = 0; i < 12; ++i)
        EXPECT_NEAR(info.geometry.affine[i], entry["affine"][i].get<double>(), 1e-5);
    }
    const Image image = reader->read({});
    EXPECT_EQ(image.shape, info.shape);
    EXPECT_EQ(image.dtype, info.dtype);
    EXPECT_EQ(image.geometry.affine, info.geometry.affine);
    EXPECT_EQ(crc_of(image), entry["crc32"].get<uint32_t>());
    ++count;
  }
  EXPECT_GT(count, 150);
}

TEST(Images, NiftiWithoutFormsLiesAsNibabelPutsIt) {
  const Folder folder;
  Image image = make_image(Dtype::u8, {1, 7, 5, 3});
  image.geometry.spacing_um = {1000, 2000, 3000};  // and no affine: neither sform nor qform
  write_nifti(folder / "a.nii", image);
  // The example of nibabel's get_base_affine
  const std::array<double, 12> expected{-3, 0, 0, 3, 0, 2, 0, -4, 0, 0, 1, -3};
  EXPECT_EQ(open_image(folder / "a.nii")->info().geometry.affine, expected);
  image.geometry.spacing_um = {};
  write_nifti(folder / "b.nii", image);
  const std::array<double, 12> unknown{};
  EXPECT_EQ(open_image(folder / "b.nii")->info().geometry.affine, unknown);
}

TEST(Images, AnimationsAreRefused) {
  const test::TmpDir dir;
  const std::string one = read_file(golden_image("mask.gif"));
  const std::size_t image = one.find(',', 13 + 6);  // behind header and palette
  write_file(dir / "two.gif", one.substr(0, one.size() - 1) + one.substr(image));
  for (const std::string& path : {std::string(dir / "two.gif"), golden_image("animated.webp")}) {
    const std::string message = message_of<DataError>([&] { open_image(path); });
    EXPECT_NE(message.find("an animation of several images"), std::string::npos) << message;
  }
}

TEST(Images, ColoursOfPrintAreRefused) {
  const std::string message = message_of<DataError>([] { read_image(golden_image("cmyk.jpg")); });
  EXPECT_NE(message.find("CMYK"), std::string::npos) << message;
}

TEST(Images, RegionsAreThePartsOfTheWhole) {
  uint32_t state = 7;
  for (const json& entry : image_cases()) {
    SCOPED_TRACE(entry.dump());
    const auto reader = open_image(golden_image(entry["file"]), selection_for(entry));
    const Image whole = reader->read({});
    for (int i = 0; i < 8; ++i) {
      const Region region = some_region(reader->info(), state);
      const Image part = reader->read(region);
      EXPECT_EQ(
          part.shape,
          (std::array<int64_t, 4>{whole.shape[0], region.size[0], region.size[1], region.size[2]}));
      ASSERT_TRUE(part.pixels == part_of_image(whole, region));
    }
    for (const Region& bad : {Region{{0, 0, 0}, {1, 1, 1000}},
                              Region{{-1, 0, 0}, {1, 1, 1}},
                              Region{{0, 1000, 0}, {-1, -1, -1}},
                              Region{{0, 0, 0}, {1, 0, 1}},
                              Region{{0, INT64_MAX, 0}, {1, INT64_MAX, 1}}})
      EXPECT_THROW(reader->read(bad), DataError);
  }
}

TEST(Images, CellposesDictionaryIsItsMasks) {  // tests/golden/make_seg_npy.py
  const Image image = read_image(golden_image("cellpose_seg.npy"));
  EXPECT_EQ(image.shape, (std::array<int64_t, 4>{1, 1, 3, 4}));
  ASSERT_EQ(image.dtype, Dtype::u16);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(image.pixels[2 * i], i);
  std::string bytes = bytes_of(golden_image("cellpose_seg.npy"));
  bytes.replace(bytes.find("masks"), 5, "mosks");
  const Folder folder;
  put(folder / "a.npy", bytes);
  EXPECT_NE(message_of<DataError>([&] { read_image(folder / "a.npy"); }).find("no array 'masks'"),
            std::string::npos);
}

TEST(Images, ATurnOfExifIsTold) {
  const Folder folder;
  const std::string jpeg = bytes_of(golden_image("grey.jpg"));
  const auto said = [&](const std::string& tiff) {
    const std::string exif = std::string("Exif\0\0", 6) + tiff;
    put(folder / "a.jpg",
        jpeg.substr(0, 2) + "\xff\xe1" + std::string(1, '\0') + static_cast<char>(2 + exif.size()) +
            exif + jpeg.substr(2));
    testing::internal::CaptureStderr();
    EXPECT_EQ(read_image(folder / "a.jpg").pixels, read_image(golden_image("grey.jpg")).pixels);
    return testing::internal::GetCapturedStderr();
  };
  const std::string rest("\0\1\1\x12\0\3\0\0\0\1\0", 11);  // one entry, 0x112, a short
  EXPECT_EQ(said(std::string("MM\0*\0\0\0\x08", 8) + rest + std::string("\1\0\0", 3)), "");
  EXPECT_EQ(said(std::string("MM\0*\0\0\0\x7f", 8) + rest), "");
  const std::string turned = std::string("MM\0*\0\0\0\x08", 8) + rest + std::string("\6\0\0", 3);
  EXPECT_NE(said(turned).find("a.jpg: its EXIF says that it is shown turned"), std::string::npos);
  EXPECT_EQ(said(turned), "");  // once
}

TEST(Images, ManyThreadsReadOneReader) {
  for (const char* name : {"pyramid.ome.tif",
                           "rgb_planar.ome.tif",
                           "time.nii.gz",
                           "rgb.jp2",
                           "progressive.jpg",
                           "v3_fortran_3d.npy",
                           "truncated_CZYX.tif"}) {
    SCOPED_TRACE(name);
    Selection selection;
    if (std::string(name).find("pyramid") == 0 || std::string(name).find("time") == 0)
      selection.timepoint = 1;
    const auto reader = open_image(golden_image(name), selection);
    const Image whole = read_image(golden_image(name), selection);
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (std::size_t t = 0; t < wrong.size(); ++t) {
      threads.emplace_back([&, t] {
        auto state = static_cast<uint32_t>(t);
        for (int i = 0; i < 50; ++i) {
          const Region region = some_region(reader->info(), state);
          wrong[t] += reader->read(region).pixels != part_of_image(whole, region);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<int>(4, 0));
  }
}

TEST(Images, TheAffineOfARegionIsThatOfItsFirstVoxel) {
  const auto reader = open_image(golden_image("five.nii"), {0, 0, 1, {}});
  const auto whole = reader->info().geometry.affine;
  const auto part = reader->read({{1, 2, 3}, {1, 1, 1}}).geometry.affine;
  for (std::size_t row = 0; row < 12; row += 4) {
    EXPECT_DOUBLE_EQ(part[row + 3],
                     whole[row + 3] + 3 * whole[row] + 2 * whole[row + 1] + whole[row + 2]);
  }
}

TEST(Images, RefuseASelectionThatIsNotThere) {
  const auto message = [](const std::string& name, const Selection& selection) {
    return message_of<DataError>([&] { open_image(golden_image(name), selection); });
  };
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  const char* pyramid = "pyramid.ome.tif";
  expect(message(pyramid, {}), "2 time points, expected one; choose one of 0 to 1");
  expect(message(pyramid, {0, 0, 2, {}}), "no time point 2, expected 0 to 1");
  expect(message(pyramid, {0, 3, 0, {}}), "no level 3, expected 0 to 2");
  expect(message(pyramid, {1, 0, 0, {}}), "no scene 1, expected 0");
  expect(message(pyramid, {-2, 0, 0, {}}), "no scene -2");
  expect(message(pyramid, {0, 0, 0, {2}}), "no channel 2, expected 0 to 1");
  expect(message("scenes.ome.tif", {3, 0, -1, {}}), "no scene 3, expected 0 to 2");
  expect(message("time.nii.gz", {}), "3 time points");
  expect(message("rgb.jp2", {0, 1, -1, {}}), "no level 1, expected 0");
  expect(message("rgb.jpg", {0, 0, -1, {5}}), "no channel 5, expected 0 to 2");
}

/// Real files: what peers read, by hand.
TEST(Images, ReadsRealFiles) {
  SKIP_WITHOUT_REAL_DATA();
  const std::string path = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/real.json";
  std::ifstream file(path);
  for (const json& entry : test::at_least(56, json::parse(file))) {
    SCOPED_TRACE(entry.dump());
    const auto reader = open_image(real_data(entry["file"]), selection_for(entry));
    const Image image = reader->read({});
    EXPECT_EQ(name_of(image.dtype), entry["dtype"].get<std::string>());
    EXPECT_EQ(json(image.shape), entry["shape"]);
    EXPECT_EQ(reader->info().timepoints, entry.value("timepoints", 1));
    EXPECT_EQ(crc_of(image), entry["crc32"].get<uint32_t>());
    for (std::size_t i = 0; entry.contains("spacing_um") && i < 3; ++i) {
      const auto spacing = entry["spacing_um"][i].get<double>();
      EXPECT_NEAR(image.geometry.spacing_um[i], spacing, 1e-5 * spacing);
    }
    for (std::size_t i = 0; entry.contains("affine") && i < 12; ++i)
      EXPECT_NEAR(image.geometry.affine[i], entry["affine"][i].get<double>(), 1e-4);
  }
}

}  // namespace
}  // namespace cytra::io
