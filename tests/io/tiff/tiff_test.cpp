#include <algorithm>
#include <cstring>

#include <tiffio.h>

#include "tests/io/fixture.h"

namespace cytra::io {
namespace {

using Shape = std::array<int64_t, 4>;
constexpr Dtype kAll[] = {
    Dtype::u8, Dtype::i8, Dtype::u16, Dtype::i16, Dtype::u32, Dtype::i32, Dtype::f32, Dtype::f64};

double value_at(const Image& image, int64_t i) {
  const unsigned char* at =
      image.pixels.data() + static_cast<std::size_t>(i) * size_of(image.dtype);
  const auto as = [at](auto value) {
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(value);
  };
  switch (image.dtype) {
    case Dtype::u8:
      return as(uint8_t{});
    case Dtype::i8:
      return as(int8_t{});
    case Dtype::u16:
      return as(uint16_t{});
    case Dtype::i16:
      return as(int16_t{});
    case Dtype::u32:
      return as(uint32_t{});
    case Dtype::i32:
      return as(int32_t{});
    case Dtype::f32:
      return as(float{});
    case Dtype::f64:
      return as(double{});
  }
  return 0;
}

double sum_of(const Image& image) {
  double sum = 0;
  for (int64_t i = 0; i < image.count(); ++i) sum += value_at(image, i);
  return sum;
}

TEST(Tiff, RoundTripOfEveryTypeShapeAndCompression) {
  using Compression = WriteOptions::Compression;
  const Folder folder;
  const std::string path = folder / "image.ome.tif";
  for (const Dtype dtype : kAll) {
    for (const Shape& shape : {Shape{1, 1, 37, 53},
                               {1, 3, 8, 9},
                               {2, 1, 8, 9},
                               {3, 4, 5, 7},
                               {1, 1, 1, 1},
                               {1, 1, 700, 300}}) {
      for (const Compression compression :
           {Compression::none, Compression::deflate, Compression::lzw}) {
        const Image image = make_image(dtype, shape);
        write_ome_tiff(path, image, {compression});
        const Image back = read_image(path);
        EXPECT_EQ(back.dtype, dtype);
        EXPECT_EQ(back.shape, shape);
        EXPECT_TRUE(back.pixels == image.pixels)
            << name_of(dtype) << " " << shape[0] << "x" << shape[1];
        EXPECT_EQ(back.geometry.spacing_um, image.geometry.spacing_um);
      }
    }
  }
  EXPECT_EQ(folder.files(), 1U);
}

TEST(Tiff, KeepsSpacingAndChannelNames) {
  const Folder folder;
  Image image = make_image(Dtype::u16, {2, 3, 4, 5});
  image.geometry.spacing_um = {1.5, 0.25, 0.1234567890123};
  image.channel_names = {"DNA <\"&'>", "\xC2\xB5-Tubulin"};
  write_ome_tiff(folder / "a.tif", image);
  const Image back = read_image(folder / "a.tif");
  EXPECT_EQ(back.geometry.spacing_um, image.geometry.spacing_um);
  EXPECT_EQ(back.channel_names, image.channel_names);
}

TEST(Tiff, ReadsWhatTifffileWrites) {
  struct Case {
    const char* name;
    Dtype dtype;
    Shape shape;
    double offset;
    std::array<double, 3> spacing;
  };
  constexpr std::array<double, 3> kNone{0, 0, 0}, kKnown{1.5, 0.5, 0.25};
  const Case cases[] = {{"lzw_u8", Dtype::u8, {1, 1, 12, 17}, 0, kNone},
                        {"deflate_predictor_u16", Dtype::u16, {1, 1, 12, 17}, 0, kNone},
                        {"tiled_i16_zyx", Dtype::i16, {1, 2, 20, 17}, -100, kNone},
                        {"big_endian_f32_bigtiff", Dtype::f32, {1, 2, 12, 17}, 0.5, kNone},
                        {"ome_czyx_u16.ome", Dtype::u16, {2, 3, 6, 8}, 0, kKnown},
                        {"imagej_zcyx_u16", Dtype::u16, {2, 3, 6, 8}, 0, kKnown},
                        {"rgb_u8", Dtype::u8, {3, 1, 12, 17}, 0, kNone},
                        {"rgb_planar_u8", Dtype::u8, {3, 1, 12, 17}, 0, kNone},
                        {"shaped_zcyx_u32", Dtype::u32, {2, 3, 6, 8}, 0, kNone}};
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    const Image image =
        read_image(std::string(CYTRA_SOURCE_DIR) + "/tests/golden/tiff/" + test.name + ".tif");
    EXPECT_EQ(image.dtype, test.dtype);
    ASSERT_EQ(image.shape, test.shape);
    EXPECT_EQ(image.geometry.spacing_um, test.spacing);
    int64_t i = 0;
    for (int64_t c = 0; c < test.shape[0]; ++c) {
      for (int64_t z = 0; z < test.shape[1]; ++z) {
        for (int64_t y = 0; y < test.shape[2]; ++y) {
          for (int64_t x = 0; x < test.shape[3]; ++x, ++i) {
            const auto expected =
                static_cast<double>((97 * c + 31 * z + 7 * y + 3 * x) % 251) + test.offset;
            ASSERT_EQ(value_at(image, i), expected) << c << " " << z << " " << y << " " << x;
          }
        }
      }
    }
  }
}

TEST(Tiff, ReadsRealImages) {
  SKIP_WITHOUT_REAL_DATA();
  struct Case {
    const char* name;
    Dtype dtype;
    Shape shape;
    double sum;
    double spacing;
  };
  const std::string plants = "plantseg/training_sources/";
  for (const Case& test :
       {Case{"stardist/sd_img2d.tif", Dtype::u8, {1, 1, 256, 256}, 1384075, 0},
        {"stardist/sd_mask2d.tif", Dtype::u16, {1, 1, 256, 256}, 139522, 0},
        {"stardist/sd_img3d.tif", Dtype::u16, {1, 31, 61, 57}, 21342435, 0},
        {"stardist/sd_mask3d.tif", Dtype::u16, {1, 31, 61, 57}, 3198014, 0},
        {"plantseg/training_sources/rgb_3D_0.tiff", Dtype::u16, {1, 75, 75, 75}, 942462219, 1},
        {"plantseg/training_sources/rgb_3D_1_segm.tiff", Dtype::u16, {1, 75, 75, 75}, 26901682, 1},
        {"plantseg/training_sources/rgb_3D_c_raw.tif", Dtype::u16, {2, 75, 75, 75}, 4802957011, 0},
        {"plantseg/training_sources/rgb_3D_c_seg_.tif", Dtype::u16, {2, 75, 75, 75}, 40466265, 0},
        {"bianb/BBBC007/images/A9 p5d (cropped 1).tif", Dtype::u8, {1, 1, 104, 102}, 81089, 0},
        {"bianb/BBBC007/masks/A9 p5d (cropped 3).tif", Dtype::f64, {1, 1, 124, 121}, 2127, 0},
        {"bianb/maize_clsm.tif", Dtype::u8, {1, 1, 640, 639}, 16543295, 0},
        {"bianb/maize_clsm_labels.tif", Dtype::u32, {1, 1, 640, 639}, 90034242, 0},
        {"bianb/BPAE_nuclei.tif", Dtype::f32, {1, 1, 680, 1100}, 486344395, 0},
        {"bianb/membrane_2d_timelapse.tif", Dtype::u16, {1, 5, 256, 256}, 195947076, 0}}) {
    SCOPED_TRACE(test.name);
    const Image image = read_image(real_data(test.name));
    EXPECT_EQ(image.dtype, test.dtype);
    EXPECT_EQ(image.shape, test.shape);
    EXPECT_DOUBLE_EQ(sum_of(image), test.sum);
    EXPECT_EQ(image.geometry.spacing_um,
              (std::array<double, 3>{test.spacing, test.spacing, test.spacing}));
  }
}

TEST(Tiff, TruncatedAnywhereIsADataError) {
  const Folder folder;
  const std::string golden = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/tiff/";
  const std::string path = folder / "cut.tif";
  write_ome_tiff(folder / "own.tif", make_image(Dtype::u16, {2, 2, 9, 11}));
  std::vector<std::string> sources = {folder / "own.tif"};
  for (const auto& entry : std::filesystem::directory_iterator(golden))
    sources.push_back(entry.path().string());
  for (const std::string& source : sources) {
    const std::string bytes = bytes_of(source);
    const Image whole = read_image(source);
    int refused = 0;
    for (std::size_t size = 0; size < bytes.size(); size += 3) {
      put(path, bytes.substr(0, size));
      Image image;
      const std::string message = message_of<DataError>([&] { image = read_image(path); });
      refused += !message.empty();
      if (message.empty()) {  // only what follows the image itself may be missing
        EXPECT_TRUE(image.shape == whole.shape && image.pixels == whole.pixels)
            << source << " cut to " << size;
      } else {
        EXPECT_EQ(message.rfind(path + ": ", 0), 0U) << message;
      }
    }
    EXPECT_GE(refused, static_cast<int>(bytes.size() / 3 * 8 / 10)) << source;
  }
  put(path, bytes_of(golden + "imagej_zcyx_u16.tif").substr(0, 1700));
  const std::string message = message_of<DataError>([&] { read_image(path); });
  EXPECT_NE(message.find("expected"), std::string::npos) << message;
  EXPECT_NE(message.find("page "), std::string::npos) << message;
}

/// A TIFF of our own making, with any tags.
void write_raw(const std::string& path,
               uint32_t width,
               uint32_t height,
               int bits,
               int format,
               int pages,
               const char* description) {
  TIFF* tiff = TIFFOpen(path.c_str(), "w");
  for (int page = 0; page < pages; ++page) {
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, width);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, height);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, bits);
    TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, format);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, std::min(height, 16U));
    if (page == 0 && description != nullptr)
      TIFFSetField(tiff, TIFFTAG_IMAGEDESCRIPTION, description);
    std::vector<unsigned char> row(64, static_cast<unsigned char>(page));
    TIFFWriteEncodedStrip(tiff, 0, row.data(), static_cast<tmsize_t>(row.size()));
    TIFFWriteDirectory(tiff);
  }
  TIFFClose(tiff);
}

