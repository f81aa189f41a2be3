#include "io/grey.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/tmp_dir.h"

namespace cytra::io {
namespace {

Image colours(int64_t channels, Dtype dtype, bool are_equal, std::size_t odd = 0) {
  Image image;
  image.dtype = dtype;
  image.shape = {channels, 1, 9, 11};
  image.pixels.resize(image.bytes());
  const std::size_t plane = image.bytes() / static_cast<std::size_t>(channels);
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = i / plane == 3 ? 255 : static_cast<unsigned char>(i % plane * 7);
  if (!are_equal) image.pixels[odd == 0 ? 2 * plane - 1 : odd] ^= 1;
  return image;
}

TEST(Grey, IsWhatHasEqualChannels) {
  for (const Dtype dtype : {Dtype::u8, Dtype::u16, Dtype::f32}) {
    for (const int64_t channels : {3, 4}) {
      Image grey = colours(channels, dtype, true), colour = colours(channels, dtype, false);
      const Image before = colour;
      EXPECT_TRUE(make_grey(grey, "a.png"));
      EXPECT_EQ(grey.shape, (std::array<int64_t, 4>{1, 1, 9, 11}));
      EXPECT_EQ(grey.pixels.size(), grey.bytes());
      EXPECT_FALSE(make_grey(colour, "a.png")) << "one pixel differs";
      EXPECT_EQ(colour.pixels, before.pixels);
    }
    Image alpha = colours(4, dtype, false, 99 * size_of(dtype) * 3 + 50 * size_of(dtype));
    EXPECT_FALSE(make_grey(alpha, "a.png")) << "the alpha tells something";
  }
  for (const int64_t channels : {1, 2, 5}) {
    Image other = colours(channels, Dtype::u8, true);
    EXPECT_FALSE(make_grey(other, "a.tif"));
  }
}

TEST(Grey, RegionsAreGreyOrRefused) {
  const test::TmpDir dir;
  write_ome_tiff(dir / "grey.tif", colours(3, Dtype::u16, true));
  write_ome_tiff(dir / "colour.tif", colours(3, Dtype::u16, false));
  const auto open = [&](const std::string& name) {
    return grey_of(open_image(dir / name), dir / name);
  };
  const Region top{{0, 0, 0}, {1, 4, 11}}, bottom{{0, 4, 0}, {1, 5, 11}};
  EXPECT_EQ(open("grey.tif")->info().shape[0], 1);
  EXPECT_EQ(open("grey.tif")->read(bottom).shape, (std::array<int64_t, 4>{1, 1, 5, 11}));
  EXPECT_EQ(open("colour.tif")->read(top).shape[0], 1) << "no colour there";
  EXPECT_THROW(open("colour.tif")->read(bottom), DataError);
}

}  // namespace
}  // namespace cytra::io
