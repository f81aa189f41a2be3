#include "pipelines/predict/joined_frames.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "io/csv.h"
#include "io/reader.h"
#include "tests/support/few_files.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

io::Image label_image(io::Dtype dtype, unsigned char value, int64_t planes = 1) {
  io::Image image;
  image.dtype = dtype;
  image.shape = {1, planes, 5, 7};
  image.geometry.spacing_um = {planes > 1 ? 2.0 : 0.0, 0.5, 0.5};
  image.pixels.resize(image.bytes());
  for (std::size_t i = 0; i < image.pixels.size(); i += io::size_of(dtype))
    image.pixels[i] = static_cast<unsigned char>(value + i / io::size_of(dtype) % 3);
  return image;
}

TEST(JoinedFrames, TimePointsTakeTheTypeThatHoldsAll) {
  const test::TmpDir dir;
  for (const int64_t planes : {1, 3}) {
    const io::Dtype types[] = {io::Dtype::u8, io::Dtype::u32, io::Dtype::u16};
    std::vector<std::string> paths;
    for (unsigned char t = 0; t < 3; ++t) {
      paths.push_back(dir / ("t" + std::to_string(t) + ".ome.tif"));
      io::write_ome_tiff(paths.back(), label_image(types[t], t, planes));
    }
    for (const char* end : {"/all.ome.tif", "/all.ome.zarr"}) {
      const std::string into = dir.path() + end;
      pipelines::join_timepoints(paths, into, true);
      const io::ImageInfo info = io::open_image(into, {0, 0, 0})->info();
      EXPECT_EQ(info.timepoints, 3) << end;
      EXPECT_EQ(info.dtype, io::Dtype::u32);
      EXPECT_EQ(info.shape, (std::array<int64_t, 4>{1, planes, 5, 7}));
      EXPECT_EQ(info.geometry.spacing_um[2], 0.5);
      for (unsigned char t = 0; t < 3; ++t) {
        EXPECT_EQ(io::read_image(into, {0, 0, t}).pixels,
                  label_image(io::Dtype::u32, t, planes).pixels)
            << end << " " << int{t};
      }
      std::filesystem::remove_all(into);
    }
  }
  io::write_ome_tiff(dir / "stack.ome.tif", label_image(io::Dtype::u8, 1, 2));
  EXPECT_NE(message_of<DataError>([&] {
              pipelines::join_timepoints(
                  {dir / "t0.ome.tif", dir / "stack.ome.tif"}, dir / "x.ome.tif", true);
            }).find("as the first time point"),
            std::string::npos);
}

TEST(JoinedFrames, MoreTimePointsThanFilesMayBeOpenAreJoined) {
  const test::TmpDir dir;
  std::vector<std::string> paths;
  for (int t = 0; t < 150; ++t) {
    paths.push_back(dir / ("t" + std::to_string(t) + ".ome.tif"));
    io::write_ome_tiff(paths.back(), label_image(io::Dtype::u8, static_cast<unsigned char>(t)));
  }
  const test::FewFiles few(100);
  for (const char* end : {"/all.ome.tif", "/all.ome.zarr"}) {
    const std::string into = dir.path() + end;
    pipelines::join_timepoints(paths, into, true);
    EXPECT_EQ(io::open_image(into, {0, 0, 0})->info().timepoints, 150);
    EXPECT_EQ(io::read_image(into, {0, 0, 149}).pixels, label_image(io::Dtype::u8, 149).pixels);
  }
}

TEST(JoinedFrames, TablesAreOneAndPartsGo) {
  const test::TmpDir dir;
  pipelines::JoinedFrames joined("movie.tif", dir / "movie", "s", 2);
  for (int t = 1; t >= 0; --t) {
    const std::string stem = dir / ("movie_t" + std::to_string(t));
    io::write_ome_tiff(stem + ".ome.tif",
                       label_image(io::Dtype::u8, static_cast<unsigned char>(t)));
    io::write_table(stem + ".csv", {"label", "area"}, {{"1", std::to_string(10 + t)}});
    io::write_table(stem + "_overlay.png", {"x"}, {});
    EXPECT_EQ(joined.add(t,
                         {{"prediction", stem + ".ome.tif"},
                          {"overlay", stem + "_overlay.png"},
                          {"measurements", stem + ".csv"}}),
              t == 0)
        << "the last one to come";
  }
  const inference::ResultFiles files = joined.join();
  EXPECT_EQ(files,
            (inference::ResultFiles{{"prediction", dir / "movie.ome.tif"},
                                    {"measurements", dir / "movie.csv"},
                                    {"overlay", dir / "movie_t0_overlay.png"},
                                    {"overlay", dir / "movie_t1_overlay.png"}}));
  const io::Table table = io::read_table(dir / "movie.csv");
  EXPECT_EQ(table.columns, (std::vector<std::string>{"timepoint", "label", "area"}));
  EXPECT_EQ(table.rows,
            (std::vector<std::vector<std::string>>{{"0", "1", "10"}, {"1", "1", "11"}}));
}

TEST(JoinedFrames, KnowsWhatFailed) {
  pipelines::JoinedFrames joined("movie.tif", "out/movie", "s", 3);
  EXPECT_EQ(joined.name(), "movie");
  EXPECT_FALSE(joined.add(2, {{"prediction", "b"}}));
  EXPECT_FALSE(joined.leave_out());
  EXPECT_TRUE(joined.add(0, {{"prediction", "a"}}));
  EXPECT_EQ(joined.failed(), 1);
  EXPECT_EQ(joined.files(), (inference::ResultFiles{{"prediction", "a"}, {"prediction", "b"}}));
}

}  // namespace
}  // namespace cytra