TEST(Tiff, RefusesWhatItDoesNotSupport) {
  const Folder folder;
  const std::string path = folder / "a.tif";
  const auto message =
      [&](int bits, int format, int pages, const char* description, uint32_t side = 4) {
        write_raw(path, side, side, bits, format, pages, description);
        return message_of<DataError>([&] { read_image(path); });
      };
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(message(40, 1, 1, nullptr), "40-bit integer samples, expected integers of 1 to 32 or 64");
  expect(message(24, 3, 1, nullptr), "24-bit floating-point");
  expect(message(64, 5, 1, nullptr), "complex");
  expect(message(8, 1, 1, nullptr, 3000000), "not plausible");
  expect(message(8, 1, 4, "ImageJ=1.53\nimages=4\nframes=4\n"), "4 time points, expected one");
  expect(message(8, 1, 1, "ImageJ=1.53\nimages=900\nslices=900\n"),
         "an ImageJ stack of 900 images in 1 page,");
  expect(message(8, 1, 4, "{\"shape\": [4, 4, 4], \"axes\": \"TYX\"}"), "4 time points");
  expect(message(8, 1, 2, "{\"shape\": [9, 4, 4]}"), "more planes than the 2 pages");
  const std::string ome = "<OME><Image><Pixels DimensionOrder=\"XYCZT\" SizeX=\"4\" SizeY=\"4\" ";
  expect(message(8, 1, 2, (ome + "SizeZ='1' SizeC='1' SizeT='2'/></Image></OME>").c_str()),
         "2 time points");
  expect(message(8, 1, 2, (ome + "SizeZ='9' SizeC='2' SizeT='1'/></Image></OME>").c_str()),
         "more planes");
  expect(message(8, 1, 2, (ome + "SizeZ='x' SizeC='2' SizeT='1'/></Image></OME>").c_str()),
         "'x', expected a whole number");
  expect(message(8, 1, 2, "<OME><Pixels DimensionOrder='XYZZT' SizeX='4' SizeY='4'/>"),
         "DimensionOrder");
  expect(message(8, 1, 2, "<OME><Pixels SizeX='9' SizeY='4'/>"), "another width");
  expect(message(8, 1, 2, (ome + "SizeZ='2'><TiffData IFD='5'/></Pixels></Image></OME>").c_str()),
         "no page");
}

