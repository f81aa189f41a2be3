// DICOM segmentations as they are written; tests/golden/check_dicom.py has highdicom read others.
#include <cstdlib>

#include "io/pixels/stored.h"
#include "io/writer.h"
#include "tests/io/golden_cases.h"
#include "tests/io/module_fixture.h"

namespace cytra::io {
namespace {

namespace fs = std::filesystem;

std::string golden_series(const std::string& name) {
  return std::string(CYTRA_SOURCE_DIR) + "/tests/golden/dicom/" + name;
}

/// The values of an image as labels: `label_of(channel, value)`.
Image labels_of(const Image& image, int64_t channels, const auto& label_of) {
  Image labels;
  labels.dtype = Dtype::u16;
  labels.shape = {channels, image.shape[1], image.shape[2], image.shape[3]};
  labels.geometry = image.geometry;
  labels.pixels.resize(labels.bytes());
  auto* into = reinterpret_cast<uint16_t*>(labels.pixels.data());
  const auto count = static_cast<std::size_t>(image.count() / image.shape[0]);
  with_type(image.dtype, [&](auto example) {
    const auto* from = reinterpret_cast<const decltype(example)*>(image.pixels.data());
    for (int64_t c = 0; c < channels; ++c) {
      for (std::size_t i = 0; i < count; ++i)
        *into++ = static_cast<uint16_t>(label_of(c, std::abs(static_cast<int64_t>(from[i]))));
    }
  });
  return labels;
}
/// Labels below `count`, with some of each in every plane.
Image few_labels(const Image& image, int64_t count) {
  return labels_of(image, 1, [&](int64_t, int64_t value) { return value * 7 % 11 % count; });
}

void write_labels(const std::string& path, const Image& labels, const OutputOptions& options) {
  ImageInfo info;
  info.dtype = labels.dtype;
  info.shape = labels.shape;
  info.geometry = labels.geometry;
  const auto writer = create_image(path, info, options);
  const std::size_t axis = labels.shape[1] > 1 ? 0 : 1;
  Region region;
  region.size[axis] = 1;
  for (int64_t& row = region.begin[axis]; row < writer->rows(); ++row)
    writer->write(crop(labels, region, path));
  writer->finish();
}

std::string error_of_writing(const Image& labels, const OutputOptions& options) {
  const Folder folder;
  const std::string message =
      message_of<DataError>([&] { write_labels(folder / "a.dcm", labels, options); });
  EXPECT_EQ(folder.files(), 0U) << message;
  return message;
}

TEST(DicomSegmentation, OneSegmentIsReadAsAMask) {
  SKIP_WITHOUT_MODULE("dicom");
  for (const char* name : {"axial",
                           "sagittal",
                           "oblique",
                           "enhanced_implicit.dcm",
                           "un.dcm",
                           "dose_down.dcm",
                           "big_u8_odd.dcm",
                           "rle_rgb.dcm"}) {
    SCOPED_TRACE(name);
    const Folder folder;
    OutputOptions options;
    options.source = golden_series(name);
    const Image labels = few_labels(read_image(options.source), 2);
    write_labels(folder / "a.seg.dcm", labels, options);
    EXPECT_EQ(folder.files(), 1U);
    const Image read = read_image(folder / "a.seg.dcm");
    ASSERT_EQ(read.shape, labels.shape);
    for (std::size_t i = 0; i < read.pixels.size(); ++i)
      ASSERT_EQ(read.pixels[i], labels.pixels[2 * i]) << i;
    for (std::size_t i = 0; i < 12; ++i)
      EXPECT_NEAR(read.geometry.affine[i], labels.geometry.affine[i], 1e-9) << i;
    write_labels(folder / "b.seg.dcm", labels, options);
    EXPECT_EQ(bytes_of(folder / "a.seg.dcm"), bytes_of(folder / "b.seg.dcm"));
    EXPECT_NE(bytes_of(folder / "a.seg.dcm").find("2.25."), std::string::npos);
  }
}

TEST(DicomSegmentation, SeveralSegmentsAreNoImage) {
  SKIP_WITHOUT_MODULE("dicom");
  const Folder folder;
  OutputOptions options;
  options.source = golden_series("axial");
  write_labels(folder / "a.dcm", few_labels(read_image(options.source), 4), options);
  const std::string message = error_of(folder / "a.dcm");
  EXPECT_NE(message.find("a DICOM segmentation of 3 segments"), std::string::npos) << message;
}

TEST(DicomSegmentation, WhatIsNoSeriesOrInOtherVoxelsIsRefused) {
  SKIP_WITHOUT_MODULE("dicom");
  OutputOptions options;
  options.source = golden_series("axial");
  const Image labels = few_labels(read_image(options.source), 4);
  Image moved = labels, turned = labels;
  moved.geometry.affine[3] += 0.5;
  EXPECT_NE(error_of_writing(moved, options).find("predict.original_grid=true"), std::string::npos);
  for (const std::size_t i : {0, 4, 8}) turned.geometry.affine[i] *= -1;
  EXPECT_NE(error_of_writing(turned, options).find("other voxels"), std::string::npos);
  EXPECT_NE(error_of_writing(crop(labels, {{1, 0, 0}, {4, -1, -1}}, ""), options)
                .find("predict.original_grid=true"),
            std::string::npos);
  options.source = "";
  EXPECT_NE(error_of_writing(labels, options).find("a.dcm: no DICOM"), std::string::npos);
  options.source = golden_series("../npy.npy");
  EXPECT_NE(error_of_writing(labels, options).find("of a DICOM series alone"), std::string::npos);
  options.source = golden_series("two_series");
  EXPECT_NE(error_of_writing(labels, options).find("2 DICOM series"), std::string::npos);
}

TEST(DicomSegmentation, ManyObjectsAreRefused) {
  SKIP_WITHOUT_MODULE("dicom");
  OutputOptions options;
  options.source = golden_series("axial");
  const Image image = read_image(options.source);
  Image labels = few_labels(image, 2);
  labels.dtype = Dtype::u32;
  labels.pixels.assign(labels.bytes(), 0);
  labels.pixels[2] = 1;  // 65536
  const std::string message = error_of_writing(labels, options);
  EXPECT_NE(message.find("label 65536, and segments have numbers to 65535"), std::string::npos)
      << message;
}

TEST(DicomSegmentation, FullDiskLeavesNothing) {
  SKIP_WITHOUT_MODULE("dicom");
  const Folder folder;
  OutputOptions options;
  options.source = golden_series("axial");
  const Image labels = few_labels(read_image(options.source), 4);
  for (const std::size_t limit : {0, 100, 5'000}) {
    const FileSizeLimit full(limit);
    EXPECT_THROW(write_labels(folder / "a.dcm", labels, options), IoError) << limit;
  }
  EXPECT_EQ(folder.files(), 0U);
}

/// For tests/golden/check_dicom.py: a segmentation NAME.seg.dcm of each series NAME in the folder
/// CYTRA_WRITE_SAMPLES, whose values are the labels.
TEST(DicomSegmentation, DISABLED_WriteSamples) {
  const char* folder = std::getenv("CYTRA_WRITE_SAMPLES");
  ASSERT_NE(folder, nullptr);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    OutputOptions options;
    options.source = entry.path().string();
    options.are_objects = name.starts_with("objects");
    if (name.starts_with("plane")) options.selection.plane = 1;
    if (name.starts_with("times")) options.selection.timepoint = 1;
    if (!name.starts_with("unnamed"))
      options.class_name = [](int64_t number) { return "t\xc3\xaate " + std::to_string(number); };
    const Image image = read_image(options.source, options.selection);
    const Image labels = name.starts_with("channels")
                             ? labels_of(image, 3, [](int64_t c, int64_t v) { return v >> c & 1; })
                             : labels_of(image, 1, [](int64_t, int64_t v) { return v; });
    write_labels(options.source + ".seg.dcm", labels, options);
  }
}

}  // namespace
}  // namespace cytra::io
