#include "tests/io/raw_formats.h"

namespace cytra::io {
namespace {

std::string meta_of(const std::string& fields, const std::string& file = "LOCAL") {
  return "ObjectType = Image\nNDims = 3\nDimSize = 4 3 2\nElementType = MET_UCHAR\n" + fields +
         "ElementDataFile = " + file + "\n";
}

TEST(MetaImage, IsReadAsItsWritersMeant) {
  expect_golden(".mha", ".mhd", 30);
}

TEST(MetaImage, IsWrittenWhole) {
  for (const char* name : {"a.mha", "a.mhd"}) expect_round_trip(name);
}

TEST(MetaImage, NamesFilesBelowItsFolder) {
  expect_files_below("a.mhd", [](const std::string& file) { return meta_of("", file); });
  expect_files_below("a.mhd", [](const std::string& file) { return meta_of("", "LIST\n" + file); });
  EXPECT_EQ(other_files_of(golden_raw("list.mhd")),
            (std::vector<std::string>{
                golden_raw("slice02.raw"), golden_raw("slice01.raw"), golden_raw("slice00.raw")}));
  EXPECT_EQ(other_files_of(golden_raw("u1.mha")), std::vector<std::string>());
}

TEST(MetaImage, PlaceAndUnits) {
  const Folder folder;
  const auto geometry = [&](const std::string& fields) {
    put(folder / "a.mha", meta_of(fields) + std::string(24, '\1'));
    return open_image(folder / "a.mha")->info().geometry;
  };
  using Spacing = std::array<double, 3>;
  EXPECT_EQ(geometry("").spacing_um, (Spacing{0, 0, 0}));
  EXPECT_EQ(geometry("ElementSpacing = 1 2 3\n").spacing_um, (Spacing{3000, 2000, 1000}));
  EXPECT_EQ(geometry("ElementSpacing = 1 2 3\nDistanceUnits = um\n").spacing_um,
            (Spacing{3, 2, 1}));
  EXPECT_FALSE(geometry("ElementSpacing = 1 2 3\n").has_affine());
  EXPECT_EQ(geometry("Offset = 1 2 3\n").affine,
            (std::array<double, 12>{-1, 0, 0, -1, 0, -1, 0, -2, 0, 0, 1, 3}));
  EXPECT_FALSE(geometry("TransformMatrix = 1 0 0 1 0 0 0 0 1\n").has_affine());
}

TEST(MetaImage, DamagedHeadersAreRefused) {
  const Folder folder;
  const auto expect = [&](const std::string& text, const std::string& part) {
    expect_refusal(refusal_of(folder, "a.mha", text), part);
  };
  expect("ObjectType = Image\nNDims = 3\n", "expected");
  expect("ObjectType = Tube\nNDims = 3\nImage = 1\nElementDataFile = LOCAL\n",
         "is of the type 'Tube'");
  expect(meta_of("NDims = 2\n"), "has 3 sizes");
  expect(meta_of("NDims = 99999999999999999999\n"), "expected numbers");
  for (const char* sizes :
       {"4 3 0", "4 3 -2", "4611686018427387904 4 2", "1 1 4611686018427387904"})
    expect(meta_of("DimSize = " + std::string(sizes) + "\n"), "expected");
  expect(meta_of("DimSize = 4 3 3\n"), "24 bytes of voxels in a.mha, where its header says 36");
  expect(meta_of("ElementType = MET_STRING\n"), "of the type 'MET_STRING'");
  expect(meta_of("ElementNumberOfChannels = 0\n"), "expected");
  expect(meta_of("ElementNumberOfChannels = -1\n"), "expected");
  expect(meta_of("ElementSpacing = 1 1\n"), "2 numbers of ElementSpacing");
  expect(meta_of("TransformMatrix = 1 0 0\n"), "3 numbers of TransformMatrix");
  expect(meta_of("HeaderSize = -2\n"), "has a HeaderSize of -2");
  expect(meta_of("HeaderSize = 1000000\n"), "0 bytes of voxels");
  expect(meta_of("CompressedData = True\n"), "its compressed data is damaged");
  expect(meta_of("CompressedData = True\nHeaderSize = -1\n"), "has a HeaderSize of -1");
  expect(meta_of("CompressedData = True\nBinaryData = False\n"), "is compressed text");
  expect(meta_of("BinaryData = False\n"), "number 0 of its text");
  expect(meta_of("", "LIST\n"), "expected");
  const std::string ends = meta_of("", "LIST");
  expect_refusal(refusal_of(folder, "a.mha", ends.substr(0, ends.size() - 1), ""),
                 "0 files for 24 bytes");
  expect(meta_of("", "a%03d.raw 1 99999999 1"), "expected files as NAME%03d.raw");
  expect(meta_of("a line\n"), "has the line 'a line'");
}

}  // namespace
}  // namespace cytra::io
