#include "io/row_journal.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/tmp_dir.h"

namespace cytra::io {
namespace {

Image rows_of(int64_t first, int64_t count) {
  Image image;
  image.dtype = Dtype::u16;
  image.shape = {2, 1, count, 5};
  image.pixels.resize(image.bytes());
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<unsigned char>(static_cast<std::size_t>(first) * 31 + i);
  return image;
}

/// The rows that are in it, checked.
int64_t replayed(const RowJournal& journal, int64_t first) {
  journal.replay([&](int64_t at, const Image& rows) {
    EXPECT_EQ(at, first);
    const Image expected = rows_of(at, rows.shape[2]);
    EXPECT_EQ(rows.shape, expected.shape);
    EXPECT_EQ(rows.dtype, expected.dtype);
    EXPECT_EQ(rows.pixels, expected.pixels);
    first += rows.shape[2];
  });
  return first;
}

TEST(RowJournal, GoesOnBehindWhatIsThere) {
  const test::TmpDir dir;
  const std::string path = dir / "a.rows";
  {
    RowJournal journal(path, "weights 1", 10);
    EXPECT_EQ(journal.next(), 10);
    journal.append(rows_of(10, 3), 3);
    journal.append(rows_of(13, 1), 1);
  }
  RowJournal journal(path, "weights 1", 10);
  EXPECT_EQ(journal.next(), 14);
  journal.append(rows_of(14, 2), 2);
  EXPECT_EQ(replayed(journal, 10), 16);
}

TEST(RowJournal, BeginsAnewForOtherWeightsOrRows) {
  const test::TmpDir dir;
  const std::string path = dir / "a.rows";
  { RowJournal(path, "weights 1").append(rows_of(0, 3), 3); }
  EXPECT_EQ(RowJournal(path, "weights 2").next(), 0);
  { RowJournal(path, "weights 2").append(rows_of(0, 3), 3); }
  EXPECT_EQ(RowJournal(path, "weights 2", 7).next(), 7);
}

TEST(RowJournal, KeepsTheWholeBlocksOfOneThatWasCutOrDamaged) {
  const test::TmpDir dir;
  const std::string path = dir / "a.rows";
  std::vector<std::uintmax_t> sizes;
  {
    RowJournal journal(path, "w");
    for (int64_t i = 0; i < 4; ++i) {
      journal.append(rows_of(2 * i, 2), 2);
      sizes.push_back(std::filesystem::file_size(path));
    }
  }
  std::filesystem::resize_file(path, sizes[3] - 1);
  {
    RowJournal journal(path, "w");
    EXPECT_EQ(journal.next(), 6);
    EXPECT_EQ(replayed(journal, 0), 6);
  }
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(sizes[1] - 3));
    file.put('\x55');
  }
  RowJournal journal(path, "w");
  EXPECT_EQ(journal.next(), 2);
  EXPECT_EQ(replayed(journal, 0), 2);
}

}  // namespace
}  // namespace cytra::io
