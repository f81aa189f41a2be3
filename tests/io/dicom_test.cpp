// DICOM as pydicom and its codecs write it: tests/golden/make_dicom.py.
#include <cmath>
#include <cstring>
#include <thread>

#include <nlohmann/json.hpp>
#include <zlib.h>

#include "tests/io/fixture.h"
#include "tests/io/golden_cases.h"
#include "tests/io/module_fixture.h"
#include "tests/support/at_least.h"

namespace cytra::io {
namespace {

using nlohmann::json;

std::string golden_dicom(const std::string& name) {
  return std::string(CYTRA_SOURCE_DIR) + "/tests/golden/dicom/" + name;
}
json dicom_cases() {
  return test::at_least(76, json::parse(bytes_of(golden_dicom("cases.json"))));
}
std::string dicom_place(const json& entry) {
  return entry.contains("real") ? real_data("pydicom/" + entry["file"].get<std::string>())
                                : golden_dicom(entry["file"]);
}

TEST(Dicom, IsReadAsPydicomReadsIt) {
  SKIP_WITHOUT_MODULE("dicom");
  int count = 0;
  for (const json& entry : dicom_cases()) {
    if (entry.contains("real") && !std::filesystem::exists(dicom_place(entry))) continue;
    SCOPED_TRACE(entry.dump());
    const auto reader = open_image(dicom_place(entry), selection_of(entry));
    const ImageInfo& info = reader->info();
    EXPECT_EQ(name_of(info.dtype), entry["dtype"].get<std::string>());
    EXPECT_EQ(json(info.shape), entry["shape"]);
    EXPECT_EQ(info.scenes, entry.value("scenes", 1));
    EXPECT_EQ(info.timepoints, entry.value("timepoints", 1));
    for (std::size_t i = 0; i < 3 && entry.contains("spacing_um"); ++i)
      EXPECT_NEAR(info.geometry.spacing_um[i], entry["spacing_um"][i].get<double>(), 1e-2);
    for (std::size_t i = 0; i < 12 && entry.contains("affine"); ++i)
      EXPECT_NEAR(info.geometry.affine[i], entry["affine"][i].get<double>(), 1e-5);
    const Image image = reader->read({});
    EXPECT_EQ(image.shape, info.shape);
    ++count;
    if (!entry.contains("tolerance")) {
      EXPECT_EQ(crc_of(image), entry["crc32"].get<uint32_t>());
      continue;
    }
    // Decoders of lossy JPEG differ
    EXPECT_NEAR(image.pixels[image.pixels.size() / 2],
                entry["middle"].get<double>(),
                entry["tolerance"].get<double>());
  }
  EXPECT_GT(count, 63);
}

TEST(Dicom, RealFilesAreThere) {
  SKIP_WITHOUT_MODULE("dicom");
  SKIP_WITHOUT_REAL_DATA();
  int count = 0;
  for (const json& entry : dicom_cases()) {
    if (entry.contains("real") && std::filesystem::exists(dicom_place(entry))) ++count;
  }
  EXPECT_EQ(count, 6);
}

TEST(Dicom, RegionsAndChannelsArePartsOfTheWhole) {
  SKIP_WITHOUT_MODULE("dicom");
  for (const char* name : {"oblique", "rle_u8.dcm", "j2k_rgb.dcm", "jls_rgb.dcm", "bits.dcm"}) {
    SCOPED_TRACE(name);
    const auto reader = open_image(golden_dicom(name));
    const Image whole = reader->read({});
    const auto [c, z, y, x] = whole.shape;
    const Region region{{z / 2, 1, 2}, {z - z / 2, y - 2, x - 3}};
    const Image expected = crop(whole, region, name), part = reader->read(region);
    EXPECT_EQ(part.pixels, expected.pixels);
    EXPECT_EQ(part.geometry.affine, expected.geometry.affine);
    Selection last;
    last.channels = {c - 1};
    const Image channel = open_image(golden_dicom(name), last)->read({});
    EXPECT_TRUE(std::equal(channel.pixels.rbegin(), channel.pixels.rend(), whole.pixels.rbegin()));
    EXPECT_EQ(channel.shape[0], 1);
  }
}

TEST(Dicom, IsReadBySeveralThreads) {
  SKIP_WITHOUT_MODULE("dicom");
  for (const char* name : {"oblique", "jls_u16.dcm", "jpeg_lossless_u8.dcm", "rle_rgb.dcm"}) {
    const auto reader = open_image(golden_dicom(name));
    const Image whole = reader->read({});
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 20; ++k) {
          if (reader->read({}).pixels != whole.pixels ||
              open_image(golden_dicom(name))->read({}).pixels != whole.pixels)
            ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0) << name;
  }
}

TEST(Dicom, FoldersAndFilesAreImagePaths) {
  const Folder folder;
  EXPECT_TRUE(is_image_path(golden_dicom("axial")));
  EXPECT_TRUE(is_image_path(golden_dicom("explicit.dcm")));
  std::filesystem::create_directory(folder / "bare");
  put(folder / "bare/IM1", bytes_of(golden_dicom("bare_implicit.dcm")));
  EXPECT_TRUE(is_image_path(folder / "bare"));
  EXPECT_TRUE(is_image_path("IM.DCM"));
  put(folder / "a.txt", "text");
  EXPECT_FALSE(is_image_path(folder / ""));
}

TEST(Dicom, SeveralSeriesAreListed) {
  SKIP_WITHOUT_MODULE("dicom");
  const std::string message = error_of(golden_dicom("two_series"));
  for (const char* words : {"2 DICOM series",
                            "0: 1.2.3.1 'times 1', 2 slices of 5 x 4",
                            "1: 1.2.3.2 'times 3', 6 slices",
                            "expected one"})
    EXPECT_NE(message.find(words), std::string::npos) << message;
}

TEST(Dicom, AMissingSliceIsAnError) {
  SKIP_WITHOUT_MODULE("dicom");
  const Folder folder;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(golden_dicom("axial"))) {
    if (entry.path().extension() != ".txt") files.push_back(entry.path().string());
  }
  ASSERT_EQ(files.size(), 6U);
  // Which one lies in the middle is known by what is left when it goes
  int errors = 0;
  for (const std::string& missing : files) {
    std::filesystem::create_directory(folder / "s");
    for (const std::string& file : files) {
      if (file != missing)
        std::filesystem::copy(file,
                              folder / "s/" + std::filesystem::path(file).filename().string());
    }
    const std::string message = error_of(folder / "s");
    if (!message.empty()) {
      EXPECT_NE(message.find("5.000 mm between planes"), std::string::npos) << message;
      ++errors;
    } else {
      EXPECT_EQ(open_image(folder / "s")->info().shape[1], 5);
    }
    std::filesystem::remove_all(folder / "s");
  }
  EXPECT_EQ(errors, 4);
}

