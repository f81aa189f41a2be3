#include "io/objects/coco_rle.h"

#include <array>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"

namespace cytra::io {
namespace {

struct RleCase {
  int64_t height, width;
  std::vector<unsigned char> mask;
  std::string counts;
  int64_t area;
  std::array<int64_t, 4> box;
};

std::vector<RleCase> rle_cases() {
  std::vector<RleCase> cases;
  for (const auto& one : nlohmann::json::parse(
           read_file(std::string(CYTRA_SOURCE_DIR) + "/tests/golden/coco_rle.json"))) {
    const std::vector<std::string> rows = one.at("mask");
    RleCase& made = cases.emplace_back();
    made.height = static_cast<int64_t>(rows.size());
    made.width = static_cast<int64_t>(rows.at(0).size());
    for (const std::string& row : rows)
      for (const char pixel : row) made.mask.push_back(pixel == '1' ? 1 : 0);
    made.counts = one.at("counts");
    made.area = one.at("area");
    made.box = one.at("bbox");
  }
  return cases;
}

TEST(CocoRle, EqualsPycocotools) {
  const std::vector<RleCase> cases = rle_cases();
  ASSERT_GE(cases.size(), 12U);
  for (const RleCase& one : cases) {
    SCOPED_TRACE(one.counts);
    const CocoRle rle = encode_rle(one.mask.data(), one.height, one.width);
    EXPECT_EQ(rle.text(), one.counts);
    EXPECT_EQ(rle.area(), one.area);
    EXPECT_EQ(rle.box(), one.box);
    EXPECT_EQ(parse_rle(one.counts, one.height, one.width).counts, rle.counts);
    std::vector<uint16_t> painted(one.mask.size(), 7);
    rle.paint(9, painted.data());
    for (std::size_t i = 0; i < painted.size(); ++i) EXPECT_EQ(painted[i], one.mask[i] ? 9 : 7);
  }
}

TEST(CocoRle, APartLiesWhereItIsPlaced) {
  for (const RleCase& one : rle_cases()) {
    SCOPED_TRACE(one.counts);
    for (const auto& [top, left, below, right] :
         {std::array<int64_t, 4>{0, 0, 0, 0}, {2, 3, 1, 0}, {0, 2, 5, 4}, {3, 0, 0, 0}}) {
      const int64_t rows = top + one.height + below, columns = left + one.width + right;
      std::vector<unsigned char> whole(static_cast<std::size_t>(rows * columns));
      for (int64_t y = 0; y < one.height; ++y)
        for (int64_t x = 0; x < one.width; ++x)
          whole[static_cast<std::size_t>((top + y) * columns + left + x)] =
              one.mask[static_cast<std::size_t>(y * one.width + x)];
      const CocoRle part = encode_rle(one.mask.data(), one.height, one.width);
      EXPECT_EQ(part.placed(top, left, rows, columns).counts,
                encode_rle(whole.data(), rows, columns).counts);
    }
  }
}

TEST(CocoRle, RefusesWhatIsNone) {
  EXPECT_NO_THROW(parse_rle("06", 2, 3));
  EXPECT_THROW(parse_rle("06", 2, 4), DataError);        // fewer pixels
  EXPECT_THROW(parse_rle("06", 2, 2), DataError);        // more
  EXPECT_THROW(parse_rle("0T", 2, 3), DataError);        // ends within a number
  EXPECT_THROW(parse_rle("\x7f\x7f", 2, 3), DataError);  // no letter of it
  EXPECT_THROW(parse_rle("oooooooooooooooo", 2, 3), DataError);
}

}  // namespace
}  // namespace cytra::io
