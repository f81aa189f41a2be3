// OmeTiffWriter, NIfTI and NumPy: what we write, and read again. Other programs read the same in
// tests/golden/check_images.py.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include <fcntl.h>

#include "io/writer.h"
#include "tests/io/fixture.h"

namespace cytra::io {
namespace {

using Compression = WriteOptions::Compression;
constexpr Dtype kWholeImage[] = {
    Dtype::u8, Dtype::i8, Dtype::u16, Dtype::i16, Dtype::u32, Dtype::i32, Dtype::f32, Dtype::f64};

/// The part of channel-complete `image` at a region.
Image part_of(const Image& image, const Region& region) {
  return crop(image, region, "");
}

ImageInfo info_of(const Image& image, int64_t timepoints = 1) {
  ImageInfo info;
  info.dtype = image.dtype;
  info.shape = image.shape;
  info.geometry = image.geometry;
  info.channel_names = image.channel_names;
  info.timepoints = timepoints;
  return info;
}

template <class T>
std::vector<T> values_of(const Image& image) {
  std::vector<T> values(static_cast<std::size_t>(image.count()));
  std::memcpy(values.data(), image.pixels.data(), image.pixels.size());
  return values;
}

TEST(OmeTiff, TilesInAnyOrderAndTimePoints) {
  const Folder folder;
  const std::string path = folder / "a.ome.tif";
  for (const Compression compression :
       {Compression::none, Compression::deflate, Compression::lzw, Compression::zstd}) {
    for (const bool predictor : {false, true}) {
      WriteOptions options{compression, predictor};
      options.tile = 32;
      options.is_bigtiff = predictor;
      std::vector<Image> times = {make_image(Dtype::u16, {2, 3, 70, 100}),
                                  make_image(Dtype::u16, {2, 3, 70, 100})};
      std::reverse(times[1].pixels.begin(), times[1].pixels.end());
      OmeTiffWriter writer(path, info_of(times[0], 2), options);
      EXPECT_EQ(writer.block(), (std::array<int64_t, 2>{32, 32}));
      std::vector<int> order(2 * 3 * 3 * 4);
      std::iota(order.begin(), order.end(), 0);
      uint32_t state = 3;
      for (std::size_t i = order.size() - 1; i > 0; --i) {
        state = state * 1664525 + 1013904223;
        std::swap(order[i], order[(state >> 8) % (i + 1)]);
      }
      for (const int number : order) {
        const int64_t t = number / 36, z = number / 12 % 3, y = number / 4 % 3 * 32,
                      x = number % 4 * 32;
        const Region region{{z, y, x},
                            {1, std::min<int64_t>(32, 70 - y), std::min<int64_t>(32, 100 - x)}};
        writer.write(region, part_of(times[static_cast<std::size_t>(t)], region), t);
      }
      EXPECT_FALSE(std::filesystem::exists(path));
      writer.finish();
      for (const int64_t t : {0, 1}) {
        const Image back = read_image(path, {0, 0, t, {}});
        EXPECT_TRUE(back.pixels == times[static_cast<std::size_t>(t)].pixels);
      }
      std::filesystem::remove(path);
    }
  }
  EXPECT_EQ(folder.files(), 0U);
}

TEST(OmeTiff, EveryTypeInTilesAndLevels) {
  const Folder folder;
  for (const Dtype dtype : kWholeImage) {
    const Image image = make_image(dtype, {1, 2, 45, 33});
    WriteOptions options;
    options.tile = 16;
    options.levels = 9;  // fewer fit
    options.is_labels = true;
    write_ome_tiff(folder / "a.tif", image, options);
    EXPECT_TRUE(read_image(folder / "a.tif").pixels == image.pixels);
    const auto levels = open_image(folder / "a.tif")->info().levels;
    EXPECT_EQ(levels, 7);  // 45 23 12 6 3 2 1
    int64_t height = 45, width = 33;
    for (int64_t level = 1; level < levels; ++level) {
      height = (height + 1) / 2;
      width = (width + 1) / 2;
      const Image small = read_image(folder / "a.tif", {0, level, -1, {}});
      ASSERT_EQ(small.shape, (std::array<int64_t, 4>{1, 2, height, width}));
      const std::size_t size = size_of(dtype);
      for (int64_t z = 0; z < 2; ++z) {
        for (int64_t y = 0; y < height; ++y) {
          for (int64_t x = 0; x < width; ++x) {  // of labels, every 2^level-th
            const auto there = static_cast<std::size_t>((z * height + y) * width + x) * size;
            const auto here =
                static_cast<std::size_t>((z * 45 + (y << level)) * 33 + (x << level)) * size;
            ASSERT_EQ(std::memcmp(&small.pixels[there], &image.pixels[here], size), 0);
          }
        }
      }
    }
  }
}

TEST(OmeTiff, SmallerLevelsAreMeans) {
  const Folder folder;
  Image image;
  image.dtype = Dtype::i16;
  image.shape = {1, 1, 3, 5};
  image.geometry.spacing_um = {2, 0.5, 0.25};
  const std::vector<int16_t> values = {0, 2, 10, 20, -7, 4, 6, 30, 40, -9, 1, 3, 5, 8, 100};
  image.pixels.resize(image.bytes());
  std::memcpy(image.pixels.data(), values.data(), image.pixels.size());
  WriteOptions options;
  options.levels = 2;  // tiles of 256
  write_ome_tiff(folder / "a.tif", image, options);
  const auto reader = open_image(folder / "a.tif", {0, 1, -1, {}});
  EXPECT_EQ(values_of<int16_t>(reader->read({})), (std::vector<int16_t>{3, 25, -8, 2, 6, 100}));
  EXPECT_EQ(reader->info().geometry.spacing_um, (std::array<double, 3>{2, 0.75, 0.25 * 5 / 3}));
}

TEST(OmeTiff, ARegionDecodesItsTilesAlone) {
  const Folder folder;
  const Image image = make_image(Dtype::u16, {1, 2, 32, 64});
  for (const int64_t tile : {0, 32}) {  // strips: one per plane
    WriteOptions options;
    options.tile = tile;
    write_ome_tiff(folder / "a.tif", image, options);
    std::string bytes = bytes_of(folder / "a.tif");
    bytes.replace(8, 40, std::string(40, '\xff'));  // the first block
    put(folder / "a.tif", bytes);
    const auto reader = open_image(folder / "a.tif");
    const Region other =
        tile == 0 ? Region{{1, 3, 5}, {1, 9, 50}} : Region{{0, 3, 32}, {2, 20, 32}};
    EXPECT_TRUE(reader->read(other).pixels == part_of(image, other).pixels);
    EXPECT_THROW(reader->read({}), DataError);
    EXPECT_TRUE(reader->read(other).pixels == part_of(image, other).pixels);  // after the failure
  }
}

TEST(OmeTiff, StripsPlaneByPlane) {
  const Folder folder;
  const Image image = make_image(Dtype::f32, {2, 3, 300, 400});
  OmeTiffWriter writer(folder / "a.tif", info_of(image));
  EXPECT_EQ(writer.block(), (std::array<int64_t, 2>{163, 400}));
  for (const int64_t z : {2, 0, 1}) {
    for (const int64_t y : {163, 0}) {
      const Region region{{z, y, 0}, {1, y == 0 ? 163 : 137, 400}};
      writer.write(region, part_of(image, region));
    }
  }
  writer.finish();
  EXPECT_TRUE(read_image(folder / "a.tif").pixels == image.pixels);
}

TEST(OmeTiff, RefusesWhatIsNotWholeBlocks) {
  const Folder folder;
  const Image image = make_image(Dtype::u8, {1, 1, 40, 40});
  WriteOptions options;
  options.tile = 16;
  {
    OmeTiffWriter writer(folder / "a.tif", info_of(image), options);
    const auto write = [&](const Region& region) { writer.write(region, part_of(image, region)); };
    write({{0, 0, 0}, {1, 16, 32}});
    EXPECT_THROW(write({{0, 0, 16}, {1, 16, 16}}), std::logic_error);  // again
    EXPECT_THROW(write({{0, 8, 0}, {1, 16, 16}}), std::logic_error);
    EXPECT_THROW(write({{0, 16, 0}, {1, 8, 40}}), std::logic_error);
    EXPECT_THROW(writer.write({}, make_image(Dtype::u16, {1, 1, 40, 40})), std::logic_error);
    EXPECT_THROW(writer.write({}, image, 1), std::logic_error);
    EXPECT_THROW(writer.finish(), std::logic_error);
  }
  options.tile = 20;
  EXPECT_THROW(OmeTiffWriter(folder / "b.tif", info_of(image), options), std::logic_error);
  EXPECT_EQ(folder.files(), 0U);
}

/// ImageJ writes the directory of the first plane alone, and the others behind its pixels.
TEST(Tiff, ReadsImageJStacksAbove4GB) {
  const Folder folder;
  const std::string path = folder / "large.tif";
  constexpr int64_t kSide = 4096, kPlanes = 160, kStart = 512;  // 5.4 GB
  const std::string description =
      "ImageJ=1.53t\nimages=160\nchannels=2\nslices=80\nhyperstack=true\n";
  std::string head("MM\0*\0\0\0\x08", 8);
  const auto number = [&](uint32_t value, int bytes) {
    for (int i = bytes - 1; i >= 0; --i) head += static_cast<char>(value >> (8 * i));
  };
  const auto entry = [&](uint32_t tag, uint32_t type, uint32_t count, uint32_t value) {
    number(tag, 2);
    number(type, 2);
    number(count, 4);
    number(type == 3 ? value << 16 : value, 4);
  };
  number(9, 2);
  entry(256, 4, 1, kSide);
  entry(257, 4, 1, kSide);
  entry(258, 3, 1, 16);
  entry(259, 3, 1, 1);
  entry(262, 3, 1, 1);
  entry(270, 2, static_cast<uint32_t>(description.size()) + 1, 200);
  entry(273, 4, 1, kStart);
  entry(278, 4, 1, kSide);
  entry(279, 4, 1, kSide * kSide * 2);
  number(0, 4);
  head.resize(200);
  head += description;
  put(path, head);
  const auto place = [&](int64_t plane, int64_t y, int64_t x) {
    return kStart + ((plane * kSide + y) * kSide + x) * 2;
  };
  const int descriptor = ::open(path.c_str(), O_WRONLY);
  ASSERT_EQ(::ftruncate(descriptor, place(kPlanes, 0, 0)), 0);
  for (int64_t plane = 0; plane < kPlanes; ++plane) {
    const unsigned char value[2] = {1, static_cast<unsigned char>(plane)};
    ASSERT_EQ(::pwrite(descriptor, value, 2, place(plane, 4000, 4095)), 2);
  }
  const auto reader = open_image(path);
  EXPECT_EQ(reader->info().shape, (std::array<int64_t, 4>{2, 80, kSide, kSide}));
  const Image part = reader->read({{0, 4000, 4090}, {80, 2, 6}});
  const auto values = values_of<uint16_t>(part);
  for (int64_t c = 0; c < 2; ++c) {
    for (int64_t z = 0; z < 80; ++z) {
      const auto at = static_cast<std::size_t>(c * 80 + z) * 12;
      EXPECT_EQ(values[at + 5], 256 + 2 * z + c);
      EXPECT_EQ(values[at + 4], 0);
      EXPECT_EQ(values[at + 11], 0);
    }
  }
  ASSERT_EQ(::ftruncate(descriptor, place(kPlanes, 0, 0) - 1), 0);
  ::close(descriptor);
  const std::string message = message_of<DataError>([&] { open_image(path); });
  EXPECT_NE(message.find("planes behind one directory are cut off"), std::string::npos) << message;
}

TEST(Nifti, RoundTripOfTypesShapesAndGeometry) {
  const Folder folder;
  Geometry rigid, sheared, spaced;
  const double angle = 0.7, c = std::cos(angle), s = std::sin(angle);
  rigid.affine = {0.5 * c, -0.75 * s, 0, -11.5, 0.5 * s, 0.75 * c, 0, 22, 0, 0, -2, 3};
  rigid.spacing_um = {2000, 750, 500};
  sheared.affine = {0.5, 0.25, 0, 1, 0, 0.75, 0, 2, 0, 0, 2, 3};
  sheared.spacing_um = {2000, 1000 * std::hypot(0.25, 0.75), 500};
  spaced.spacing_um = {3000, 250, 125};
  for (const Dtype dtype : kWholeImage) {
    for (const auto& shape : {std::array<int64_t, 4>{1, 1, 5, 7}, {1, 4, 5, 6}, {3, 4, 5, 6}}) {
      for (const Geometry& geometry : {Geometry{}, rigid, sheared, spaced}) {
        for (const char* name : {"a.nii", "a.nii.gz"}) {
          Image image = make_image(dtype, shape);
          image.geometry = geometry;
          write_nifti(folder / name, image);
          const Image back = read_image(folder / name);
          EXPECT_EQ(back.dtype, dtype);
          EXPECT_EQ(back.shape, shape);
          EXPECT_TRUE(back.pixels == image.pixels);
          // A spacing alone is read as images_test.cpp says
          const bool is_affine = geometry.affine[0] != 0 || geometry.spacing_um[0] == 0;
          for (std::size_t i = 0; is_affine && i < 12; ++i)
            EXPECT_NEAR(back.geometry.affine[i], geometry.affine[i], 1e-6);
          for (std::size_t i = 0; i < 3; ++i)
            EXPECT_NEAR(back.geometry.spacing_um[i], geometry.spacing_um[i], 1e-3);
        }
      }
    }
  }
  EXPECT_EQ(folder.files(), 2U);
}

TEST(Nifti, QformIsTheAffineWhenItIsRigid) {
  const Folder folder;
  Image image = make_image(Dtype::u8, {1, 3, 4, 5});
  uint32_t state = 1;
  const auto random = [&] {
    state = state * 1664525 + 1013904223;
    return static_cast<double>(state) / 4294967296.0 * 2 - 1;
  };
  for (int i = 0; i < 200; ++i) {
    // Any rotation by a quaternion, half turns among them; mirrored or not
    double q[4] = {i % 5 == 0 ? 0 : random(), random(), random(), random()};
    if (i % 7 == 0) q[1] = q[2] = 0;
    const double norm = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    for (double& part : q) part /= norm;
    const auto [a, b, c, d] = q;
    const double r[9] = {1 - 2 * (c * c + d * d),
                         2 * (b * c - a * d),
                         2 * (b * d + a * c),
                         2 * (b * c + a * d),
                         1 - 2 * (b * b + d * d),
                         2 * (c * d - a * b),
                         2 * (b * d - a * c),
                         2 * (c * d + a * b),
                         1 - 2 * (b * b + c * c)};
    const double sides[3] = {0.5, 0.8, i % 2 == 0 ? 1.5 : -1.5};
    auto& affine = image.geometry.affine;
    for (std::size_t k = 0; k < 9; ++k) affine[k / 3 * 4 + k % 3] = r[k] * sides[k % 3];
    image.geometry.spacing_um = {1500, 800, 500};
    write_nifti(folder / "a.nii", image);
    std::string bytes = bytes_of(folder / "a.nii");
    ASSERT_EQ(bytes[254], 1);  // sform_code: without it the qform counts
    bytes[254] = 0;
    put(folder / "b.nii", bytes);
    const auto back = read_image(folder / "b.nii").geometry.affine;
    // Near a half turn the format's real part is what three floats leave of 1
    for (std::size_t k = 0; k < 12; ++k) ASSERT_NEAR(back[k], affine[k], 1e-3) << i;
  }
}

TEST(Nifti, LongSidesAreNifti2) {
  const Folder folder;
  const Image image = make_image(Dtype::u8, {1, 1, 2, 40000});
  write_nifti(folder / "a.nii.gz", image);
  EXPECT_TRUE(read_image(folder / "a.nii.gz").pixels == image.pixels);
  write_nifti(folder / "a.nii", image);
  EXPECT_EQ(bytes_of(folder / "a.nii").substr(4, 4), std::string("n+2\0", 4));
}

TEST(Nifti, NamesWhatIsWrong) {
  const Folder folder;
  write_nifti(folder / "a.nii.gz", make_image(Dtype::u16, {1, 3, 20, 20}));
  write_nifti(folder / "a.nii", make_image(Dtype::u16, {1, 3, 20, 20}));
  const auto message = [&](const std::string& name, const std::string& bytes) {
    put(folder / name, bytes);
    return message_of<DataError>([&] { read_image(folder / name); });
  };
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find(", expected "), std::string::npos) << text;
  };
  const std::string plain = bytes_of(folder / "a.nii"), packed = bytes_of(folder / "a.nii.gz");
  expect(message("b.nii", plain.substr(0, 500)), "b.nii: 500 B for 20 x 20 x 3 x 1 x 1 voxels");
  expect(message("b.nii", plain.substr(0, 300)), "b.nii: its header is cut off");
  expect(message("b.nii.gz", packed.substr(0, packed.size() / 2)),
         "its compressed data ends too early");
  std::string bytes = packed;
  bytes[packed.size() - 6] ^= 1;  // the checksum
  expect(message("b.nii.gz", bytes), "can't be decompressed");
  bytes = plain;
  bytes.replace(70, 2, "\x20\0", 2);
  expect(message("b.nii", bytes), "data type 32");
  bytes = plain;
  bytes.replace(344, 4, "ni1\0", 4);
  expect(message("b.nii", bytes), "in another file");
  bytes.replace(344, 4, 4, '\0');
  expect(message("b.hdr", bytes), "Analyze");
}

