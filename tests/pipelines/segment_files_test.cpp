#include "pipelines/segment_files.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/files.h"
#include "config/json.h"
#include "io/csv.h"
#include "io/reader.h"
#include "tests/support/tmp_dir.h"

namespace cytra::pipelines {
namespace {

SegmentedImage segmented(const std::string& name, const std::string& content) {
  const std::vector<unsigned char> left{1, 1, 0, 1, 1, 0}, right{0, 1, 1, 0, 1, 1};
  SegmentedImage image;
  image.input = {"data/" + name + ".png", name, "front"};
  image.content = content;
  image.height = 2;
  image.width = 3;
  image.objects = {{{0, 0, 2, 2, 0.9F, 0}, io::encode_rle(left.data(), 2, 3)},
                   {{1, 0, 3, 2, 0.25F, 4}, io::encode_rle(right.data(), 2, 3)}};
  return image;
}

TEST(SegmentFiles, ARunGoesOnWithWhatAnotherHasLeft) {
  const test::TmpDir folder;
  const SegmentedImage a = segmented("front/a", "1"), b = segmented("front/b", "2");
  {
    SegmentFiles files(folder.path(), "settings", true);
    files.write(a);
    files.write(b);
    EXPECT_EQ(files.finish({a.input, b.input}).objects, 4);
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "objects/front/a/0002.png"));
  {
    SegmentFiles files(folder.path(), "settings", true);
    EXPECT_TRUE(files.has(a.input, "1"));
    EXPECT_FALSE(files.has(a.input, "another"));
    EXPECT_FALSE(files.has(segmented("front/c", "1").input, "1"));
    std::filesystem::remove(folder / "masks/front/b.png");
    EXPECT_FALSE(files.has(b.input, "2"));
    EXPECT_EQ(files.finish({a.input, b.input}).images, 1);  // what this run has made or found
  }
  EXPECT_FALSE(SegmentFiles(folder.path(), "other settings", true).has(a.input, "1"));
}

TEST(SegmentFiles, ALineThatWasCutIsNone) {
  const test::TmpDir folder;
  const SegmentedImage a = segmented("a", "1"), b = segmented("b", "2");
  {
    SegmentFiles files(folder.path(), "settings", false);
    files.write(a);
    files.write(b);
  }
  const std::string record = read_file(folder / "segmented.jsonl");
  std::ofstream(folder / "segmented.jsonl") << record.substr(0, record.size() - 20);
  SegmentFiles files(folder.path(), "settings", false);
  EXPECT_TRUE(files.has(a.input, "1"));
  EXPECT_FALSE(files.has(b.input, "2"));
  files.write(b);
  EXPECT_EQ(files.finish({a.input, b.input}).images, 2);
  EXPECT_TRUE(SegmentFiles(folder.path(), "settings", false).has(b.input, "2"));
}

TEST(SegmentFiles, TablesHoldEveryObject) {
  const test::TmpDir folder;
  SegmentFiles files(folder.path(), "settings", false);
  const SegmentedImage a = segmented("a", "1"), b = segmented("b", "2");
  files.write(b);
  files.write(a);
  const SegmentFiles::Totals totals = files.finish({a.input, b.input});
  EXPECT_EQ(totals.images, 2);
  EXPECT_EQ(totals.objects, 4);
  const io::Image labels = io::read_image(folder / "masks/a.png");
  EXPECT_EQ(labels.dtype, io::Dtype::u16);
  const io::Table table = io::read_table(folder / "objects.csv");
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_EQ(
      table.rows[1],
      (std::vector<std::string>{
          "data/a.png", "front", "2", "4", "0.25", "1", "0", "3", "2", "4", "1", "0", "2", "2"}));
  const config::Node coco = config::parse_json(read_file(folder / "instances.json"), "instances");
  EXPECT_EQ(coco.at("images").list.size(), 2U);
  EXPECT_EQ(coco.at("categories").list.size(), 2U);
  const config::Node& last = coco.at("annotations").list.at(3);
  EXPECT_EQ(last.get<int64_t>("image_id"), 2);
  EXPECT_EQ(last.get<int64_t>("area"), 4);
  EXPECT_EQ(last.get<std::vector<double>>("bbox"), (std::vector<double>{1, 0, 2, 2}));
  EXPECT_EQ(last.get<std::string>("segmentation.counts"), b.objects[1].mask.text());
}

}  // namespace
}  // namespace cytra::pipelines
