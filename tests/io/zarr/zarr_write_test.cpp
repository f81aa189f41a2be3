// What we write and read again; tests/golden/check_zarr.py compares it with python's zarr.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include <nlohmann/json.hpp>

#include "io/zarr/write.h"
#include "tests/io/fixture.h"

namespace cytra::io {
namespace {

using Json = nlohmann::json;
using Shape = std::array<int64_t, 4>;
using Version = ZarrOptions::Version;
using Compressor = ZarrOptions::Compressor;
constexpr Dtype kWholeZarr[] = {
    Dtype::u8, Dtype::i8, Dtype::u16, Dtype::i16, Dtype::u32, Dtype::i32, Dtype::f32, Dtype::f64};

ImageInfo written_info(const Image& image) {
  ImageInfo info;
  info.dtype = image.dtype;
  info.shape = image.shape;
  info.geometry = image.geometry;
  info.channel_names = image.channel_names;
  return info;
}

TEST(ZarrWrite, RoundTripOfEveryTypeShapeAndCompression) {
  const Folder folder;
  const std::string path = folder / "image.zarr";
  std::size_t turn = 0;  // each write is flushed to the disk: not all combinations
  for (const Shape& shape : {Shape{1, 1, 37, 53}, {2, 3, 20, 9}, {1, 1, 1, 1}, {1, 7, 30, 33}}) {
    for (const Compressor compressor :
         {Compressor::none, Compressor::gzip, Compressor::zstd, Compressor::blosc}) {
      for (const int kind : {0, 1, 2, 3}) {
        ZarrOptions options;
        options.compressor = compressor;
        options.version = kind == 0 ? Version::v0_4 : Version::v0_5;
        if (kind != 1) options.chunk = {1, 2, 8, 16};
        if (kind == 3) options.shard = {2, 4, 16, 30};
        const Dtype dtype = kWholeZarr[turn++ * 5 / 2 % 8];
        const Image image = make_image(dtype, shape);
        write_ome_zarr(path, image, options);
        const Image back = read_image(path);
        ASSERT_EQ(back.dtype, dtype);
        ASSERT_EQ(back.shape, shape);
        ASSERT_TRUE(back.pixels == image.pixels) << name_of(dtype) << " " << kind;
      }
    }
  }
  EXPECT_EQ(folder.files(), 1U);
}

TEST(ZarrWrite, KeepsSpacingNamesAndRanges) {
  const Folder folder;
  for (const Version version : {Version::v0_4, Version::v0_5}) {
    Image image = make_image(Dtype::u16, {2, 1, 4, 5});
    image.pixels.assign(image.bytes(), 0);
    image.pixels[6] = 200;
    image.pixels[41] = 3;  // channel 1: 768
    image.geometry.spacing_um = {1.5, 0.25, 0.1234567890123};
    image.channel_names = {"DNA <\"&'>", "\xC2\xB5-Tubulin"};
    ZarrOptions options;
    options.version = version;
    write_ome_zarr(folder / "a.zarr", image, options);
    const Image back = read_image(folder / "a.zarr");
    EXPECT_EQ(back.shape, image.shape);
    EXPECT_EQ(back.geometry.spacing_um, image.geometry.spacing_um);
    EXPECT_EQ(back.channel_names, image.channel_names);
    const bool is_v3 = version == Version::v0_5;
    Json ome = Json::parse(bytes_of(folder / (is_v3 ? "a.zarr/zarr.json" : "a.zarr/.zattrs")));
    if (is_v3) ome = ome["attributes"]["ome"];
    EXPECT_EQ(ome["omero"]["channels"][0]["window"]["end"], 200);
    EXPECT_EQ(ome["omero"]["channels"][1]["window"]["end"], 768);
    EXPECT_EQ(ome["omero"]["channels"][1]["window"]["max"], 65535);
  }
}

double zarr_value_at(const Image& image, std::size_t i) {
  if (image.dtype == Dtype::u8) return image.pixels[i];
  float value;
  std::memcpy(&value, image.pixels.data() + 4 * i, 4);
  return static_cast<double>(value);
}

/// Straight from the definition.
double block(const Image& image,
             const std::array<int64_t, 3>& at,
             const std::array<int64_t, 3>& factor,
             bool is_mean) {
  double sum = 0;
  int count = 0;
  for (int64_t z = at[0] * factor[0]; z < std::min((at[0] + 1) * factor[0], image.shape[1]); ++z) {
    for (int64_t y = at[1] * factor[1]; y < std::min((at[1] + 1) * factor[1], image.shape[2]);
         ++y) {
      for (int64_t x = at[2] * factor[2]; x < std::min((at[2] + 1) * factor[2], image.shape[3]);
           ++x) {
        const double value = zarr_value_at(
            image, static_cast<std::size_t>((z * image.shape[2] + y) * image.shape[3] + x));
        if (!is_mean) return value;
        sum += value;
        ++count;
      }
    }
  }
  return sum / count;
}

TEST(ZarrWrite, Pyramids) {
  const Folder folder;
  struct Case {
    Dtype dtype;
    std::array<double, 3> spacing;
    bool is_labels;
    std::vector<std::array<int64_t, 3>> factors;
  };
  for (const Case& test : {Case{Dtype::u8, {1, 1, 1}, false, {{2, 2, 2}, {4, 4, 4}}},
                           Case{Dtype::u8, {1, 1, 1}, true, {{2, 2, 2}, {4, 4, 4}}},
                           Case{Dtype::f32, {2, 1, 1}, false, {{1, 2, 2}, {2, 4, 4}}},
                           Case{Dtype::u8, {0, 0, 0}, false, {{1, 2, 2}, {1, 4, 4}}}}) {
    Image image = make_image(test.dtype, {1, 7, 31, 50});
    if (test.dtype == Dtype::f32) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(image.count()); ++i) {
        const auto value = static_cast<float>(i % 1000);
        std::memcpy(image.pixels.data() + 4 * i, &value, 4);
      }
    }
    image.geometry.spacing_um = test.spacing;
    ZarrOptions options;
    options.levels = 3;
    options.is_labels = test.is_labels && test.dtype == Dtype::u8;
    options.chunk = {1, 3, 8, 16};
    write_ome_zarr(folder / "a.zarr", image, options);
    Image before = image;
    for (int64_t level = 1; level < 3; ++level) {
      const Image small = read_image(folder / "a.zarr", {0, level, -1, {}});
      const auto& factor = test.factors[static_cast<std::size_t>(level - 1)];
      std::array<int64_t, 3> step{};
      for (std::size_t i = 0; i < 3; ++i) {
        step[i] = level == 1 ? factor[i] : factor[i] / test.factors[0][i];
        ASSERT_EQ(small.shape[i + 1], (before.shape[i + 1] + step[i] - 1) / step[i]);
        EXPECT_DOUBLE_EQ(small.geometry.spacing_um[i],
                         test.spacing[i] * static_cast<double>(factor[i]));
      }
      std::size_t i = 0;
      for (int64_t z = 0; z < small.shape[1]; ++z) {
        for (int64_t y = 0; y < small.shape[2]; ++y) {
          for (int64_t x = 0; x < small.shape[3]; ++x, ++i) {
            double expected = block(before, {z, y, x}, step, !options.is_labels);
            if (test.dtype == Dtype::u8) expected = std::floor(expected + 0.5);
            ASSERT_FLOAT_EQ(static_cast<float>(zarr_value_at(small, i)),
                            static_cast<float>(expected));
          }
        }
      }
      before = small;
    }
    EXPECT_THROW(open_image(folder / "a.zarr", {0, 3, -1, {}}), DataError);
  }
  write_ome_zarr(folder / "b.zarr", make_image(Dtype::u8, {1, 1, 600, 300}));
  EXPECT_EQ(open_image(folder / "b.zarr")->info().levels, 3);  // 600, 300, 150
  write_ome_zarr(folder / "b.zarr", make_image(Dtype::u8, {1, 1, 256, 256}));
  EXPECT_EQ(open_image(folder / "b.zarr")->info().levels, 1);
}

