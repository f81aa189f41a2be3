// Small files made to take all memory, all time or another file: each is refused, soon.
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <zlib.h>
#include <zstd.h>

#include "io/tiff/directory.h"
#include "tests/io/fixture.h"
#include "tests/io/mutants.h"
// after <cstdio>
#include <jpeglib.h>

namespace cytra::io {
namespace {

namespace fs = std::filesystem;

/// The DataError's message, got within a second. Memory: mutants_test.cpp and RLIMIT_AS.
std::string refusal(const std::string& path, const Selection& selection = {}) {
  const std::clock_t start = std::clock();
  const std::string message = message_of<DataError>([&] { read_image(path, selection); });
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, kSlower) << path;
  EXPECT_EQ(wrong_message(path, message), "");
  return message;
}

/// While it lives, this process can map only so many more bytes; AddressSanitizer can't live so.
class MemoryLimit {
 public:
  explicit MemoryLimit(uint64_t more) {
    ::getrlimit(RLIMIT_AS, &before_);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    std::ifstream statm("/proc/self/statm");
    uint64_t pages = 0;
    statm >> pages;
    const rlimit limit{pages * 4096 + more, before_.rlim_max};
    ::setrlimit(RLIMIT_AS, &limit);
#else
    (void)more;
#endif
  }
  ~MemoryLimit() {
    ::setrlimit(RLIMIT_AS, &before_);
  }

