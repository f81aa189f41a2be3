// Images that are read row by row: in little memory, and none of it decoded twice.
#include <cstring>
#include <ctime>
#include <functional>

#include <fcntl.h>
#include <tiffio.h>

#include "io/writer.h"
#include "tests/io/fixture.h"
#include "tests/io/heap_peak.h"

namespace cytra::io {
namespace {

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// A ramp with some noise, which compresses well.
Image ramp(Dtype dtype, std::array<int64_t, 4> shape) {
  Image image;
  image.dtype = dtype;
  image.shape = shape;
  image.pixels.resize(image.bytes());
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<unsigned char>(i / 5000 + (i * i >> 9) % 3);
  return image;
}

struct Strips {
  uint16_t compression = COMPRESSION_NONE, samples = 1, planar = PLANARCONFIG_CONTIG;
  bool is_big_endian = false;
};

/// Each channel, or all samples of a page, in one strip.
void write_strips(const std::string& path, const Image& image, const Strips& how) {
  const auto [c, z, y, x] = image.shape;
  TIFF* tiff = TIFFOpen(path.c_str(), how.is_big_endian ? "wb" : "wl");
  const bool is_contiguous = how.planar == PLANARCONFIG_CONTIG && how.samples > 1;
  const auto plane = static_cast<std::size_t>(y * x) * size_of(image.dtype);
  for (int64_t page = 0; page < (how.samples > 1 ? 1 : c); ++page) {
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, static_cast<uint32_t>(x));
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, static_cast<uint32_t>(y));
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, static_cast<int>(8 * size_of(image.dtype)));
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, how.samples);
    TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, how.planar);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, how.compression);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, static_cast<uint32_t>(y));
    std::vector<unsigned char> pixels;
    const unsigned char* from = image.pixels.data() + static_cast<std::size_t>(page) * plane;
    if (is_contiguous) {
      pixels.resize(image.pixels.size());
      const std::size_t size = size_of(image.dtype);
      for (std::size_t i = 0; i < image.pixels.size() / size; ++i) {
        const std::size_t count = plane / size;
        std::memcpy(&pixels[(i % count * how.samples + i / count) * size], &from[i * size], size);
      }
      TIFFWriteEncodedStrip(tiff, 0, pixels.data(), static_cast<tmsize_t>(pixels.size()));
    } else {
      for (uint32_t sample = 0; sample < how.samples; ++sample) {
        pixels.assign(from + sample * plane, from + (sample + 1) * plane);
        TIFFWriteEncodedStrip(tiff, sample, pixels.data(), static_cast<tmsize_t>(plane));
      }
    }
    TIFFWriteDirectory(tiff);
  }
  TIFFClose(tiff);
}

/// Reads a file by `rows` of its outer axis; returns the CPU time against that of the whole.
double read_by(const std::string& path, const Image& image, int64_t rows, int64_t& peak) {
  double before = cpu_seconds();
  EXPECT_TRUE(read_image(path).pixels == image.pixels);
  const double whole = cpu_seconds() - before;
  const auto reader = open_image(path);
  const std::size_t axis = image.shape[1] > 1 ? 0 : 1;
  double parts = 0;
  peak = 0;
  for (int64_t first = 0; first < image.shape[axis + 1]; first += rows) {
    Region region;
    region.begin[axis] = first;
    region.size[axis] = std::min(rows, image.shape[axis + 1] - first);
    const Image expected = crop(image, region, "");
    const heap::Peak heap;
    before = cpu_seconds();
    const Image part = reader->read(region);
    parts += cpu_seconds() - before;
    peak = std::max(peak, heap.bytes());
    EXPECT_TRUE(part.pixels == expected.pixels) << path << " from " << first;
  }
  return parts / std::max(whole, 0.01);
}

TEST(Rows, OfLargeTiffStrips) {
  const Folder folder;
  const Image grey = ramp(Dtype::u16, {1, 1, 3000, 3000}),
              three = ramp(Dtype::u8, {3, 1, 4200, 4200});
  for (const uint16_t compression :
       {COMPRESSION_NONE, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_LZW, COMPRESSION_ZSTD}) {
    for (int kind = 0; kind < 5; ++kind) {
      Strips how;
      how.compression = compression;
      how.samples = kind == 2 || kind == 3 ? 3 : 1;
      how.planar = kind == 3 ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG;
      how.is_big_endian = kind == 1;
      const Image& image = kind < 2 ? grey : three;
      write_strips(folder / "a.tif", image, how);
      Image expected = image;
      if (kind == 4) expected.shape = {1, 3, 4200, 4200};  // pages are planes
      int64_t peak = 0;
      const auto reader = open_image(folder / "a.tif");
      ASSERT_EQ(reader->info().shape, expected.shape) << kind;
      const double ratio = kind == 4 ? 0 : read_by(folder / "a.tif", expected, 100, peak);
      EXPECT_LT(ratio, 4) << compression << " " << kind;  // 20 where each begins at the top
      const auto file = static_cast<int64_t>(std::filesystem::file_size(folder / "a.tif"));
      if (heap::is_counted) {
        EXPECT_LT(peak,
                  ((kind < 2 ? 8 : 20) << 20) + (compression == COMPRESSION_NONE ? 0 : 2 * file))
            << compression << " " << kind;
      }
      // Backward, and of all pages by turns
      for (const int64_t y : {2000, 1000, 1500, 1100}) {
        const Region box{{0, y, 20}, {-1, 64, 500}};
        EXPECT_TRUE(reader->read(box).pixels == crop(expected, box, "").pixels);
      }
    }
  }
}

