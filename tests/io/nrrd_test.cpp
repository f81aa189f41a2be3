#include "tests/io/raw_formats.h"

namespace cytra::io {
namespace {

std::string nrrd_of(const std::string& fields, const std::string& encoding = "raw") {
  return "NRRD0004\ntype: uchar\ndimension: 3\nsizes: 4 3 2\nencoding: " + encoding + "\n" +
         fields + "\n";
}

TEST(Nrrd, IsReadAsItsWritersMeant) {
  expect_golden(".nrrd", ".nhdr", 35);
}

TEST(Nrrd, IsWrittenWhole) {
  for (const char* name : {"a.nrrd", "a.nhdr"}) expect_round_trip(name);
}

TEST(Nrrd, NamesFilesBelowItsFolder) {
  expect_files_below("a.nhdr",
                     [](const std::string& file) { return nrrd_of("data file: " + file + "\n"); });
  expect_files_below("a.nhdr",
                     [](const std::string& file) { return nrrd_of("data file: LIST\n" + file); });
  EXPECT_EQ(other_files_of(golden_raw("pattern.nhdr")),
            (std::vector<std::string>{
                golden_raw("slice00.raw"), golden_raw("slice01.raw"), golden_raw("slice02.raw")}));
  EXPECT_EQ(other_files_of(golden_raw("u1.nrrd")), std::vector<std::string>());
}

TEST(Nrrd, UnitsAndSpaces) {
  const Folder folder;
  const auto info = [&](const std::string& fields) {
    put(folder / "a.nrrd", nrrd_of(fields) + std::string(24, '\1'));
    return open_image(folder / "a.nrrd")->info();
  };
  const auto spacing = [&](const std::string& fields) { return info(fields).geometry.spacing_um; };
  using Spacing = std::array<double, 3>;
  EXPECT_EQ(spacing("spacings: 1 2 3\n"), (Spacing{3000, 2000, 1000}));
  EXPECT_EQ(spacing("spacings: 1 nan 3\n"), (Spacing{3000, 0, 1000}));
  EXPECT_EQ(spacing("spacings: 1 2 -3\nunits: \"um\" \"um\" \"um\"\n"), (Spacing{3, 2, 1}));
  const std::string directions = "space directions: (1, 0, 0) (0, 2, 0) (0, 0, 3)\n";
  EXPECT_EQ(spacing("space dimension: 3\nspace units: \"microns\" \"microns\" \"microns\"\n" +
                    directions),
            (Spacing{3, 2, 1}));
  EXPECT_EQ(info("space: RAS\nspace origin: (1,2,3)\n" + directions).geometry.affine,
            (std::array<double, 12>{1, 0, 0, 1, 0, 2, 0, 2, 0, 0, 3, 3}));
  EXPECT_FALSE(
      info("space: RAS\nspace directions: (1,0,0) (2,0,0) (0,0,1)\n").geometry.has_affine());
  // Axes of other kinds, wherever they lie
  EXPECT_EQ(info("kinds: RGB-color domain domain\n").shape, (std::array<int64_t, 4>{4, 1, 2, 3}));
  EXPECT_EQ(info("kinds: domain list domain\n").shape, (std::array<int64_t, 4>{3, 1, 2, 4}));
  EXPECT_EQ(info("space dimension: 2\nspace directions: (1,0) (0,1) none\n").shape,
            (std::array<int64_t, 4>{2, 1, 3, 4}));
  EXPECT_EQ(open_image(folder / "a.nrrd", {0, 0, -1, {1}})->read({}).pixels,
            std::vector<unsigned char>(12, 1));
  put(folder / "a.nrrd", nrrd_of("kinds: domain domain time\n") + std::string(24, '\1'));
  EXPECT_EQ(open_image(folder / "a.nrrd", {0, 0, 1})->info().timepoints, 2);
}

TEST(Nrrd, DamagedHeadersAreRefused) {
  const Folder folder;
  const auto expect = [&](const std::string& text, const std::string& part) {
    expect_refusal(refusal_of(folder, "a.nrrd", text), part);
  };
  expect("NRRD0004\n", "has the line '???");
  expect_refusal(refusal_of(folder, "a.nrrd", "NRRD0004\ntype: uchar\n", ""),
                 "has no end of its header");
  expect("NRRD0004\ntype: uchar\n\n", "has 0 sizes");
  for (const char* encoding : {"hex", "bzip2", "", "x\ty"})
    expect(nrrd_of("", encoding), "with the encoding '");
  expect(nrrd_of("type: block\n"), "of the type 'block'");
  expect(nrrd_of("dimension: 2\n"), "has 3 sizes");
  for (const char* sizes :
       {"4 3 0", "4 3 -2", "4611686018427387904 4 2", "1 1 4611686018427387904"})
    expect(nrrd_of("sizes: " + std::string(sizes) + "\n"), "expected");
  expect(nrrd_of("sizes: 4 3 x\n"), "sizes is '4 3 x', expected numbers");
  expect(nrrd_of("sizes: 4 3 3\n"), "24 bytes of voxels in a.nrrd, where its header says 36");
  expect(nrrd_of("sizes: 99999 99999 99\n"), "expected");
  expect(nrrd_of("kinds: domain domain\n"), "another number of axes");
  expect(nrrd_of("kinds: domain vector list\n"), "has the axes 1 and 2 of others");
  expect(nrrd_of("space directions: (1,0) (0,1\n"), "has the vectors '");
  expect(nrrd_of("space directions: (1,0,0,0,0) none none\n"), "vectors of 5 numbers");
  expect(nrrd_of("line skip: 100000\n"), "skips more lines than there are");
  expect(nrrd_of("byte skip: 9223372036854775807\n"), "has a byte skip of");
  expect(nrrd_of("byte skip: 10\n"), "14 bytes of voxels");
  expect(nrrd_of("byte skip: -1\n", "gzip"), "in compressed data");
  expect(nrrd_of("", "gzip"), "its compressed data is damaged");
  expect(nrrd_of("", "ascii"), "number 0 of its text");
  expect(nrrd_of("data file: LIST\n"), "0 files for 24 bytes");
  expect(nrrd_of("data file: a%s.raw 1 2 1\n"), "expected files as NAME%03d.raw");
  expect(nrrd_of("data file: a%d.raw 1 2000000000 1\n"), "expected files as NAME%03d.raw");
  expect(nrrd_of("data file: a%999999d.raw 1 2 1\n"), "expected files as NAME%03d.raw");
  expect(nrrd_of("no colon\n"), "has the line 'no colon'");
  expect("NRRD0004\n" + std::string(5 << 20, 'x'), "more than 4 MB");
}

TEST(Nrrd, CompressedDataThatIsCutOrChanged) {
  const Folder folder;
  const std::string whole = bytes_of(golden_raw("oblique.nrrd"));
  put(folder / "a.nrrd", whole.substr(0, whole.size() - 6));
  expect_refusal(error_of(folder / "a.nrrd"), "its compressed data ends too early");
  std::string changed = whole;
  changed[changed.size() - 6] ^= 1;  // the checksum
  put(folder / "a.nrrd", changed);
  expect_refusal(error_of(folder / "a.nrrd"), "its compressed data is damaged");
}

}  // namespace
}  // namespace cytra::io