TEST(Tiff, OrdersPagesAsTheDescriptionSays) {
  const Folder folder;
  const std::string path = folder / "a.tif";
  const auto planes = [&](const char* description) {
    write_raw(path, 4, 4, 8, 1, 6, description);
    const Image image = read_image(path);
    std::string text = std::to_string(image.shape[0]) + "x" + std::to_string(image.shape[1]) + ":";
    for (std::size_t i = 0; i < image.pixels.size(); i += 16)
      text += std::to_string(image.pixels[i]);
    return text;
  };
  EXPECT_EQ(planes(nullptr), "1x6:012345");
  EXPECT_EQ(planes("some words"), "1x6:012345");
  EXPECT_EQ(planes("ImageJ=1.53\nimages=6\n"), "1x6:012345");
  EXPECT_EQ(planes("ImageJ=1.53\nimages=6\nchannels=2\nslices=3\n"), "2x3:024135");
  EXPECT_EQ(planes("{\"shape\": [2, 3, 4, 4]}"), "2x3:012345");
  EXPECT_EQ(planes("{\"shape\": [3, 2, 4, 4], \"axes\": \"ZCYX\"}"), "2x3:024135");
  EXPECT_EQ(planes("{\"shape\": [1, 6, 4, 4, 1], \"axes\": \"TCYXS\"}"),
            "1x6:012345");  // shape does not fit: plain
  EXPECT_EQ(planes("<OME><Pixels DimensionOrder='XYZCT' SizeX='4' SizeY='4' SizeZ='3' SizeC='2' "
                   "SizeT='1'/>"),
            "2x3:012345");
  EXPECT_EQ(planes("<!-- <Pixels SizeX='7'/> --><o:OME x='1'><o:Pixels DimensionOrder = 'XYCZT' "
                   "SizeX='4' SizeY='4'\n"
                   " SizeZ=\"3\" SizeC=\"2\" SizeT=\"1\"><TiffData/></o:Pixels>"),
            "2x3:024135");
  EXPECT_EQ(
      planes(
          "<OME><Pixels DimensionOrder='XYZCT' SizeX='4' SizeY='4' SizeZ='1' SizeC='2' SizeT='1'>"
          "<TiffData IFD='5' FirstC='0'/><TiffData IFD='1' FirstC='1'/></Pixels>"),
      "2x1:51");
}

