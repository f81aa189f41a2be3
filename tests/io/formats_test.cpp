// A format needs one file: here it is one of a test.
#include "io/formats.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "base/files.h"
#include "io/image_folder.h"
#include "io/input_file.h"
#include "io/pixels/plain_writer.h"
#include "tests/io/fixture.h"

namespace cytra::io {
namespace {

/// "SQUARE", a byte that gives the side, and pixels.
class SquareImage final : public ImageReader {
 public:
  explicit SquareImage(const std::string& path) : bytes_(read_input(path)) {
    info_.shape[2] = info_.shape[3] = bytes_.at(6);
  }
  Image read(const Region&) const override {
    Image image;
    image.shape = info_.shape;
    image.pixels.assign(bytes_.begin() + 7, bytes_.end());
    return image;
  }

 private:
  std::string bytes_;
};

const bool square_is_known = add_format("test_square", [](Format& square) {
  square.title = "square of a test";
  square.rank = 89;
  square.endings = {".square", ".one.square"};
  square.probe = [](const std::string& head, const std::string&) {
    return head.compare(0, 6, "SQUARE") == 0;
  };
  square.open = [](const std::string& path, const Selection&) -> std::unique_ptr<ImageReader> {
    return std::make_unique<SquareImage>(path);
  };
  square.names_own_axes = true;
  square.other_files = [](const std::string& path) {
    return std::vector<std::string>{path + ".colours"};
  };
  square.create = [](const std::string& path,
                     const ImageInfo& info,
                     const OutputOptions&) -> std::unique_ptr<ImageWriter> {
    return std::make_unique<PlainWriter>(
        path, info, std::string("SQUARE") + static_cast<char>(info.shape[2]));
  };
  square.written_endings = {".square"};
  square.output_ending = ".square";
  square.fits = [](const ImageInfo& info) { return info.shape[2] == info.shape[3]; };
  square.holds = "as many rows as columns";
  square.written_as = "test_square";
});

TEST(Formats, OneFileAddsOne) {
  ASSERT_TRUE(square_is_known);
  const Folder folder;
  const std::string path = folder / "a.One.Square";
  ImageInfo info;
  info.shape = {1, 1, 4, 4};
  const auto writer = create_image(path, info);
  Image image;
  image.shape = info.shape;
  image.pixels.assign(16, 7);
  writer->write(image);
  writer->finish();
  EXPECT_EQ(read_image(path).pixels, image.pixels);
  EXPECT_TRUE(is_image_path(path));
  EXPECT_EQ(list_images(folder / ""), (std::vector<std::string>{path}));
  EXPECT_EQ(stem_of(path), "a");
  EXPECT_EQ(other_files_of(path), (std::vector<std::string>{path + ".colours"}));
  EXPECT_EQ(format_of_name(path)->written_as, "test_square");
  const auto said = [&](const Selection& selection) {
    return message_of<DataError>([&] { read_image(path, selection); });
  };
  EXPECT_NE(said({0, 0, 0, {}, "YX"}).find("square of a test and video name their own"),
            std::string::npos);
  const std::vector<std::string> choices = output_choices();
  EXPECT_EQ(choices[0], "auto");
  EXPECT_NE(std::find(choices.begin(), choices.end(), "test_square"), choices.end());
  EXPECT_NE(kinds_read().find("square of a test"), std::string::npos);
  put(folder / "b", "no image");
  EXPECT_NE(message_of<DataError>([&] { read_image(folder / "b"); }).find(", square of a test, "),
            std::string::npos);
  EXPECT_NE(message_of<ConfigError>([&] { create_image(folder / "b", info); }).find(".square"),
            std::string::npos);
  EXPECT_EQ(output_names([](const Format& one) { return one.fits != nullptr; }),
            "dicom, png or test_square");
}

TEST(Formats, AreDistinctAndWhole) {
  EXPECT_THROW(add_format("png", [](Format&) {}), std::logic_error);
  EXPECT_THROW(add_format("test_other", [](Format& other) { other.endings = {".tif"}; }),
               std::logic_error);
  int rank = -1;
  for (const Format& format : formats()) {
    SCOPED_TRACE(format.name);
    EXPECT_GE(format.rank, rank) << "by rank";
    rank = format.rank;
    EXPECT_EQ(find_format(format.name), &format);
    EXPECT_TRUE(format.probe != nullptr && format.open != nullptr && !format.title.empty());
    EXPECT_FALSE(format.probe("", "no such file"));
    EXPECT_EQ(format.create != nullptr, !format.written_endings.empty());
    EXPECT_EQ(format.create != nullptr, !format.output_ending.empty());
    EXPECT_EQ(format.fits != nullptr, !format.holds.empty());
    const Format* written = find_format(format.written_as);
    EXPECT_TRUE(written != nullptr && written->create != nullptr);
    for (const std::string& ending : format.endings) EXPECT_EQ(stem_of("in/a.b" + ending), "a.b");
  }
  EXPECT_EQ(stem_of("in/series/"), "series");
  EXPECT_EQ(stem_of("in/.png"), ".png");
  EXPECT_EQ(stem_of("A.OME.TIFF"), "A");
  EXPECT_EQ(stem_of("a.czi"), "a.czi");
}

}  // namespace
}  // namespace cytra::io
