// HDF5 as h5py writes it: tests/golden/make_hdf5.py.
#include <thread>

#include <nlohmann/json.hpp>

#include "tests/io/golden_cases.h"
#include "tests/io/module_fixture.h"
#include "tests/support/at_least.h"

namespace cytra::io {
namespace {

using nlohmann::json;

std::string golden_hdf5(const std::string& name) {
  return std::string(CYTRA_SOURCE_DIR) + "/tests/golden/hdf5/" + name;
}
json hdf5_cases() {
  return test::at_least(60, json::parse(bytes_of(golden_hdf5("cases.json"))));
}
std::string hdf5_place(const json& entry) {
  return entry.contains("real") ? real_data("plantseg/" + entry["file"].get<std::string>())
                                : golden_hdf5(entry["file"]);
}

TEST(Hdf5, IsReadAsH5pyReadsIt) {
  SKIP_WITHOUT_MODULE("hdf5");
  int count = 0;
  for (const json& entry : hdf5_cases()) {
    if (entry.contains("real") && !std::filesystem::exists(file_of(hdf5_place(entry)))) continue;
    SCOPED_TRACE(entry.dump());
    const auto reader = open_image(hdf5_place(entry), selection_of(entry));
    const ImageInfo& info = reader->info();
    EXPECT_EQ(name_of(info.dtype), entry["dtype"].get<std::string>());
    EXPECT_EQ(json(info.shape), entry["shape"]);
    EXPECT_EQ(info.timepoints, entry.value("timepoints", 1));
    for (std::size_t i = 0; i < 3; ++i) {
      const double spacing =
          entry.contains("spacing_um") ? entry["spacing_um"][i].get<double>() : 0;
      EXPECT_DOUBLE_EQ(info.geometry.spacing_um[i], spacing);
    }
    EXPECT_EQ(crc_of(reader->read({})), entry["crc32"].get<uint32_t>());
    ++count;
  }
  EXPECT_GT(count, 25);
}

TEST(Hdf5, RegionsAndChannelsArePartsOfTheWhole) {
  SKIP_WITHOUT_MODULE("hdf5");
  for (const json& entry : hdf5_cases()) {
    if (entry.contains("real")) continue;
    SCOPED_TRACE(entry.dump());
    const std::string path = hdf5_place(entry);
    const auto reader = open_image(path, selection_of(entry));
    const Image whole = reader->read({});
    const auto [c, z, y, x] = whole.shape;
    const Region region{{z / 2, 1, 3}, {z - z / 2, y - 2, x - 4}};
    EXPECT_EQ(reader->read(region).pixels, crop(whole, region, path).pixels);
    Selection some = selection_of(entry);
    some.channels = {c - 1, 0};
    const Image swapped = open_image(path, some)->read({});
    const auto bytes = static_cast<std::ptrdiff_t>(whole.bytes()) / c;
    EXPECT_TRUE(std::equal(whole.pixels.end() - bytes, whole.pixels.end(), swapped.pixels.begin()));
    EXPECT_TRUE(std::equal(
        whole.pixels.begin(), whole.pixels.begin() + bytes, swapped.pixels.begin() + bytes));
  }
}

TEST(Hdf5, IsReadBySeveralThreads) {
  SKIP_WITHOUT_MODULE("hdf5");
  const auto reader = open_image(golden_hdf5("sets.hdf5/raw"));
  const Image whole = reader->read({});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) {
        if (reader->read({}).pixels != whole.pixels ||
            read_image(golden_hdf5("sets.hdf5/raw")).pixels != whole.pixels)
          ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Hdf5, NamesItsDataSets) {
  SKIP_WITHOUT_MODULE("hdf5");
  for (const char* place : {"sets.hdf5", "sets.hdf5/nothing"}) {
    const std::string message = error_of(golden_hdf5(place));
    for (const char* words :
         {"expected", "plane (9 x 8)", "a/colour (2 x 4 x 9 x 8)", "raw (4 x 9 x 8)"})
      EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_EQ(message.find("scalar"), std::string::npos) << message;
  }
  EXPECT_TRUE(is_image_path("a.H5"));
  EXPECT_EQ(file_of(golden_hdf5("sets.hdf5/a/colour")), golden_hdf5("sets.hdf5"));
  EXPECT_EQ(file_of("no.h5/raw"), "no.h5/raw");
}

TEST(Hdf5, MatlabsArraysHaveTheirNamesAndAxes) {
  SKIP_WITHOUT_MODULE("hdf5");
  const std::string message = error_of(golden_hdf5("several.mat"));
  for (const char* words : {"several.mat/DATASET", "img (9 x 8)", "s/volume (9 x 8 x 4)"})
    EXPECT_NE(message.find(words), std::string::npos) << message;
  Selection selection;
  selection.axes = "CYX";
  const Image image = read_image(golden_hdf5("volume.mat"), selection);
  EXPECT_EQ(image.shape, (std::array<int64_t, 4>{4, 1, 9, 8}));
  EXPECT_EQ(image.pixels, read_image(golden_hdf5("volume.mat")).pixels);
}

TEST(Hdf5, OlderFilesOfMatlabAreConverted) {
  const Folder folder;
  put(folder / "a.mat", "MATLAB 5.0 MAT-file, Platform: GLNXA64" + std::string(90, ' '));
  const std::string message = error_of(folder / "a.mat");
  for (const char* words : {"from before v7.3", "scipy.io.loadmat", "a.npy"})
    EXPECT_NE(message.find(words), std::string::npos) << message;
  EXPECT_FALSE(is_image_path(folder / "a.mat"));
  EXPECT_TRUE(is_image_path(golden_hdf5("plane.mat")));
}

TEST(Hdf5, NothingOutsideOfTheFileIsRead) {
  SKIP_WITHOUT_MODULE("hdf5");
  EXPECT_NE(error_of(golden_hdf5("sets.hdf5/outside")).find("no data set 'outside'"),
            std::string::npos);
  for (const char* name : {"sets.hdf5/virtual", "sets.hdf5/external"})
    EXPECT_NE(error_of(golden_hdf5(name)).find("in other files"), std::string::npos) << name;
  EXPECT_NE(error_of(golden_hdf5("sets.hdf5/lzf")).find("filter 32000 (lzf)"), std::string::npos);
}

TEST(Hdf5, WhatThisVersionCannotReadIsSaid) {
  SKIP_WITHOUT_MODULE("hdf5");
  const std::string message = error_of(golden_hdf5("latest.h5"));  // "" where the library is as new
  EXPECT_TRUE(message.empty() || message.find("libver='latest'") != std::string::npos) << message;
  EXPECT_NE(error_of(golden_hdf5("attributes.h5")).find("axistags"), std::string::npos);
}

TEST(Hdf5, DamagedTextsAreErrors) {  // libhdf5 crashes on them
  SKIP_WITHOUT_MODULE("hdf5");
  const Folder folder;
  const std::string path = folder / "a.h5", bytes = bytes_of(golden_hdf5("ilastik_yxc.h5"));
  const std::size_t heap = bytes.find("GCOL"), text = bytes.find("{\"axes\"");
  ASSERT_NE(heap, std::string::npos);
  ASSERT_GT(text, heap);
  for (std::size_t at = heap; at < text; ++at) {
    for (const char value : {'\0', '\x7f', '\xff'}) {
      std::string damaged = bytes;
      damaged[at] = value;
      put(path, damaged);
      const std::string message = error_of(path);
      EXPECT_TRUE(message.empty() || message.find("axistags") != std::string::npos) << message;
    }
  }
}

// Damage within libhdf5's own structures is tried in mutants_test.cpp.
TEST(Hdf5, CutFilesAndDamagedChunksAreErrors) {
  SKIP_WITHOUT_MODULE("hdf5");
  const Folder folder;
  const std::string path = folder / "a.h5", bytes = bytes_of(golden_hdf5("uint16.h5"));
  for (std::size_t size = 10; size < bytes.size(); size += 37) {
    put(path, bytes.substr(0, size));
    EXPECT_NE(error_of(path).find("expected"), std::string::npos) << size;
  }
  const std::size_t packed = bytes.find("\x78\x5e");  // zlib's first bytes, at h5py's level
  ASSERT_NE(packed, std::string::npos);
  for (std::size_t at = packed; at < packed + 30; ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    put(path, damaged);
    EXPECT_NE(error_of(path).find("can't be decoded"), std::string::npos) << at;
  }
}

}  // namespace
}  // namespace cytra::io
