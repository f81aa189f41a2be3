// Forms, codes and units of NIfTI files as nibabel wrote them.
#include <cstring>

#include <gtest/gtest.h>

#include "base/files.h"
#include "io/reader.h"
#include "tests/support/tmp_dir.h"

namespace cytra::io {
namespace {

template <class T>
T field(const std::string& head, std::size_t at) {
  T value;
  std::memcpy(&value, head.data() + at, sizeof value);
  return value;
}

TEST(NiftiForms, AFileInPlaceOfAnotherSaysWhereItLiesAsThatDoes) {
  const std::string folder = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/geometry/";
  const test::TmpDir dir;
  for (const std::string name :
       {"both_same", "both_differ", "qform_only", "sform_only", "sheared", "none", "no_unit"}) {
    SCOPED_TRACE(name);
    Image image = read_image(folder + name + ".nii");
    EXPECT_EQ(image.geometry.is_placed(), name != "none");
    EXPECT_NEAR(image.geometry.spacing_um[0],
                2000 * (name == "qform_only"   ? 1e-3
                        : name == "sform_only" ? 1e3
                                               : 1),
                1e3 * 1e-3);
    write_nifti(dir / "out.nii", image);
    const std::string expected = read_file(folder + name + ".nii").substr(0, 348);
    const std::string written = read_file(dir / "out.nii").substr(0, 348);
    EXPECT_EQ(field<uint8_t>(written, 123), field<uint8_t>(expected, 123)) << "xyzt_units";
    EXPECT_EQ(field<int16_t>(written, 252), field<int16_t>(expected, 252)) << "qform_code";
    EXPECT_EQ(field<int16_t>(written, 254), field<int16_t>(expected, 254)) << "sform_code";
    const bool has_qform = field<int16_t>(expected, 252) > 0;
    for (std::size_t i = has_qform ? 0 : 1; i < 4; ++i) {
      if (name == "sheared") break;  // pixdim is the sform's
      EXPECT_NEAR(field<float>(written, 76 + 4 * i), field<float>(expected, 76 + 4 * i), 1e-5)
          << "pixdim " << i;
    }
    for (std::size_t i = 0; i < 6 && has_qform; ++i)
      EXPECT_NEAR(field<float>(written, 256 + 4 * i), field<float>(expected, 256 + 4 * i), 1e-5)
          << "quaternion and offset " << i;
    for (std::size_t i = 0; i < 12 && field<int16_t>(expected, 254) > 0; ++i)
      EXPECT_NEAR(field<float>(written, 280 + 4 * i), field<float>(expected, 280 + 4 * i), 1e-5)
          << "sform " << i;
    const Image again = read_image(dir / "out.nii");
    for (std::size_t i = 0; i < 12; ++i)
      EXPECT_NEAR(again.geometry.affine[i], image.geometry.affine[i], 1e-4) << i;
  }
}

TEST(NiftiForms, BothFollowARegion) {
  const std::string path = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/geometry/both_differ.nii";
  Region region;
  region.begin = {1, 2, 1};
  const Image whole = read_image(path), part = open_image(path)->read(region);
  for (const auto member : {&Geometry::affine, &Geometry::qform_affine}) {
    const auto &before = whole.geometry.*member, &after = part.geometry.*member;
    for (std::size_t row = 0; row < 12; row += 4)
      EXPECT_NEAR(after[row + 3],
                  before[row + 3] + before[row] + 2 * before[row + 1] + before[row + 2],
                  1e-9);
  }
}

TEST(NiftiForms, AGuessThatNoLongerHoldsIsWritten) {
  const test::TmpDir dir;
  Image image = read_image(std::string(CYTRA_SOURCE_DIR) + "/tests/golden/geometry/none.nii");
  image.geometry.affine[3] += 1;  // as a crop moves it
  write_nifti(dir / "out.nii", image);
  const Image again = read_image(dir / "out.nii");
  EXPECT_EQ(again.geometry.sform, 1);
  EXPECT_NEAR(again.geometry.affine[3], image.geometry.affine[3], 1e-5);
}

}  // namespace
}  // namespace cytra::io