TEST(ZarrWrite, RegionsInAnyOrderByThreads) {
  const Folder folder;
  const Image image = make_image(Dtype::u16, {2, 5, 40, 60});
  for (const bool is_sharded : {false, true}) {
    ZarrOptions options;
    options.version = Version::v0_5;
    options.chunk = {1, 2, 16, 16};
    if (is_sharded) options.shard = {1, 4, 32, 32};
    ZarrWriter writer(folder / "a.zarr", written_info(image), options);
    std::vector<Region> regions;
    for (int64_t z = 0; z < 5; z += 3) {
      for (int64_t y = 0; y < 40; y += 11) {
        for (int64_t x = 0; x < 60; x += 25)
          regions.push_back({{z, y, x},
                             {std::min<int64_t>(3, 5 - z),
                              std::min<int64_t>(11, 40 - y),
                              std::min<int64_t>(25, 60 - x)}});
      }
    }
    uint32_t state = 7;
    for (std::size_t i = regions.size(); i > 1; --i)
      std::swap(regions[i - 1], regions[(state = state * 1664525 + 1013904223) / 65536 % i]);
    std::vector<std::thread> threads;
    for (std::size_t k = 0; k < 3; ++k) {
      threads.emplace_back([&, k] {
        for (std::size_t i = k; i < regions.size(); i += 3)
          writer.write(regions[i], crop(image, regions[i], "memory"));
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_FALSE(std::filesystem::exists(folder / "a.zarr") && !is_sharded);
    writer.finish();
    EXPECT_TRUE(read_image(folder / "a.zarr").pixels == image.pixels);
  }
}

TEST(ZarrWrite, WhatIsNotWrittenIsZeroAndTwiceIsAMistake) {
  const Folder folder;
  const Image image = make_image(Dtype::u8, {1, 1, 40, 40});
  ZarrOptions options;
  options.chunk = {1, 1, 16, 16};
  {
    ZarrWriter writer(folder / "a.zarr", written_info(image), options);
    const Region region{{0, 10, 10}, {1, 10, 10}};
    const Image part = crop(image, region, "memory");
    writer.write(region, part);
    EXPECT_THROW(writer.write({{0, 19, 19}, {1, 10, 10}}, part), std::logic_error);
    EXPECT_THROW(writer.write({{0, 0, 0}, {1, 10, 11}}, part), std::logic_error);
    EXPECT_THROW(writer.write({{0, 35, 0}, {1, 10, 10}}, part), DataError);
    writer.finish();
    const Image back = read_image(folder / "a.zarr");
    EXPECT_TRUE(crop(back, region, "memory").pixels == part.pixels);
    EXPECT_EQ(std::count(back.pixels.begin(), back.pixels.end(), 0),
              1600 - 100 + std::count(part.pixels.begin(), part.pixels.end(), 0));
  }
  ZarrWriter complete(folder / "b.zarr", written_info(image), options);
  complete.write({}, image);
  EXPECT_THROW(complete.write({}, image), std::logic_error);
}

TEST(ZarrWrite, LabelsOfAnImage) {
  const Folder folder;
  for (const Version version : {Version::v0_4, Version::v0_5}) {
    const std::string path = folder / (version == Version::v0_4 ? "a.zarr" : "b.zarr");
    Image image = make_image(Dtype::u16, {2, 3, 20, 30});
    image.geometry.spacing_um = {2, 0.5, 0.5};
    ZarrOptions options;
    options.version = version;
    write_ome_zarr(path, image, options);
    Image labels = make_image(Dtype::i32, {1, 3, 20, 30});
    labels.geometry = image.geometry;
    ZarrOptions below;  // of the image's version, whatever is asked
    for (const char* name : {"cells", "nuclei", "cells"}) {
      below.labels = name;
      write_ome_zarr(path, labels, below);
    }
    const Image back = read_image(path + "/labels/cells");
    EXPECT_TRUE(back.pixels == labels.pixels);
    EXPECT_EQ(back.geometry.spacing_um, image.geometry.spacing_um);
    EXPECT_TRUE(read_image(path).pixels == image.pixels);
    const bool is_v3 = version == Version::v0_5;
    Json list = Json::parse(bytes_of(path + (is_v3 ? "/labels/zarr.json" : "/labels/.zattrs")));
    if (is_v3) list = list["attributes"]["ome"];
    EXPECT_EQ(list["labels"], (Json{"cells", "nuclei"}));
    EXPECT_THROW(write_ome_zarr(path, make_image(Dtype::u8, {1, 3, 20, 29}), below), DataError);
    EXPECT_THROW(write_ome_zarr(path, make_image(Dtype::f32, {1, 3, 20, 30}), below), DataError);
    below.labels = "../cells";
    EXPECT_THROW(write_ome_zarr(path, labels, below), ConfigError);
  }
}

TEST(ZarrWrite, AppearsWholeOrNotAtAll) {
  const Folder folder;
  const std::string path = folder / "a.zarr";
  const Image small = make_image(Dtype::u8, {1, 1, 4, 4});
  write_ome_zarr(path, small);
  {
    ZarrWriter writer(path, written_info(small));
    writer.write({}, small);
  }  // no finish()
  ZarrOptions options;
  options.compressor = Compressor::none;
  const Image large = make_image(Dtype::u16, {1, 1, 700, 700});
  for (const std::size_t limit : {0, 100, 100'000}) {
    const FileSizeLimit full(limit);
    const std::string message = message_of<IoError>([&] { write_ome_zarr(path, large, options); });
    EXPECT_NE(message.find("a.zarr: can't be written: File too large"), std::string::npos)
        << limit << ": " << message;
  }
  EXPECT_TRUE(read_image(path).pixels == small.pixels);
  EXPECT_EQ(folder.files(), 1U);
  write_ome_zarr(path + "/", large, options);
  EXPECT_TRUE(read_image(path).pixels == large.pixels);
  EXPECT_EQ(folder.files(), 1U);
}

TEST(ZarrWrite, ReplacesNothingButZarr) {
  const Folder folder;
  const Image image = make_image(Dtype::u8, {1, 1, 4, 4});
  std::filesystem::create_directory(folder / "mine");
  put(folder / "mine/thesis.txt", "text");
  EXPECT_THROW(write_ome_zarr(folder / "mine", image), DataError);
  EXPECT_THROW(write_ome_zarr(folder / "mine/thesis.txt", image), DataError);
  EXPECT_EQ(bytes_of(folder / "mine/thesis.txt"), "text");
  EXPECT_THROW(write_ome_zarr(folder / "none/a.zarr", image), ConfigError);
  ZarrOptions options;
  options.shard = {0, 0, 64, 64};
  EXPECT_THROW(write_ome_zarr(folder / "a.zarr", image, options), ConfigError);
  options = {};
  options.levels = 31;
  EXPECT_THROW(write_ome_zarr(folder / "a.zarr", image, options), ConfigError);
  options = {};
  options.labels = "cells";
  EXPECT_THROW(write_ome_zarr(folder / "a.zarr", image, options), ConfigError);
  std::filesystem::create_directory(folder / "empty");
  write_ome_zarr(folder / "empty", image);
  EXPECT_TRUE(read_image(folder / "empty").pixels == image.pixels);
}

/// Images for tests/golden/check_zarr.py, in the folder that CYTRA_ZARR_OUT names.
TEST(ZarrWrite, DISABLED_ForPython) {
  const std::string folder = std::getenv("CYTRA_ZARR_OUT");
  for (const Dtype dtype : kWholeZarr) {
    for (const Compressor compressor :
         {Compressor::none, Compressor::gzip, Compressor::zstd, Compressor::blosc}) {
      for (const bool is_stack : {false, true}) {
        Image image = make_image(dtype, is_stack ? Shape{2, 5, 40, 70} : Shape{1, 1, 130, 90});
        const auto [c, z, y, x] = image.shape;
        for (int64_t i = 0; i < image.count(); ++i) {
          const int64_t value =
              (97 * (i / (z * y * x)) + 31 * (i / (y * x) % z) + 7 * (i / x % y) + 3 * (i % x)) %
              251 / 2;
          unsigned char* at = image.pixels.data() + static_cast<std::size_t>(i) * size_of(dtype);
          const auto as_float = static_cast<float>(value);
          const auto as_double = static_cast<double>(value);
          std::memset(at, 0, size_of(dtype));
          if (dtype == Dtype::f32) {
            std::memcpy(at, &as_float, 4);
          } else if (dtype == Dtype::f64) {
            std::memcpy(at, &as_double, 8);
          } else {
            *at = static_cast<unsigned char>(value);
          }
        }
        ZarrOptions options;
        options.compressor = compressor;
        options.levels = 3;
        const std::string end = std::string(name_of(dtype)) + "_" +
                                std::to_string(static_cast<int>(compressor)) +
                                (is_stack ? "_stack.zarr" : "_plane.zarr");
        if (is_stack) {
          image.geometry.spacing_um = {1, 0.25, 0.25};
          image.channel_names = {"DNA", "\xC2\xB5-Tubulin"};
          options.chunk = {1, 2, 16, 32};
        }
        const bool has_labels = is_stack && dtype != Dtype::f32 && dtype != Dtype::f64;
        Image labels = image;
        labels.shape[0] = 1;
        labels.channel_names.clear();
        labels.pixels.resize(labels.bytes());
        for (const char* kind : {"v4_", "v5_", "shards_"}) {
          options.version = kind[1] == '4' ? Version::v0_4 : Version::v0_5;
          options.shard = {0, 0, 0, 0};
          if (kind[0] == 's') options.shard = {1, 4, 32, 64};
          options.labels.clear();
          write_ome_zarr(folder + "/" + kind + end, image, options);
          options.labels = "cells";
          if (has_labels) write_ome_zarr(folder + "/" + kind + end, labels, options);
        }
      }
    }
  }
}

}  // namespace
}  // namespace cytra::io