 private:
  rlimit before_{};
};
constexpr uint64_t kMuch = uint64_t{400} << 20;

std::string deflate_zeros(std::size_t count, int window_bits) {
  std::string bytes;
  z_stream stream{};
  ::deflateInit2(&stream, 9, Z_DEFLATED, window_bits, 9, Z_DEFAULT_STRATEGY);
  std::vector<Bytef> zeros(1 << 20), out(1 << 16);
  for (std::size_t done = 0; done <= count; done += zeros.size()) {
    stream.next_in = zeros.data();
    stream.avail_in = static_cast<uInt>(std::min(zeros.size(), count - done));
    const bool is_last = done + zeros.size() > count;
    do {
      stream.next_out = out.data();
      stream.avail_out = static_cast<uInt>(out.size());
      ::deflate(&stream, is_last ? Z_FINISH : Z_NO_FLUSH);
      bytes.append(reinterpret_cast<const char*>(out.data()), out.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  }
  ::deflateEnd(&stream);
  return bytes;
}

/// A TIFF of one 8-bit page whose blocks all are `block`.
struct TiffBomb {
  uint32_t width, height, block_width = 0, block_height = 0;
  uint16_t compression = 8;
  std::string block, description;
  std::size_t pages = 1;
  std::vector<uint64_t> smaller;
  void write(const std::string& path) const {
    constexpr std::size_t kHeader = 8;
    std::string file("II*\0\0\0\0\0", kHeader);
    put_number(file, 4, 4, false, kHeader + block.size());
    file += block;
    for (std::size_t page = 0; page < pages; ++page) {
      TiffDirectory directory(false);
      directory.set_long(256, width);
      directory.set_long(257, height);
      directory.set_short(258, 8);
      directory.set_short(259, compression);
      directory.set_short(262, 1);
      directory.set_short(277, 1);
      const bool is_tiled = block_width != 0;
      const uint64_t count = is_tiled ? ((width + block_width - 1) / block_width) *
                                            uint64_t{(height + block_height - 1) / block_height}
                                      : 1;
      if (is_tiled) {
        directory.set_long(322, block_width);
        directory.set_long(323, block_height);
      }
      directory.set_offsets(is_tiled ? 324 : 273, std::vector<uint64_t>(count, kHeader));
      directory.set_offsets(is_tiled ? 325 : 279, std::vector<uint64_t>(count, block.size()));
      if (!is_tiled) directory.set_long(278, height);
      if (!description.empty()) directory.set_text(270, description);
      if (!smaller.empty()) directory.set_offsets(330, smaller);
      const uint64_t at = file.size();
      const std::string alone = directory.bytes(at, 0);
      file += page + 1 < pages ? directory.bytes(at, at + alone.size()) : alone;
    }
    put(path, file);
  }
};

TEST(Bombs, TiffStripOfZeros) {
  const Folder folder;
  const MemoryLimit limit(kMuch);
  TiffBomb bomb{60000, 60000};
  bomb.block = deflate_zeros(1 << 20, MAX_WBITS);
  bomb.write(folder / "a.tif");
  EXPECT_NE(refusal(folder / "a.tif").find("not plausible"), std::string::npos);
  bomb.pages = 1000;  // each plausible, together not
  bomb.width = bomb.height = 8000;
  bomb.write(folder / "b.tif");
  EXPECT_NE(refusal(folder / "b.tif").find("not plausible"), std::string::npos);
}

TEST(Bombs, TiffTilesLargerThanThePage) {
  const Folder folder;
  const MemoryLimit limit(kMuch);
  TiffBomb bomb{1, 3000};  // 3000 times 64 MB for 3000 pixels
  bomb.block_height = 1;
  bomb.block_width = 1U << 26;
  bomb.block = deflate_zeros(std::size_t{1} << 26, MAX_WBITS);
  bomb.write(folder / "a.tif");
  EXPECT_NE(refusal(folder / "a.tif").find("plausible"), std::string::npos);
}

TEST(Bombs, TiffDirectories) {
  const Folder folder;
  const MemoryLimit limit(kMuch);
  TiffBomb bomb{4, 4};
  bomb.compression = 1;
  bomb.block = std::string(16, 'x');
  bomb.write(folder / "a.tif");
  const std::string one = bytes_of(folder / "a.tif");
  std::string loop = one;  // a directory that follows itself
  put_number(loop, loop.size() - 4, 4, false, number_at(loop, 4, 4, false));
  put(folder / "loop.tif", loop);
  message_of<DataError>([&] { read_image(folder / "loop.tif"); });  // an image, or refused
  // A pyramid of itself, 60000 times
  bomb.smaller.assign(60000, number_at(one, 4, 4, false));
  bomb.write(folder / "smaller.tif");
  EXPECT_EQ(read_image(folder / "smaller.tif").pixels, std::vector<unsigned char>(16, 'x'));
  // 20000 pages that share one description of 2 MB
  bomb.smaller.clear();
  bomb.description = "{\"shape\": [4, 4]" + std::string(std::size_t{2} << 20, ' ') + "}";
  bomb.write(folder / "b.tif");
  std::string shared = bytes_of(folder / "b.tif");
  const uint64_t first = number_at(shared, 4, 4, false);
  const std::size_t size = 2 + 12 * number_at(shared, first, 2, false) + 4;
  const std::string directory = shared.substr(first, size);
  uint64_t previous = first;
  for (int i = 0; i < 20000; ++i) {
    put_number(shared, previous + size - 4, 4, false, shared.size());
    previous = shared.size();
    shared += directory;
  }
  put(folder / "shared.tif", shared);
  EXPECT_NE(refusal(folder / "shared.tif").find("directories take more"), std::string::npos);
}

TEST(Bombs, DescriptionOfASparseFile) {
  const Folder folder;
  const MemoryLimit limit(uint64_t{1} << 30);
  TiffBomb bomb{1, 1};
  bomb.block = "x";
  bomb.description = std::string(1000, 'd');
  bomb.write(folder / "a.tif");
  std::string file = bytes_of(folder / "a.tif");
  for (std::size_t at = 9; number_at(file, at, 2, false) != 270; ++at) {
    if (number_at(file, at + 1, 4, false) == (uint64_t{2} << 16 | 270))
      put_number(file, at + 5, 4, false, 1900000000);
  }
  put(folder / "a.tif", file);
  fs::resize_file(folder / "a.tif", uint64_t{2} << 30);
  EXPECT_NE(refusal(folder / "a.tif"), "");
}

TEST(Bombs, PlanesOfASparseFile) {
  const Folder folder;
  const MemoryLimit limit(kMuch);
  TiffBomb bomb{1, 1};
  bomb.compression = 1;
  bomb.block = "x";
  bomb.description = "ImageJ=1.53\nimages=2000000000\nslices=2000000000\n";
  bomb.write(folder / "a.tif");
  fs::resize_file(folder / "a.tif", uint64_t{3} << 30);
  EXPECT_NE(refusal(folder / "a.tif").find("2000000000 planes"), std::string::npos);
}

TEST(Bombs, PixelSizesBeyondAllNumbers) {
  const Folder folder;
  Image image = make_image(Dtype::u8, {1, 1, 64, 64});
  image.geometry.spacing_um = {0, 1.7e308, 1.7e308};
  WriteOptions options;
  options.levels = 2;
  write_ome_tiff(folder / "a.ome.tif", image, options);
  EXPECT_EQ(open_image(folder / "a.ome.tif", {0, 1, -1, {}})->info().geometry.spacing_um,
            (std::array<double, 3>{0, 0, 0}));
}

TEST(Bombs, OmeXml) {
  const Folder folder;
  TiffBomb bomb{4, 4};
  bomb.compression = 1;
  bomb.block = std::string(16, 'x');
  std::string laughs = "<!DOCTYPE lolz [<!ENTITY lol \"lol\">";
  for (int i = 0; i < 10; ++i) {
    laughs += "<!ENTITY lol" + std::to_string(i) + " \"";
    for (int k = 0; k < 10; ++k) laughs += "&lol" + (i == 0 ? "" : std::to_string(i - 1)) + ";";
    laughs += "\">";
  }
  const std::string image = "<Image><Pixels SizeX='4' SizeY='4'><TiffData/></Pixels></Image>";
  std::string deep, many, comments;
  for (int i = 0; i < 300000; ++i) {
    deep += "<a>";
    many += image;
    comments += "<!--";
  }
  const auto seconds_for = [&](const std::string& xml) {
    bomb.description = xml;
    bomb.write(folder / "a.tif");
    const std::clock_t start = std::clock();
    const std::string message = message_of<DataError>([&] { read_image(folder / "a.tif"); });
    EXPECT_EQ(message.empty() ? "" : wrong_message(folder / "a.tif", message), "");
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  EXPECT_LT(seconds_for("<?xml?>" + laughs + "]><OME>&lol9;" + image + "</OME>"), kSlower);
  EXPECT_LT(seconds_for("<OME>" + deep + image + "</OME>"), kSlower);
  EXPECT_LT(seconds_for("<OME>" + many + "</OME>"), kSlower);
  EXPECT_LT(seconds_for("<OME>" + comments + image + "</OME>"), kSlower);
  EXPECT_LT(seconds_for("<OME " + std::string(1000000, 'a')), kSlower);
}

TEST(Bombs, GzipOfNifti) {
  const Folder folder;
  const MemoryLimit limit(kMuch);
  Image image = make_image(Dtype::u8, {1, 4, 4, 4});
  write_nifti(folder / "a.nii", image);
  std::string head = bytes_of(folder / "a.nii").substr(0, 352);
  for (std::size_t i = 0; i < 3; ++i) put_number(head, 42 + 2 * i, 2, false, 30000);
  const auto write = [&](const std::string& name, const std::string& tail) {
    const std::string path = folder / name;
    gzFile file = ::gzopen(path.c_str(), "wb9");
    ::gzwrite(file, head.data(), static_cast<unsigned>(head.size()));
    ::gzclose(file);
    put(path, bytes_of(path) + tail);
    return path;
  };
  EXPECT_NE(refusal(write("a.nii.gz", deflate_zeros(1 << 28, 16 + MAX_WBITS)))
                .find("30000 x 30000 x 30000"),
            std::string::npos);
}

TEST(Bombs, OfTextHeaders) {
  const Folder folder;
  const MemoryLimit limit(kMuch);
  const std::string zeros = deflate_zeros(1 << 28, 16 + MAX_WBITS);
  const std::string nrrd = "NRRD0004\ntype: uchar\ndimension: 3\nendian: little\n",
                    meta = "ObjectType = Image\nNDims = 3\nElementType = MET_UCHAR\n";
  const auto refused = [&](const std::string& name, const std::string& bytes) {
    put(folder / name, bytes);
    EXPECT_NE(refusal(folder / name), "") << name;
  };
  for (const char* sizes :
       {"30000 30000 30000", "2147483647 2147483647 2147483647", "9 9 999999"}) {
    const std::string of_nrrd = nrrd + "sizes: " + sizes + "\nencoding: ",
                      of_meta = meta + "DimSize = " + sizes + "\n",
                      place = "ElementDataFile = LOCAL\n";
    refused("a.nrrd", of_nrrd + "gzip\n\n" + zeros.substr(0, 1000));
    refused("a.nrrd", of_nrrd + "raw\n\n" + zeros.substr(0, 1000));
    refused("a.nrrd", of_nrrd + "ascii\n\n1 2 3");
    refused("a.mha", of_meta + "CompressedData = True\n" + place + zeros.substr(0, 1000));
    refused("a.mha", of_meta + place + zeros.substr(0, 1000));
    refused("a.mha", of_meta + "BinaryData = False\n" + place + "1 2 3");
  }
  refused("a.nrrd", nrrd + "sizes: 30000 30000 30000\nencoding: gzip\n\n" + zeros);
  refused("a.nrrd", nrrd + "sizes: 4 4 4\nencoding: gzip\nbyte skip: 9999999999999\n\n" + zeros);
  refused("a.mha",
          meta + "DimSize = 30000 30000 30000\nCompressedData = True\nElementDataFile = LOCAL\n" +
              zeros);
}

void write_png_part(std::string& file, const char* name, const std::string& data) {
  std::string part(4, '\0');
  put_number(part, 0, 4, true, data.size());
  part += name + data;
  const auto crc = ::crc32(
      0, reinterpret_cast<const Bytef*>(part.data()) + 4, static_cast<uInt>(part.size() - 4));
  std::string check(4, '\0');
  put_number(check, 0, 4, true, crc);
  file += part + check;
}

TEST(Bombs, Png) {
  const Folder folder;
  const MemoryLimit limit(kMuch);
  std::string header(13, '\0');
  put_number(header, 0, 4, true, 100000);
  put_number(header, 4, 4, true, 100000);
  header[8] = 8;
  std::string file = "\x89PNG\r\n\x1a\n";
  write_png_part(file, "IHDR", header);
  write_png_part(file, "IDAT", deflate_zeros(1 << 20, MAX_WBITS));
  write_png_part(file, "IEND", "");
  put(folder / "a.png", file);
  EXPECT_NE(refusal(folder / "a.png").find("not plausible"), std::string::npos);
  // 900 texts, 7 MB each; the image itself is right
  const std::string text = "a" + std::string(2, '\0') + deflate_zeros(7 << 20, MAX_WBITS);
  put_number(header, 0, 4, true, 2);
  put_number(header, 4, 4, true, 1);
  file = "\x89PNG\r\n\x1a\n";
  write_png_part(file, "IHDR", header);
  for (int i = 0; i < 900; ++i) write_png_part(file, "zTXt", text);
  write_png_part(file, "IDAT", deflate_zeros(3, MAX_WBITS));
  write_png_part(file, "IEND", "");
  put(folder / "b.png", file);
  const std::clock_t start = std::clock();
  EXPECT_EQ(read_image(folder / "b.png").pixels, std::vector<unsigned char>(2, 0));
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, kSlower);
}

TEST(Bombs, MoreThanTheMemoryAtHand) {  // within 2000 times the file
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "no limit under a sanitizer";
#endif
  const Folder folder;
  constexpr std::size_t kSide = 12000;  // 144 MB, and 576 MB as float32
  std::string header(13, '\0');
  put_number(header, 0, 4, true, kSide);
  put_number(header, 4, 4, true, kSide);
  header[8] = 8;
  std::string file = "\x89PNG\r\n\x1a\n";
  write_png_part(file, "IHDR", header);
  write_png_part(file, "IDAT", deflate_zeros(kSide * (kSide + 1), MAX_WBITS));
  write_png_part(file, "IEND", "");
  put(folder / "a.png", file);
  TiffBomb tiff{kSide, kSide};
  tiff.block = deflate_zeros(kSide * kSide, MAX_WBITS);
  tiff.write(folder / "a.tif");
  Image image = make_image(Dtype::u8, {1, 1, 4, 4});
  write_nifti(folder / "b.nii", image);
  std::string head = bytes_of(folder / "b.nii").substr(0, 352);
  for (std::size_t i = 0; i < 2; ++i) put_number(head, 42 + 2 * i, 2, false, kSide);
  gzFile packed = ::gzopen((folder / "a.nii.gz").c_str(), "wb1");
  ::gzwrite(packed, head.data(), static_cast<unsigned>(head.size()));
  ::gzclose(packed);
  put(folder / "a.nii.gz",
      bytes_of(folder / "a.nii.gz") + deflate_zeros(kSide * kSide, 16 + MAX_WBITS));
  const MemoryLimit limit(kMuch);
  for (const char* name : {"a.png", "a.tif", "a.nii.gz"}) {
    const std::string message = message_of<MemoryError>([&] { read_image(folder / name); });
    EXPECT_NE(message.find("12000 x 12000"), std::string::npos) << name << ": " << message;
    EXPECT_NE(message.find("ulimit -v"), std::string::npos) << name << ": " << message;
  }
}

TEST(Bombs, JpegOfManyScans) {
  const Folder folder;
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_width = jpeg.image_height = 4600;
  jpeg.input_components = 1;
  jpeg.in_color_space = JCS_GRAYSCALE;
  jpeg_set_defaults(&jpeg);
  std::vector<jpeg_scan_info> scans(64);
  for (int i = 0; i < 64; ++i) scans[static_cast<std::size_t>(i)] = {1, {0}, i, i, 0, 0};
  jpeg.scan_info = scans.data();
  jpeg.num_scans = 64;
  jpeg_start_compress(&jpeg, TRUE);
  std::vector<JSAMPLE> row(jpeg.image_width, 77);
  JSAMPROW rows[] = {row.data()};
  while (jpeg.next_scanline < jpeg.image_height) jpeg_write_scanlines(&jpeg, rows, 1);
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  const std::string file(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  put(folder / "a.jpg", file);
  const std::clock_t start = std::clock();
  message_of<DataError>([&] { read_image(folder / "a.jpg"); });
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, kSlower);
}

TEST(Bombs, WebPOfTheLargestSides) {
  const Folder folder;
  const MemoryLimit limit(kMuch);
  std::string file("RIFF\x30\0\0\0WEBPVP8L\x24\0\0\0\x2f", 21);
  file += std::string("\xff\xff\xff\x0f", 4) + std::string(31, '\0');  // 16384 x 16384, one colour
  put(folder / "a.webp", file);
  EXPECT_NE(refusal(folder / "a.webp").find("16384"), std::string::npos);
}

TEST(Bombs, Jpeg2000OfManyTilesAndChannels) {
  const Folder folder;
  const MemoryLimit limit(kMuch);
  const auto write = [&](uint64_t side, uint64_t channels, std::size_t size) {
    std::string file = "\xff\x4f\xff\x51";
    file.resize(42 + 3 * channels, '\0');
    put_number(file, 4, 2, true, 38 + 3 * channels);
    for (const std::size_t at : {8, 12}) put_number(file, at, 4, true, side);
    for (const std::size_t at : {24, 28}) put_number(file, at, 4, true, 1);
    put_number(file, 40, 2, true, channels);
    for (std::size_t i = 0; i < channels; ++i) file.replace(42 + 3 * i, 3, "\7\1\1");
    // COD and QCD, so that the library goes on
    file += std::string("\xff\x52\0\x0c\0\0\0\1\0\0\4\4\0\1", 14) +
            std::string("\xff\x5c\0\4\x40\x40", 6);
    file += std::string("\xff\x90\0\x0a\0\0\0\0\0\0\0\1\xff\x93", 14);
    file.resize(std::max(size, file.size()), '\0');
    put(folder / "a.j2k", file);
    return folder / "a.j2k";
  };
  EXPECT_NE(refusal(write(60, 2000, 65536)).find("not plausible"), std::string::npos);
  EXPECT_NE(refusal(write(4000, 1, 65536)).find("not plausible"), std::string::npos);
}

TEST(Bombs, Zarr) {
  const Folder folder;
  const auto write = [&](const std::string& metadata, const std::string& chunk) {
    const std::string path = folder / "a.zarr";
    fs::remove_all(path);
    fs::create_directories(path);
    put(path + "/.zarray", metadata);
    put(path + "/0.0", chunk);
    return path;
  };
  const auto array = [](const std::string& shape,
                        const std::string& chunks,
                        const std::string& id) {
    return R"({"zarr_format": 2, "dtype": "|u1", "order": "C", "filters": null, "fill_value": 0, "shape": )" +
           shape + R"(, "chunks": )" + chunks + R"(, "compressor": {"id": ")" + id + "\"}}";
  };
  std::string zstd(1000, '\0');
  zstd.resize(::ZSTD_compress(zstd.data(), zstd.size(), zstd.data(), 100, 1));
  std::string claims("\x28\xb5\x2f\xfd\xe0\0\0\0\0\4\0\0\0", 13);  // 16 GB in one frame
  claims += std::string("\3\0\0", 3) + zstd;
  std::string blosc("\2\1\1\1\xff\xff\xff\x7f\xff\xff\xff\x7f\x20\0\0\0", 16);
  blosc.resize(32, '\0');
  const MemoryLimit limit(kMuch);
  refusal(write(array("[64, 64]", "[64, 64]", "zstd"), claims));
  refusal(write(array("[64, 64]", "[64, 64]", "blosc"), blosc));
  refusal(write(array("[64, 64]", "[64, 64]", "gzip"), deflate_zeros(1 << 26, 16 + MAX_WBITS)));
  refusal(write(array("[64, 64]", "[64, 64]", "lz4"),
                std::string("\xff\xff\xff\x7f", 4) + std::string(20, 'x')));
  refusal(write(array("[64, 64]", "[2000000000, 64]", "zstd"), claims));
  refusal(write(array("[1000000000000, 64]", "[64, 64]", "zstd"), ""));
  refusal(write(std::string(1000000, '['), ""));
  std::string objects;
  for (int i = 0; i < 200000; ++i) objects += "{\"a\":";
  refusal(write(objects, ""));
  refusal(write("{\"shape\": 1" + std::string(2000000, '1') + "}", ""));
}

TEST(Bombs, LargeFilesOfZeros) {
  const Folder folder;
  const MemoryLimit limit(kMuch);
  for (const char* name : {"a.tif",
                           "a.nii.gz",
                           "a.nii",
                           "a.hdr",
                           "a.nrrd",
                           "a.mha",
                           "a.png",
                           "a.jpg",
                           "a.jp2",
                           "a.npy",
                           "a"}) {
    put(folder / name, "");
    fs::resize_file(folder / name, uint64_t{2} << 30);
    EXPECT_NE(refusal(folder / name), "") << name;
  }
  // Behind the right first bytes
  const std::pair<const char*, std::string> heads[] = {
      {"b.tif", std::string("II*\0\x08\0\0\0\1\0\0\1", 12)},
      {"b.png", "\x89PNG\r\n\x1a\n"},
      {"b.jpg", "\xff\xd8\xff"},
      {"b.j2k", "\xff\x4f\xff\x51"},
      {"b.nii.gz", "\x1f\x8b"},
      {"b.npy", std::string("\x93NUMPY\1\0\x76\0{", 11)},
      {"b.nii", std::string("\x5c\1\0\0", 4)},
      {"b.nrrd", "NRRD0004\n"},
      {"b.mha", "ObjectType = Image\nNDims = 3\n"}};
  for (const auto& [name, head] : heads) {
    put(folder / name, head);
    fs::resize_file(folder / name, uint64_t{2} << 30);
    EXPECT_NE(refusal(folder / name), "") << name;
  }
  put(folder / "a.csv", "");
  fs::resize_file(folder / "a.csv", uint64_t{2} << 30);
  const std::string message = message_of<DataError>([&] { read_table(folder / "a.csv"); });
  EXPECT_EQ(wrong_message(folder / "a.csv", message), "");
}

TEST(Bombs, LargeWeightsOfZeros) {  // mapped, not read
  const Folder folder;
  const std::string path = folder / "a.safetensors";
  put(path, "");
  fs::resize_file(path, uint64_t{2} << 30);
  EXPECT_EQ(wrong_message(path, message_of<DataError>([&] { const SafetensorsFile file(path); })),
            "");
}

TEST(Bombs, TablesOfManyColumns) {
  const Folder folder;
  std::string header;
  for (int i = 0; i < 400000; ++i) header += std::to_string(i) + ",";
  put(folder / "a.csv", header + "x\n");
  const std::clock_t start = std::clock();
  EXPECT_NE(message_of<DataError>([&] { read_table(folder / "a.csv"); }).find("400001 columns"),
            std::string::npos);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, kSlower);
}

}  // namespace
}  // namespace cytra::io