TEST(Dicom, WhatIsDamagedOrNotKnownIsRefused) {
  SKIP_WITHOUT_MODULE("dicom");
  const Folder folder;
  const std::string whole = bytes_of(golden_dicom("explicit.dcm")), path = folder / "a.dcm";
  put(path, whole.substr(0, whole.size() - 20));
  EXPECT_NE(error_of(path).find("expected a complete DICOM file"), std::string::npos)
      << error_of(path);
  const auto replaced =
      [&](const std::string& name, const std::string& from, const std::string& to) {
        std::string bytes = bytes_of(golden_dicom(name));
        const std::size_t at = bytes.find(from);
        EXPECT_NE(at, std::string::npos);
        bytes.replace(at, to.size(), to);
        put(path, bytes);
        return error_of(path);
      };
  const std::string rows("\x28\0\x10\0US\2\0", 8);
  EXPECT_NE(replaced("explicit.dcm", rows, rows + "\xff\xff").find("expected"), std::string::npos);
  EXPECT_NE(replaced("rle_u8.dcm", rows, rows + "\x10\x27").find("expected"), std::string::npos);
  EXPECT_NE(replaced("jls_u8.dcm", rows, rows + "\x22").find("frame 0 holds 33 x 34 pixels"),
            std::string::npos);
  EXPECT_NE(
      replaced("j2k_u8.dcm", "1.2.840.10008.1.2.4.90", "1.2.840.10008.1.2.4.92").find("Multi"),
      std::string::npos)
      << error_of(path);
}

TEST(Dicom, DeepSequencesAndBombsEndQuickly) {
  SKIP_WITHOUT_MODULE("dicom");
  const Folder folder;
  const std::string path = folder / "a.dcm", whole = bytes_of(golden_dicom("implicit.dcm"));
  std::string deep = whole;
  const std::string sequence("\x08\0\x40\x11\xff\xff\xff\xff\xfe\xff\0\xe0\xff\xff\xff\xff", 16);
  for (int i = 0; i < 200000; ++i) deep += sequence;
  put(path, deep);
  EXPECT_NE(error_of(path).find("sequences within"), std::string::npos) << error_of(path);

  const std::string deflated = bytes_of(golden_dicom("deflated.dcm"));
  const auto word = static_cast<std::size_t>(static_cast<unsigned char>(deflated[140]));
  std::string zeros(std::size_t{40} << 20, '\0'), packed(std::size_t{1} << 20, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(zeros.data());
  stream.avail_in = static_cast<uInt>(zeros.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  put(path, deflated.substr(0, 144 + word) + packed);
  EXPECT_NE(error_of(path).find("of a type that DICOM does not have"), std::string::npos)
      << error_of(path);
}

// DCMTK would allocate the 1.7 GB that it takes the text for.
TEST(Dicom, ATypeThatDicomDoesNotHaveIsRefused) {
  SKIP_WITHOUT_MODULE("dicom");
  const Folder folder;
  std::string bytes = bytes_of(golden_dicom("explicit.dcm"));
  const std::size_t place = bytes.find("US", 300);  // of an element of the data set
  ASSERT_NE(place, std::string::npos);
  bytes.replace(place, 2, "LF");
  put(folder / "a.dcm", bytes);
  EXPECT_NE(error_of(folder / "a.dcm").find("of a type that DICOM does not have"),
            std::string::npos)
      << error_of(folder / "a.dcm");
}

}  // namespace
}  // namespace cytra::io
