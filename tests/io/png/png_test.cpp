#include <png.h>

#include "io/pixels/format.h"
#include "io/png/plain.h"
#include "tests/io/fixture.h"

namespace cytra::io {
namespace {

using Shape = std::array<int64_t, 4>;

/// 8 x 4 pixels of one row repeated, in any of libpng's formats.
void write_raw_png(const std::string& path,
                   int depth,
                   int colour,
                   const std::string& row,
                   int interlace = PNG_INTERLACE_NONE) {
  FILE* file = std::fopen(path.c_str(), "wb");
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_init_io(png, file);
  png_set_IHDR(png,
               info,
               8,
               4,
               depth,
               colour,
               interlace,
               PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  const png_color palette[] = {{9, 9, 9}, {255, 0, 0}, {0, 255, 0}, {1, 2, 3}};
  if (colour == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette, 4);
  png_write_info(png, info);
  std::vector<unsigned char> bytes(row.begin(), row.end());
  std::vector<png_bytep> rows(4, bytes.data());
  png_write_image(png, rows.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  std::fclose(file);
}

TEST(Png, RoundTrip) {
  const Folder folder;
  for (const Dtype dtype : {Dtype::u8, Dtype::u16}) {
    for (const Shape& shape : {Shape{1, 1, 5, 7}, {3, 1, 33, 20}, {1, 1, 1, 1}}) {
      const Image image = make_image(dtype, shape);
      write_png(folder / "a.png", image);
      const Image back = read_image(folder / "a.png");
      EXPECT_EQ(back.dtype, dtype);
      EXPECT_EQ(back.shape, shape);
      EXPECT_TRUE(back.pixels == image.pixels);
    }
  }
  EXPECT_EQ(folder.files(), 1U);
}

TEST(Png, ValuesAreThoseStored) {
  const Folder folder;
  const std::string path = folder / "a.png";
  const auto first_row = [&](int planes = 1) {
    const Image image = read_image(path);
    EXPECT_EQ(image.shape, (Shape{planes, 1, 4, 8}));
    return std::string(image.pixels.begin(), image.pixels.begin() + 8);
  };
  write_raw_png(path, 1, PNG_COLOR_TYPE_GRAY, "\x81");
  EXPECT_EQ(first_row(), std::string("\1\0\0\0\0\0\0\1", 8));
  write_raw_png(path, 2, PNG_COLOR_TYPE_PALETTE, "\x1B\xE4");
  EXPECT_EQ(first_row(), std::string("\0\1\2\3\3\2\1\0", 8));
  write_raw_png(path, 8, PNG_COLOR_TYPE_GRAY, "abcdefgh", PNG_INTERLACE_ADAM7);
  EXPECT_EQ(first_row(), "abcdefgh");
  write_raw_png(path, 8, PNG_COLOR_TYPE_GRAY_ALPHA, "a0b1c2d3e4f5g6h7");
  EXPECT_EQ(first_row(), "abcdefgh");
  write_raw_png(path, 8, PNG_COLOR_TYPE_RGB_ALPHA, "aXY0bXY0cXY0dXY0eXY0fXY0gXY0hXY0");
  EXPECT_EQ(first_row(3), "abcdefgh");
}

/// The same pixels by each of the format's filters, in IDAT chunks of 100 bytes.
TEST(Png, EveryFilterIsUndone) {
  const Folder folder;
  for (const Dtype dtype : {Dtype::u8, Dtype::u16}) {
    for (const int channels : {1, 3}) {
      const Image image = make_image(dtype, {channels, 1, 21, 35});
      const std::size_t size = size_of(dtype), count = 21 * 35;
      std::vector<unsigned char> bytes(image.pixels.size());  // interleaved
      for (std::size_t i = 0; i < count * size; ++i) {
        for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
          bytes[(i / size * static_cast<std::size_t>(channels) + c) * size + i % size] =
              image.pixels[c * count * size + i];
        }
      }
      for (const int filter :
           {PNG_FILTER_NONE, PNG_FILTER_SUB, PNG_FILTER_UP, PNG_FILTER_AVG, PNG_FILTER_PAETH}) {
        FILE* file = std::fopen((folder / "a.png").c_str(), "wb");
        png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
        png_infop info = png_create_info_struct(png);
        png_init_io(png, file);
        png_set_compression_buffer_size(png, 100);
        png_set_filter(png, PNG_FILTER_TYPE_BASE, filter);
        png_set_IHDR(png,
                     info,
                     35,
                     21,
                     static_cast<int>(8 * size),
                     channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB,
                     PNG_INTERLACE_NONE,
                     PNG_COMPRESSION_TYPE_DEFAULT,
                     PNG_FILTER_TYPE_DEFAULT);
        png_write_info(png, info);
        if (size == 2) png_set_swap(png);
        const std::size_t row = bytes.size() / 21;
        for (std::size_t y = 0; y < 21; ++y) png_write_row(png, bytes.data() + y * row);
        png_write_end(png, nullptr);
        png_destroy_write_struct(&png, &info);
        std::fclose(file);
        Image plain = image;
        std::fill(plain.pixels.begin(), plain.pixels.end(), 0);
        EXPECT_TRUE(decode_plain_png(bytes_of(folder / "a.png"), plain)) << filter;
        EXPECT_TRUE(plain.pixels == image.pixels) << filter << " " << channels << " " << size;
      }
    }
  }
}

TEST(Png, WhatIsWrittenIsReadByLibpng) {
  const Folder folder;
  // Wider than what is deflated at once, so that a file has several parts.
  for (const Shape& shape : {Shape{3, 1, 40, 30'000}, {1, 1, 700, 130}}) {
    const Image image = make_image(Dtype::u8, shape);
    write_png(folder / "a.png", image);
    png_image header{};
    header.version = PNG_IMAGE_VERSION;
    ASSERT_NE(png_image_begin_read_from_file(&header, (folder / "a.png").c_str()), 0);
    header.format = shape[0] == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
    std::vector<unsigned char> bytes(PNG_IMAGE_SIZE(header));
    ASSERT_NE(png_image_finish_read(&header, nullptr, bytes.data(), 0, nullptr), 0)
        << header.message;
    Image read = image;
    deinterleave(bytes.data(), shape[2] * shape[3], 1, channels_of(read));
    EXPECT_TRUE(read.pixels == image.pixels);
  }
}

TEST(Png, WhatLibpngForgivesIsRead) {
  const Folder folder;
  const Image image = make_image(Dtype::u8, {1, 1, 6, 5});
  write_png(folder / "a.png", image);
  const std::string bytes = bytes_of(folder / "a.png");
  // A text, whose checksum is wrong, behind the header.
  const std::string text("\0\0\0\3tEXta\0b\1\2\3\4", 15);
  put(folder / "a.png", bytes.substr(0, 33) + text + bytes.substr(33));
  Image plain = image;
  EXPECT_FALSE(decode_plain_png(bytes_of(folder / "a.png"), plain));
  EXPECT_TRUE(read_image(folder / "a.png").pixels == image.pixels);
}

TEST(Png, TruncatedAnywhereIsADataError) {
  const Folder folder;
  write_png(folder / "a.png", make_image(Dtype::u16, {3, 1, 12, 9}));
  const std::string bytes = bytes_of(folder / "a.png"), path = folder / "cut.png";
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    put(path, bytes.substr(0, size));
    const std::string message = message_of<DataError>([&] { read_image(path); });
    EXPECT_EQ(message.rfind(path + ": ", 0), 0U) << size << message;
  }
  for (std::size_t i = 30; i + 12 < bytes.size(); i += 7) {  // the checksums notice
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    put(path, damaged);
    message_of<DataError>([&] { read_image(path); });
  }
}

TEST(Png, HugeSizeIsNotPlausible) {
  const Folder folder;
  write_png(folder / "a.png", make_image(Dtype::u8, {1, 1, 4, 4}));
  std::string bytes = bytes_of(folder / "a.png");
  // 1,000,000 x 1,000,000, with the checksum of that header.
  bytes.replace(16, 8, std::string("\0\x0F\x42\x40\0\x0F\x42\x40", 8));
  uint32_t crc = 0xFFFFFFFF;
  for (std::size_t i = 12; i < 29; ++i) {
    crc ^= static_cast<unsigned char>(bytes[i]);
    for (int k = 0; k < 8; ++k) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
  }
  for (std::size_t i = 0; i < 4; ++i) bytes[29 + i] = static_cast<char>(~crc >> (24 - 8 * i));
  put(folder / "a.png", bytes);
  const std::string message = message_of<DataError>([&] { read_image(folder / "a.png"); });
  EXPECT_NE(message.find("not plausible"), std::string::npos) << message;
}

TEST(Png, ReadsRealImages) {
  SKIP_WITHOUT_REAL_DATA();
  EXPECT_EQ(read_image(real_data("skimage/ihc.png")).shape, (Shape{3, 1, 512, 512}));
  EXPECT_EQ(read_image(real_data("skimage/cell.png")).shape, (Shape{1, 1, 660, 550}));
}

TEST(Png, FullDiskAndWrongImages) {
  const Folder folder;
  {
    const FileSizeLimit full(100);
    EXPECT_THROW(write_png(folder / "a.png", make_image(Dtype::u8, {1, 1, 40, 40})), IoError);
  }
  EXPECT_EQ(folder.files(), 0U);
  EXPECT_THROW(write_png(folder / "a.png", make_image(Dtype::f32, {1, 1, 4, 4})), std::logic_error);
  EXPECT_THROW(write_png(folder / "a.png", make_image(Dtype::u8, {1, 2, 4, 4})), std::logic_error);
}

TEST(Image, NamesWhatAFileIsInstead) {
  const Folder folder;
  const auto message = [&](const std::string& bytes) {
    put(folder / "a.tif", bytes);
    return message_of<DataError>([&] { read_image(folder / "a.tif"); });
  };
  EXPECT_NE(message("").find("an empty file, expected DICOM, TIFF"), std::string::npos);
  EXPECT_NE(message("\xff\xd8\xff\xe0").find("the JPEG can't be decoded"), std::string::npos);
  EXPECT_NE(message("hello").find("not an image of a known format"), std::string::npos);
  EXPECT_THROW(read_image(folder / "none.tif"), ConfigError);
  EXPECT_TRUE(is_image_path("a/b.OME.TIF") && is_image_path("c.tiff") && is_image_path("d.Png"));
  for (const char* name : {"a.btf",
                           "a.TF8",
                           "a.jpg",
                           "a.JPEG",
                           "a.jp2",
                           "a.j2k",
                           "a.nii",
                           "a.b.nii.gz",
                           "a.hdr",
                           "a.npy"})
    EXPECT_TRUE(is_image_path(name)) << name;
  EXPECT_FALSE(is_image_path("a.gz") || is_image_path(".nii.gz") || is_image_path("a.img"));
  EXPECT_FALSE(is_image_path("a.tif/b") || is_image_path("c.csv") || is_image_path("tif"));
}

}  // namespace
}  // namespace cytra::io