TEST(Rows, OfPackedNifti) {
  const Folder folder;
  const Image image = ramp(Dtype::u8, {2, 42, 1000, 1000});  // 84 MB
  write_nifti(folder / "a.nii.gz", image);
  int64_t peak = 0;
  // The cursor of the second channel passes the first
  EXPECT_LT(read_by(folder / "a.nii.gz", image, 4, peak), 2.5);
  if (heap::is_counted) {
    EXPECT_LT(peak, 24 << 20);
  }
  const auto reader = open_image(folder / "a.nii.gz", {0, 0, -1, {1}});
  for (int i = 0; i < 12; ++i) {  // back and forth, until all of it is kept
    const Region box{{30 - 5 * (i % 3), 10, 20}, {3, 500, 700}};
    const Image part = reader->read(box);
    const Image expected = crop(image, box, "");
    EXPECT_TRUE(std::equal(
        part.pixels.begin(), part.pixels.end(), expected.pixels.begin() + 3 * 500 * 700));
  }
  std::string bytes = bytes_of(folder / "a.nii.gz");
  const std::string whole = bytes;
  bytes[bytes.size() - 6] ^= 1;  // the checksum
  put(folder / "b.nii.gz", bytes);
  const auto damaged = open_image(folder / "b.nii.gz");
  EXPECT_NO_THROW(damaged->read({{0, 0, 0}, {2, -1, -1}}));
  EXPECT_THROW(damaged->read({{40, 0, 0}, {2, -1, -1}}), DataError);
  put(folder / "b.nii.gz", whole.substr(0, whole.size() / 3));
  EXPECT_THROW(open_image(folder / "b.nii.gz")->read({{40, 0, 0}, {2, -1, -1}}), DataError);
}

TEST(Rows, OfALargePng) {
  const Folder folder;
  const Image image = ramp(Dtype::u16, {3, 1, 2500, 5000});
  write_png(folder / "a.png", image);  // 75 MB
  const auto file = static_cast<int64_t>(std::filesystem::file_size(folder / "a.png"));
  int64_t peak = 0;
  EXPECT_LT(read_by(folder / "a.png", image, 200, peak), 3);
  if (heap::is_counted) {
    EXPECT_LT(peak, 20 << 20);
    const heap::Peak whole;
    read_image(folder / "a.png");
    EXPECT_LT(whole.bytes(), (84 << 20) + file);  // once
  }
  const auto reader = open_image(folder / "a.png", {0, 0, -1, {2, 0}});
  for (int i = 0; i < 12; ++i) {
    const Region box{{0, 1500 - 100 * i, 20}, {1, 50, 700}};
    const Image all = crop(image, box, ""), part = reader->read(box);
    const auto plane = static_cast<std::ptrdiff_t>(part.pixels.size() / 2);
    EXPECT_TRUE(std::equal(
        part.pixels.begin(), part.pixels.begin() + plane, all.pixels.begin() + 2 * plane));
    EXPECT_TRUE(std::equal(part.pixels.begin() + plane, part.pixels.end(), all.pixels.begin()));
  }
  std::string bytes = bytes_of(folder / "a.png");
  put(folder / "b.png", bytes.substr(0, bytes.size() / 2));
  const auto damaged = open_image(folder / "b.png");
  EXPECT_NO_THROW(damaged->read({{0, 0, 0}, {1, 50, -1}}));
  EXPECT_THROW(damaged->read({{0, image.shape[2] - 10, 0}, {1, 10, -1}}), DataError);
  EXPECT_THROW(damaged->read({}), DataError);
}

int64_t resident_file_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("RssFile:", 0) == 0) return std::stoll(line.substr(8)) * 1024;
  }
  return 0;
}

TEST(Rows, OfMappedFilesGiveTheirPagesBack) {
  const Folder folder;
  ImageInfo info;
  info.shape = {1, 400, 1000, 1000};
  for (const char* name : {"a.npy", "a.nii"}) {
    {
      const auto writer = create_image(folder / name, info);
      Image rows;
      rows.shape = {1, 40, 1000, 1000};
      rows.pixels.resize(rows.bytes(), 7);
      for (int i = 0; i < 10; ++i) writer->write(rows);
      writer->finish();
    }
    const int64_t before = resident_file_bytes();
    int64_t most = 0;
    const auto reader = open_image(folder / name);
    for (int64_t z = 0; z < 400; z += 8) {
      EXPECT_EQ(reader->read({{z, 0, 0}, {8, -1, -1}}).pixels.back(), 7);
      most = std::max(most, resident_file_bytes() - before);
    }
    EXPECT_LT(most, 100 << 20) << name;
  }
}

}  // namespace
}  // namespace cytra::io
