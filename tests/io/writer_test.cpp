// create_image(): every format, row by row. Other programs read the same in
// tests/golden/check_images.py.
#include "io/writer.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "io/zarr/write.h"
#include "tests/io/fixture.h"
#include "tests/io/heap_peak.h"

namespace cytra::io {
namespace {

using Shape4 = std::array<int64_t, 4>;

ImageInfo info_to_write(const Image& image) {
  ImageInfo info;
  info.dtype = image.dtype;
  info.shape = image.shape;
  info.geometry = image.geometry;
  info.channel_names = image.channel_names;
  return info;
}

/// Rows of the outer axis.
Region rows_of(const Image& image, int64_t first, int64_t count) {
  Region region;
  const std::size_t axis = image.shape[1] > 1 ? 0 : 1;
  region.begin[axis] = first;
  region.size[axis] = count;
  return region;
}

void write_by(const std::string& path,
              const Image& image,
              int64_t rows,
              const OutputOptions& options = {}) {
  const auto writer = create_image(path, info_to_write(image), options);
  for (int64_t first = 0, count; first < writer->rows(); first += count) {
    count = std::min(rows, writer->rows() - first);
    const Region region = rows_of(image, first, count);
    writer->write(region, crop(image, region, path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  writer->finish();
}

/// All files below a path, by name; of a TIFF its pixels, since tiles of several channels come in
/// another order.
std::map<std::string, std::string> contents(const std::string& path) {
  if (path.find(".tif") != std::string::npos) {
    std::map<std::string, std::string> levels;
    for (int64_t level = 0; level < open_image(path)->info().levels; ++level) {
      const Image image = read_image(path, {0, level, -1, {}});
      levels[std::to_string(level)].assign(image.pixels.begin(), image.pixels.end());
    }
    return levels;
  }
  if (!std::filesystem::is_directory(path)) return {{"", bytes_of(path)}};
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file())
      files[entry.path().string().substr(path.size())] = bytes_of(entry.path().string());
  }
  return files;
}

TEST(ImageWriter, EqualsTheWholeImageForEveryChunking) {
  const Folder folder;
  for (const Dtype dtype : {Dtype::u8, Dtype::u16, Dtype::f64}) {
    for (const Shape4& shape :
         {Shape4{1, 1, 151, 330}, {3, 1, 151, 330}, {1, 37, 30, 41}, {3, 37, 30, 41}}) {
      Image image = make_image(dtype, shape);
      image.geometry.spacing_um = {2, 0.5, 0.5};
      if (shape[0] == 3) image.channel_names = {"a", "b", "c"};
      const std::map<std::string, std::function<void(const std::string&)>> whole = {
          {"a.ome.tif", [&](const std::string& path) { write_ome_tiff(path, image); }},
          {"a.nii", [&](const std::string& path) { write_nifti(path, image); }},
          {"a.nii.gz", [&](const std::string& path) { write_nifti(path, image); }},
          {"a.npy", [&](const std::string& path) { write_npy(path, image); }},
          {"a.png", [&](const std::string& path) { write_png(path, image); }},
          {"a.ome.zarr", [&](const std::string& path) { write_ome_zarr(path, image); }}};
      for (const auto& [name, write] : whole) {
        const bool is_png = name == "a.png";
        if (is_png && (shape[1] > 1 || size_of(dtype) > 2)) continue;
        const std::string path = folder / name;
        write(path);
        const auto expected = contents(path);
        EXPECT_TRUE(read_image(path).pixels == image.pixels) << path;
        for (const int64_t rows : {1, 7, 1000}) {
          std::filesystem::remove_all(path);
          write_by(path, image, rows);
          EXPECT_TRUE(contents(path) == expected) << path << " by " << rows;
        }
        std::filesystem::remove_all(path);
      }
    }
  }
  EXPECT_EQ(folder.files(), 0U);
}

TEST(ImageWriter, LargePlanesGetTilesAndLevels) {
  const Folder folder;
  const Image image = make_image(Dtype::u8, {2, 1, 700, 2100});
  for (const bool is_labels : {false, true}) {
    WriteOptions options;
    options.levels = 4;  // 2100 1050 525 263
    options.is_labels = is_labels;
    write_ome_tiff(folder / "whole.tif", image, options);
    for (const int64_t rows : {1, 100, 256, 700}) {
      OutputOptions output;
      output.is_labels = is_labels;
      std::filesystem::remove(folder / "a.tif");
      write_by(folder / "a.tif", image, rows, output);
      EXPECT_TRUE(contents(folder / "a.tif") == contents(folder / "whole.tif"));
    }
  }
  EXPECT_EQ(open_image(folder / "a.tif")->info().levels, 4);
}

TEST(ImageWriter, ZarrVersionsAndLabels) {
  const Folder folder;
  const Image image = make_image(Dtype::u16, {1, 9, 300, 280});
  for (const bool is_v3 : {false, true}) {
    const std::string path = folder / (is_v3 ? "b.zarr" : "a.zarr");
    OutputOptions output;
    output.is_labels = true;
    output.is_zarr_v3 = is_v3;
    write_by(path, image, 4, output);
    EXPECT_EQ(std::filesystem::exists(path + "/zarr.json"), is_v3);
    const Image small = read_image(path, {0, 1, -1, {}});
    ASSERT_EQ(small.shape, (Shape4{1, 9, 150, 140}));
    EXPECT_EQ(
        std::memcmp(small.pixels.data() + 2 * 141, image.pixels.data() + 2 * (2 * 280 + 2), 2), 0);
  }
}

TEST(ImageWriter, WithoutFinishNothingIsLeft) {
  const Folder folder;
  const Image image = make_image(Dtype::u8, {3, 1, 64, 3000});
  for (const char* name : {"a.ome.tif", "a.nii", "a.nii.gz", "a.npy", "a.png", "a.zarr"}) {
    {
      const auto writer = create_image(folder / name, info_to_write(image));
      writer->write(crop(image, rows_of(image, 0, 40), ""));
      EXPECT_THROW(writer->finish(), std::logic_error) << name;  // rows are missing
      EXPECT_THROW(writer->write(rows_of(image, 41, 1), crop(image, rows_of(image, 41, 1), "")),
                   std::logic_error);
      EXPECT_THROW(writer->write(image), std::logic_error);
      EXPECT_GT(folder.files(), 0U);
    }
    EXPECT_EQ(folder.files(), 0U) << name;
  }
}

TEST(ImageWriter, AFullDiskLeavesNothing) {
  const Folder folder;
  const Image image = make_image(Dtype::u8, {3, 1, 600, 3000});
  for (const std::size_t limit : {0, 100, 100'000}) {
    const FileSizeLimit full(limit);
    for (const char* name : {"a.ome.tif", "a.nii", "a.nii.gz", "a.npy", "a.png", "a.zarr"})
      EXPECT_THROW(write_by(folder / name, image, 50), IoError) << name << limit;
  }
  EXPECT_EQ(folder.files(), 0U);
}

TEST(ImageWriter, NamesWhatItCantWrite) {
  const Folder folder;
  const ImageInfo info = info_to_write(make_image(Dtype::f32, {2, 1, 5, 6}));
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find(", expected "), std::string::npos) << text;
  };
  expect(message_of<ConfigError>([&] { create_image(folder / "a.jpg", info); }), "by that ending");
  EXPECT_NE(create_image(folder / "a.OME.TIFF", info), nullptr);
  expect(message_of<ConfigError>([&] { create_image(folder / ".tif", info); }), "by that ending");
  expect(message_of<DataError>([&] { create_image(folder / "a.png", info); }), "of float32");
  for (const char* name : {"a.ome.tif", "a.nii", "a.nii.gz", "a.npy", "a.zarr"})
    EXPECT_THROW(create_image(folder / (std::string("none/") + name), info), ConfigError) << name;
  ImageInfo times = info;
  times.timepoints = 2;
  EXPECT_THROW(create_image(folder / "a.nii", times), std::logic_error);
  EXPECT_EQ(folder.files(), 0U);
}

TEST(ImageWriter, TimePointsFollowEachOther) {
  const Folder folder;
  const Image image = make_image(Dtype::u8, {2, 1, 40, 50});
  Image later = image;
  std::reverse(later.pixels.begin(), later.pixels.end());
  ImageInfo info = info_to_write(image);
  info.timepoints = 2;
  for (const char* name : {"a.ome.tif", "a.ome.zarr"}) {
    const auto writer = create_image(folder / name, info);
    writer->write(image);
    EXPECT_THROW(writer->finish(), std::logic_error) << "one is missing";
    writer->write(later);
    EXPECT_THROW(writer->write(later), std::logic_error) << "one too many";
    writer->finish();
    EXPECT_EQ(read_image(folder / name, {0, 0, 0}).pixels, image.pixels);
    EXPECT_EQ(read_image(folder / name, {0, 0, 1}).pixels, later.pixels);
  }
}

TEST(ImageWriter, TheLastOfTwoWritersStays) {
  const Folder folder;
  const Image one = make_image(Dtype::u8, {1, 1, 40, 50}),
              two = make_image(Dtype::u16, {1, 1, 30, 20});
  for (const char* name : {"a.ome.tif", "a.nii", "a.nii.gz", "a.npy", "a.png", "a.zarr"}) {
    const auto first = create_image(folder / name, info_to_write(one));
    const auto second = create_image(folder / name, info_to_write(two));
    first->write(one);
    second->write(two);
    first->finish();
    EXPECT_TRUE(read_image(folder / name).pixels == one.pixels);
    second->finish();
    EXPECT_TRUE(read_image(folder / name).pixels == two.pixels);
  }
  EXPECT_EQ(folder.files(), 6U);
}

/// A row of chunks is 128 MB at most: here 512 would be 512 MB, and 64 planes as much.
TEST(ImageWriter, ChunksOfLargeRowsAreFlatter) {
  for (const Shape4& shape : {Shape4{4, 1, 600, 65'536}, {1, 70, 2048, 2048}}) {
    const Folder folder;
    Image rows;
    rows.dtype = shape[1] > 1 ? Dtype::u16 : Dtype::f32;
    rows.shape = shape;
    rows.shape[shape[1] > 1 ? 1 : 2] = shape[1] > 1 ? 16 : 128;
    rows.pixels.assign(rows.bytes(), 1);
    ImageInfo info = info_to_write(rows);
    info.shape = shape;
    info.geometry.spacing_um = {1, 1, 1};
    const auto writer = create_image(folder / "a.zarr", info);
    writer->write(rows);
    std::size_t chunks = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / ""))
      chunks += entry.is_regular_file() && entry.file_size() > 0;
    EXPECT_EQ(chunks, shape[1] > 1 ? 32U * 32 : 4U * 128);
  }
}

/// The memory of a writer does not follow the outer axis.
TEST(ImageWriter, HoldsAFewRows) {
  if (!heap::is_counted) GTEST_SKIP() << "the heap is not counted here";
  const Folder folder;
  for (const bool is_stack : {false, true}) {
    const Image rows =
        make_image(Dtype::u16, is_stack ? Shape4{2, 2, 400, 500} : Shape4{2, 1, 40, 10'000});
    const int64_t row = 2 * 2 * (is_stack ? 400 * 500 : 10'000), times = is_stack ? 45 : 50;
    for (const char* name : {"a.ome.tif", "a.nii", "a.nii.gz", "a.npy", "a.zarr"}) {
      ImageInfo info = info_to_write(rows);
      info.shape[is_stack ? 1 : 2] *= times;
      const heap::Peak peak;
      const auto writer = create_image(folder / name, info);
      for (int64_t i = 0; i < times; ++i) writer->write(rows);
      writer->finish();
      const int64_t all = row * info.shape[is_stack ? 1 : 2];
      EXPECT_LT(peak.bytes(), all / 2) << name;
    }
  }
}

}  // namespace
}  // namespace cytra::io
