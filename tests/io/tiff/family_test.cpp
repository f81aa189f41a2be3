// TIFFs of ImageJ, Zeiss and MetaMorph, and axes that the user names:
// tests/golden/make_tiff_family.py.
#include <algorithm>
#include <cstring>

#include <tiffio.h>

#include "tests/io/golden_cases.h"
#include "tests/support/at_least.h"

namespace cytra::io {
namespace {

using nlohmann::json;

std::string golden_family(const std::string& name) {
  return std::string(CYTRA_SOURCE_DIR) + "/tests/golden/tiff_family/" + name;
}

TEST(TiffFamily, IsReadAsTifffileReadsIt) {
  std::ifstream file(golden_family("cases.json"));
  for (const json& entry : test::at_least(137, json::parse(file))) {
    SCOPED_TRACE(entry.dump());
    Selection selection = selection_of(entry);
    selection.level = entry.value("level", 0);
    selection.axes = entry.value("axes", "");
    std::unique_ptr<ImageReader> reader;
    ASSERT_NO_THROW(reader = open_image(golden_family(entry["file"]), selection));
    const ImageInfo& info = reader->info();
    EXPECT_EQ(name_of(info.dtype), entry["dtype"].get<std::string>());
    EXPECT_EQ(json(info.shape), entry["shape"]);
    EXPECT_EQ(info.timepoints, entry.value("timepoints", 1));
    EXPECT_EQ(info.scenes, entry.value("scenes", 1));
    EXPECT_EQ(info.levels, entry.value("levels", 1));
    const auto spacing = entry.value("spacing_um", std::vector<double>{0, 0, 0});
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(info.geometry.spacing_um[i], spacing[i], 1e-6 * spacing[i]) << i;
    EXPECT_EQ(crc_of(reader->read({})), entry["crc32"].get<uint32_t>());
  }
}

std::string axes_error(const std::string& name, const std::string& axes) {
  Selection selection;
  selection.axes = axes;
  return message_of<DataError>([&] { open_image(golden_family(name), selection); });
}

TEST(TiffFamily, AxesThatAreNotTheFilesAreRefused) {
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(axes_error("unnamed_4.tif", "TYX"),
         "axes: TYX names 1 in front of YX, the file has 2 (C 4, Z 3 as it is read without)");
  expect(axes_error("imagej_ZYX.tif", "YX"), "names none in front of YX, the file has 1 (Z 4");
  expect(axes_error("array_3.npy", "TCYX"), "names 2 in front of YX, the file has 1 (Z 4");
  expect(axes_error("unnamed_3.tif", ""), "");
  expect(axes_error("imagej_TYX.tif", ""), "3 time points, expected one; choose one of 0 to 2 by");
  for (const char* wrong : {"T", "XY", "TTYX", "QYX", "tyx", "YXS", "CYXT"}) {
    const std::string message = message_of<ConfigError>([&] { check_axes(wrong); });
    expect(message, "'" + std::string(wrong) + "', expected those of the file, the slowest first");
  }
  for (const char* right : {"YX", "TYX", "ZCYX", "CTZYX"}) EXPECT_NO_THROW(check_axes(right));
}

TEST(TiffFamily, FormatsWithNamedAxesTakeNoOther) {
  const std::string images = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/images/";
  Selection selection;
  selection.axes = "TYX";
  const std::string message =
      message_of<DataError>([&] { open_image(images + "flat2d.nii", selection); });
  EXPECT_NE(message.find("video name their own"), std::string::npos) << message;
  EXPECT_EQ(open_image(images + "full.jpeg", selection)->info().timepoints, 1);
}

/// A page of 4 x 4 whose ImageJ description claims anything.
std::string imagej_error(const Folder& folder, const std::string& fields, int samples = 1) {
  const std::string path = folder / "claims.tif";
  TIFF* tiff = TIFFOpen(path.c_str(), "w");
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, 4);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, 4);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, samples);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
  TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 4);
  TIFFSetField(tiff, TIFFTAG_IMAGEDESCRIPTION, ("ImageJ=1.54f\n" + fields).c_str());
  std::vector<unsigned char> pixels(64, 7);
  TIFFWriteEncodedStrip(tiff, 0, pixels.data(), 16 * samples);
  TIFFClose(tiff);
  return error_of(path);
}

