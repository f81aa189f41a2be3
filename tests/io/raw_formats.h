#pragma once
// What the tests of NRRD and MetaImage share.
#include <cmath>

#include "io/image_folder.h"
#include "io/writer.h"
#include "tests/io/golden_cases.h"
#include "tests/io/hostile.h"
#include "tests/support/at_least.h"

namespace cytra::io {

inline std::string golden_raw(const std::string& name) {
  return std::string(CYTRA_SOURCE_DIR) + "/tests/golden/nrrd_metaimage/" + name;
}

inline void expect_affine(const Geometry& geometry, const nlohmann::json& entry) {
  ASSERT_EQ(geometry.has_affine(), entry.contains("affine"));
  for (std::size_t i = 0; i < 12 && geometry.has_affine(); ++i)
    EXPECT_NEAR(geometry.affine[i], entry["affine"][i].get<double>(), 1e-12) << i;
}

/// Of tests/golden/make_nrrd_metaimage.py, those with these endings.
inline void expect_golden(const std::string& ending, const std::string& other, int least) {
  std::ifstream file(golden_raw("cases.json"));
  int count = 0;
  for (const nlohmann::json& entry : nlohmann::json::parse(file)) {
    const auto name = entry["file"].get<std::string>();
    if (name.find(ending) == std::string::npos && name.find(other) == std::string::npos) continue;
    SCOPED_TRACE(entry.dump());
    ++count;
    const auto reader = open_image(golden_raw(name), selection_of(entry));
    const ImageInfo& info = reader->info();
    EXPECT_EQ(name_of(info.dtype), entry["dtype"].get<std::string>());
    EXPECT_EQ(nlohmann::json(info.shape), entry["shape"]);
    EXPECT_EQ(info.timepoints, entry.value("timepoints", 1));
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(info.geometry.spacing_um[i], entry["spacing_um"][i].get<double>(), 1e-9);
    expect_affine(info.geometry, entry);
    const Image whole = reader->read({});
    EXPECT_EQ(crc_of(whole), entry["crc32"].get<uint32_t>());
    const Region part{{info.shape[1] - 1, 1, 2}, {1, 2, 2}};
    EXPECT_EQ(reader->read(part).pixels, crop(whole, part, "").pixels);
    EXPECT_EQ(check_image(golden_raw(name), 1), "");
    EXPECT_TRUE(is_image_path(golden_raw(name)));
  }
  EXPECT_GE(count, least);
}

inline Image numbered_image(Dtype dtype, std::array<int64_t, 4> shape) {
  Image image;
  image.dtype = dtype;
  image.shape = shape;
  image.pixels.resize(image.bytes());
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<unsigned char>(i % 113);
  return image;
}

/// Written by rows and read again: values, type, sizes, geometry, and the file's name of voxels.
inline void expect_round_trip(const std::string& name) {
  const Folder folder;
  constexpr double kTurned[] = {0.4, -0.375, 0, -10, 0.3, 0.5, 0, 20.5, 0, 0, 2.5, 0.1};
  for (int type = 0; type < 8; ++type) {
    for (const auto& shape :
         {std::array<int64_t, 4>{1, 1, 5, 7}, {3, 1, 5, 7}, {1, 4, 5, 7}, {2, 4, 5, 7}}) {
      for (int kind = 0; kind < 4; ++kind) {  // nothing known, spacing, a plane in space, oblique
        Image image = numbered_image(static_cast<Dtype>(type), shape);
        if (kind > 0) image.geometry.spacing_um = {shape[1] > 1 ? 2500.0 : 0, 0.25, 0.125};
        if (kind == 2) {
          image.geometry.spacing_um = {1000, 625, 500};
          image.geometry.affine = {-0.5, 0, 0, 3, 0, -0.625, 0, 4, 0, 0, 1, 0};
        }
        if (kind == 3) {
          image.geometry.spacing_um = {2500, 625, 500};
          std::copy(std::begin(kTurned), std::end(kTurned), image.geometry.affine.begin());
        }
        const auto writer = create_image(folder / name, [&] {
          ImageInfo info;
          info.dtype = image.dtype;
          info.shape = image.shape;
          info.geometry = image.geometry;
          return info;
        }());
        for (int64_t row = 0; row < writer->rows(); ++row) {
          Region region;
          region.begin[shape[1] > 1 ? 0 : 1] = row;
          region.size[shape[1] > 1 ? 0 : 1] = 1;
          writer->write(crop(image, region, ""));
        }
        writer->finish();
        SCOPED_TRACE(::testing::Message() << name << type << kind << shape[0] << shape[1]);
        const Image read = read_image(folder / name);
        EXPECT_EQ(read.dtype, image.dtype);
        EXPECT_EQ(read.shape, image.shape);
        EXPECT_EQ(read.pixels, image.pixels);
        for (std::size_t i = 0; i < 3; ++i)
          EXPECT_NEAR(read.geometry.spacing_um[i], image.geometry.spacing_um[i], 1e-9);
        for (std::size_t i = 0; i < 12; ++i)
          EXPECT_NEAR(read.geometry.affine[i], image.geometry.affine[i], 1e-12) << i;
      }
    }
  }
  const FileSizeLimit full(20);
  const Image image = numbered_image(Dtype::u16, {1, 4, 100, 100});
  const std::size_t files = folder.files();
  EXPECT_THROW(
      {
        ImageInfo info;
        info.dtype = image.dtype;
        info.shape = image.shape;
        const auto writer = create_image(folder / ("full_" + name), info);
        writer->write(image);
        writer->finish();
      },
      IoError);
  EXPECT_EQ(folder.files(), files);
}

/// The refusal of a header with these voxels behind it; one line that says what was expected.
inline std::string refusal_of(const Folder& folder,
                              const std::string& name,
                              const std::string& text,
                              const std::string& voxels = std::string(24, '\1')) {
  put(folder / name, text + voxels);
  const std::string message = error_of(folder / name);
  EXPECT_EQ(wrong_message(folder / name, message), "") << text;
  return message;
}
inline void expect_refusal(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message << "\n" << part;
}

/// `format` makes a header that names a file of 24 voxels.
template <class Format>
void expect_files_below(const std::string& name, const Format& format) {
  namespace fs = std::filesystem;
  const Folder outside, folder;
  const std::string voxels(24, '\2'), path = folder / name;
  put(outside / "secret.raw", voxels);
  fs::create_directories(folder / "below");
  put(folder / "below/a.raw", voxels);
  fs::create_symlink(outside / "secret.raw", folder / "link.raw");
  fs::create_symlink(outside / "", folder / "way");
  fs::create_symlink("below/a.raw", folder / "within.raw");
  for (const char* right : {"below/a.raw", "./below/a.raw", "within.raw"}) {
    put(path, format(right));
    EXPECT_EQ(read_image(path).pixels, std::vector<unsigned char>(24, 2)) << right;
    EXPECT_EQ(other_files_of(path).size(), 1U);
    EXPECT_TRUE(fs::exists(other_files_of(path).at(0)));
  }
  const std::string secret = outside / "secret.raw";
  for (const std::string& wrong :
       {secret,
        std::string("../") + fs::path(outside / "").parent_path().filename().string() +
            "/secret.raw",
        std::string("below/../../x.raw"),
        std::string("link.raw"),
        std::string("way/secret.raw"),
        std::string("/dev/zero"),
        std::string("below")}) {
    put(path, format(wrong));
    EXPECT_NE(error_of(path), "") << wrong;
    EXPECT_EQ(wrong_message(wrong == "below" ? folder / "below" : path, error_of(path))
                  .find("ConfigError"),
              std::string::npos);
  }
  put(path, format("missing.raw"));
  expect_refusal(error_of(path), "missing.raw can't be found");
  EXPECT_EQ(other_files_of(path), (std::vector<std::string>{folder / "missing.raw"}));
}

}  // namespace cytra::io