TEST(Npy, RoundTripAndHeader) {
  const Folder folder;
  for (const Dtype dtype : kWholeImage) {
    for (const auto& shape : {std::array<int64_t, 4>{1, 1, 5, 7}, {1, 4, 5, 6}, {3, 1, 5, 6}}) {
      const Image image = make_image(dtype, shape);
      write_npy(folder / "a.npy", image);
      const Image back = read_image(folder / "a.npy");
      EXPECT_EQ(back.dtype, dtype);
      EXPECT_EQ(back.shape, shape);
      EXPECT_TRUE(back.pixels == image.pixels);
      EXPECT_EQ((bytes_of(folder / "a.npy").size() - image.pixels.size()) % 64, 0U);
    }
  }
}

TEST(Npy, NamesWhatIsWrong) {
  const Folder folder;
  const auto message = [&](const std::string& header, std::size_t bytes) {
    std::string text = "\x93NUMPY\x01";
    text += '\0';
    text += static_cast<char>(header.size());
    text += '\0';
    put(folder / "a.npy", text + header + std::string(bytes, '\xff'));
    return message_of<DataError>([&] { read_image(folder / "a.npy"); });
  };
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find(", expected "), std::string::npos) << text;
  };
  EXPECT_EQ(message("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }", 6), "");
  expect(message("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }", 5),
         "5 bytes behind");
  expect(message("{'descr': '<c8', 'fortran_order': False, 'shape': (2, 3), }", 99), "'<c8'");
  expect(message("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (2, 3), }", 99),
         "records");
  expect(message("{'descr': '|O', 'fortran_order': False, 'shape': (2, 3), }", 99), "'|O'");
  expect(message("{'descr': '|u1', 'fortran_order': False, 'shape': (6,), }", 6), "1 dimension,");
  expect(message("{'descr': '|u1', 'fortran_order': False, 'shape': (0, 3), }", 6),
         "without pixels");
  expect(message("{'descr': '|u1', 'shape': (2, 3), }", 6), "no fortran_order");
  expect(message("{'descr': '<u8', 'fortran_order': False, 'shape': (1, 1), }", 8),
         "holds 18446744073709551615");
}