TEST(TiffFamily, AHostileDescriptionIsRefused) {
  const Folder folder;
  const auto expect = [&](const std::string& fields, const std::string& part, int samples = 1) {
    const std::string message = imagej_error(folder, fields, samples);
    EXPECT_NE(message.find(part), std::string::npos) << fields << ": " << message;
  };
  expect("images=3\nchannels=3\n", "planes behind one directory are cut off");
  expect("images=5\nchannels=5\n", "stack of 5 images in 1 page", 3);
  expect("channels=3\nslices=2000000000\nframes=2000000000\n", "stack of 4e+18 images", 3);
  expect("channels=2000000000\nslices=2000000000\nframes=2000000000\n", "expected one page");
  expect("slices=0\n", "an axis without extent");
  expect("frames=-1\n", "'-1', expected a whole number");
  expect("images=99999999999999999999\n", "expected a whole number");
  EXPECT_EQ(imagej_error(folder, "images=3\nchannels=3\norder=xyzzy\n", 3), "");
  EXPECT_EQ(imagej_error(folder, "order=\nunit=\nspacing=nan\nloop\n=\n"), "");
}

TEST(TiffFamily, UnitsOfLength) {
  const Folder folder;
  const auto spacing = [&](const std::string& unit) {
    Image image = make_image(Dtype::u8, {1, 1, 4, 4});
    image.geometry.spacing_um = {0, 1, 1};
    write_ome_tiff(folder / "a.ome.tif", image);
    std::string bytes = bytes_of(folder / "a.ome.tif");
    const std::string old = "Unit=\"\xC2\xB5m\"";
    std::string text = "Unit=\"" + unit + "\"";
    text.resize(old.size(), ' ');  // nothing else may move
    for (std::size_t at = 0; (at = bytes.find(old, at)) != std::string::npos; at += old.size())
      bytes.replace(at, old.size(), text);
    put(folder / "b.ome.tif", bytes);
    return read_image(folder / "b.ome.tif").geometry.spacing_um[2];
  };
  EXPECT_DOUBLE_EQ(spacing("in"), 25400);
  EXPECT_DOUBLE_EQ(spacing("ft"), 304800);
  EXPECT_DOUBLE_EQ(spacing("li"), 25400. / 12);
  EXPECT_DOUBLE_EQ(spacing("pt"), 25400. / 72);
  EXPECT_DOUBLE_EQ(spacing("dm"), 1e5);
  EXPECT_DOUBLE_EQ(spacing("hm"), 1e8);
  EXPECT_DOUBLE_EQ(spacing("ly"), 0);
}

TEST(TiffFamily, TwentyFourBitsOfOneByteOrder) {
  const Folder folder;
  const std::string path = folder / "a.tif";
  for (const char* mode : {"wl", "wb"}) {
    TIFF* tiff = TIFFOpen(path.c_str(), mode);
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, 2);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, 1);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 24);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 1);
    unsigned char pixels[] = {1, 2, 3, 4, 5, 6};
    TIFFWriteRawStrip(tiff, 0, pixels, 6);
    TIFFClose(tiff);
    if (mode[1] == 'l') {
      EXPECT_NE(error_of(path).find("24-bit integers in a little-endian file"), std::string::npos)
          << error_of(path);
    } else {
      const Image image = read_image(path);
      uint32_t values[2];
      std::memcpy(values, image.pixels.data(), sizeof values);
      EXPECT_EQ(values[0], 0x010203U);
      EXPECT_EQ(values[1], 0x040506U);
    }
  }
}

/// One strip of 20 MB, by each codec that is decoded row by row.
TEST(TiffFamily, ALargeStripIsReadByRow) {
  constexpr uint32_t kSide = 4600;
  const Folder folder;
  const std::string path = folder / "strip.tif";
  std::vector<unsigned char> pixels(std::size_t{kSide} * kSide);
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<unsigned char>(i % 251 + i / 100000);
  for (const int codec : {COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS}) {
    TIFF* tiff = TIFFOpen(path.c_str(), "w");
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, kSide);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, kSide);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, codec);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, kSide);
    std::vector<unsigned char> copy = pixels;  // libtiff may change them
    TIFFWriteEncodedStrip(tiff, 0, copy.data(), static_cast<tmsize_t>(copy.size()));
    TIFFClose(tiff);
    const auto reader = open_image(path);
    const auto check = [&](int64_t y, int64_t x, int64_t size) {
      const Image part = reader->read({{0, y, x}, {1, size, size}});
      for (int64_t row = 0; row < size; ++row)
        ASSERT_TRUE(std::equal(part.pixels.begin() + row * size,
                               part.pixels.begin() + (row + 1) * size,
                               pixels.begin() + (y + row) * kSide + x))
            << codec << " row " << row;
    };
    check(2000, 100, 512);
    check(0, 0, kSide);
    check(1000, 3000, 64);  // before where the last read ended
  }
}

}  // namespace
}  // namespace cytra::io