TEST(Tiff, FullDiskLeavesTheOldFile) {
  const Folder folder;
  const std::string path = folder / "a.tif";
  write_ome_tiff(path, make_image(Dtype::u8, {1, 1, 4, 4}));
  const std::string before = bytes_of(path);
  const Image large = make_image(Dtype::u16, {2, 3, 100, 100});
  for (const std::size_t limit : {0, 5, 900, 20'000, 60'000, 119'000}) {
    const FileSizeLimit full(limit);
    const std::string message = message_of<IoError>([&] { write_ome_tiff(path, large); });
    EXPECT_NE(message.find("a.tif: can't be written: File too large"), std::string::npos)
        << limit << ": " << message;
  }
  EXPECT_EQ(bytes_of(path), before);
  EXPECT_EQ(folder.files(), 1U);
}

TEST(Tiff, NamesAnUnknownCompression) {
  const Folder folder;
  write_ome_tiff(folder / "a.tif", make_image(Dtype::u8, {1, 1, 4, 4}));
  std::string bytes = bytes_of(folder / "a.tif");
  const std::size_t entry =
      bytes.find(std::string("\x03\x01\x03\0\1\0\0\0", 8));  // tag 259, SHORT, one
  ASSERT_NE(entry, std::string::npos);
  bytes.replace(entry + 8, 2, "\x98\x87");
  put(folder / "a.tif", bytes);
  const std::string message = message_of<DataError>([&] { read_image(folder / "a.tif"); });
  EXPECT_NE(message.find("compression 34712 is not supported"), std::string::npos) << message;
}

TEST(Tiff, ErrorsOfTheWriter) {
  const Folder folder;
  EXPECT_THROW(write_ome_tiff(folder / "none/a.tif", make_image(Dtype::u8, {1, 1, 4, 4})),
               ConfigError);
  Image image = make_image(Dtype::u8, {1, 1, 4, 4});
  image.channel_names = {"a", "b"};
  EXPECT_THROW(write_ome_tiff("a.tif", image), std::logic_error);
}

}  // namespace
}  // namespace cytra::io