TEST(Writers, FullDiskLeavesNothing) {
  const Folder folder;
  const Image image = make_image(Dtype::u16, {1, 4, 100, 100});
  for (const std::size_t limit : {0, 100, 30'000}) {
    const FileSizeLimit full(limit);
    for (const char* name : {"a.nii", "a.nii.gz"})
      EXPECT_THROW(write_nifti(folder / name, image), IoError) << name << limit;
    EXPECT_THROW(write_npy(folder / "a.npy", image), IoError);
  }
  EXPECT_EQ(folder.files(), 0U);
}

/// For tests/golden/check_images.py: files of every kind in the folder CYTRA_WRITE_SAMPLES.
TEST(Writers, DISABLED_WriteSamples) {
  const char* folder = std::getenv("CYTRA_WRITE_SAMPLES");
  ASSERT_NE(folder, nullptr);
  const std::string root = std::string(folder) + "/";
  int number = 0;
  for (const Dtype dtype : kWholeImage) {
    for (const auto& shape : {std::array<int64_t, 4>{1, 1, 40, 50}, {2, 3, 40, 50}}) {
      Image image;
      image.dtype = dtype;
      image.shape = shape;
      image.geometry.spacing_um = {1500, 500, 250};
      image.geometry.affine = {0, -0.5, 0, 10, 0.25, 0, 0, 20, 0, 0, 1.5, 30};
      if (shape[0] == 2) image.channel_names = {"DNA & <more>", "\xC2\xB5"};
      image.pixels.resize(image.bytes());
      for (int64_t i = 0; i < image.count(); ++i) {  // as check_images.py
        const int64_t value = i * 7 % 120;
        unsigned char* at = image.pixels.data() + static_cast<std::size_t>(i) * size_of(dtype);
        if (dtype == Dtype::f32) {
          const auto real = static_cast<float>(value) / 4;
          std::memcpy(at, &real, sizeof real);
        } else if (dtype == Dtype::f64) {
          const double real = static_cast<double>(value) / 4;
          std::memcpy(at, &real, sizeof real);
        } else {
          std::memcpy(at, &value, size_of(dtype));
        }
      }
      const std::string name =
          root + name_of(dtype) + "_" + std::to_string(shape[0]) + std::to_string(shape[1]);
      write_npy(name + ".npy", image);
      write_nifti(name + ".nii", image);
      write_nifti(name + ".nii.gz", image);
      for (const char* ending : {".nrrd", ".nhdr", ".mha", ".mhd"}) {
        const auto raw = create_image(name + "_raw" + ending, info_of(image, 1));
        raw->write(image);
        raw->finish();
      }
      for (const Compression compression :
           {Compression::none, Compression::deflate, Compression::lzw, Compression::zstd}) {
        WriteOptions options{compression, number % 3 != 0};
        options.tile = number % 2 == 0 ? 16 : 0;
        options.levels = number % 2 == 0 ? 3 : 1;
        options.is_bigtiff = number % 5 == 0;
        write_ome_tiff(name + "_" + std::to_string(number++) + ".ome.tif", image, options);
      }
      OmeTiffWriter writer(name + "_time.ome.tif", info_of(image, 2));
      for (const int64_t t : {1, 0}) {
        writer.write({}, image, t);
        std::reverse(image.pixels.begin(), image.pixels.end());
      }
      writer.finish();
    }
  }
}

}  // namespace
}  // namespace cytra::io
