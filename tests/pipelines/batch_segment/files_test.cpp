#include "pipelines/batch_segment/files.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "config/json.h"
#include "io/csv.h"
#include "io/fingerprint.h"
#include "io/reader.h"
#include "tests/support/message_of.h"
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
  image.objects = {{{0, 0, 2, 2}, 0.9F, 0, io::encode_rle(left.data(), 2, 3)},
                   {{1, 0, 3, 2}, 0.25F, 4, io::encode_rle(right.data(), 2, 3)}};
  return image;
}

SegmentFiles::Settings settings_of(const std::string& text) {
  return [text](const std::string&) { return text; };
}

TEST(SegmentFiles, ARunGoesOnWithWhatAnotherHasLeft) {
  const test::TmpDir folder;
  const SegmentedImage a = segmented("front/a", "1"), b = segmented("front/b", "2");
  {
    SegmentFiles files(folder.path(), settings_of("settings"), true);
    files.write(a);
    files.write(b);
    EXPECT_EQ(files.finish({a.input, b.input}).objects, 4);
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "objects/front/a/0002.png"));
  {
    SegmentFiles files(folder.path(), settings_of("settings"), true);
    EXPECT_TRUE(files.has(a.input, "1"));
    EXPECT_FALSE(files.has(a.input, "another"));
    EXPECT_FALSE(files.has(segmented("front/c", "1").input, "1"));
    std::filesystem::remove(folder / "masks/front/b.png");
    EXPECT_FALSE(files.has(b.input, "2"));
    EXPECT_EQ(files.finish({a.input, b.input}).images, 1);  // what this run has made or found
  }
  EXPECT_FALSE(SegmentFiles(folder.path(), settings_of("other settings"), true).has(a.input, "1"));
}

TEST(SegmentFiles, ALineThatWasCutIsNone) {
  const test::TmpDir folder;
  const SegmentedImage a = segmented("a", "1"), b = segmented("b", "2");
  {
    SegmentFiles files(folder.path(), settings_of("settings"), false);
    files.write(a);
    files.write(b);
  }
  const std::string record = read_file(folder / "segmented.jsonl");
  std::ofstream(folder / "segmented.jsonl") << record.substr(0, record.size() - 20);
  SegmentFiles files(folder.path(), settings_of("settings"), false);
  EXPECT_TRUE(files.has(a.input, "1"));
  EXPECT_FALSE(files.has(b.input, "2"));
  files.write(b);
  EXPECT_EQ(files.finish({a.input, b.input}).images, 2);
  EXPECT_TRUE(SegmentFiles(folder.path(), settings_of("settings"), false).has(b.input, "2"));
}

TEST(SegmentFiles, ALineThatIsDamagedOrForgedIsNone) {  // tables without a word, or exit code 1
  const test::TmpDir folder;
  const SegmentedImage a = segmented("a", "1");
  { SegmentFiles(folder.path(), settings_of("settings"), true).write(a); }
  const std::string path = folder / "segmented.jsonl", record = read_file(path);
  const auto has = [&](const std::string& text) {
    std::ofstream(path) << text;
    return SegmentFiles(folder.path(), settings_of("settings"), true).has(a.input, "1");
  };
  EXPECT_TRUE(has(record));
  for (std::size_t at = 0; at + 1 < record.size(); at += 7) {
    std::string damaged = record;
    damaged[at] = damaged[at] == '1' ? '2' : '1';
    EXPECT_FALSE(has(damaged)) << damaged;
  }
  const auto forged = [&](const std::string& from, const std::string& to) {
    std::string text = record.substr(0, record.find(",\"check\"")) + "}";
    text.replace(text.find(from), from.size(), to);
    return text.substr(0, text.size() - 1) + ",\"check\":\"" + io::fingerprint(text) + "\"}\n";
  };
  EXPECT_TRUE(has(forged("\"height\"", "\"height\"")));
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"box\":[", "\"box\":[0,"},
           {"\"box\":[", "\"box\":[1e300,0,1,1],\"x\":["},
           {"\"height\":2", "\"height\":1099511627776"},
           {"\"width\":3", "\"width\":-3"},
           {"\"objects\":[", "\"objects\":{},\"x\":["},
           {"\"score\":", "\"score\":\"a\",\"x\":"},
           {"\"class\":0", "\"class\":-1"},
           {"\"counts\":\"", "\"counts\":\"~"}})
    EXPECT_FALSE(has(forged(from, to))) << from << " " << to;
  EXPECT_TRUE(has(record));
  std::filesystem::resize_file(folder / "objects/a/0002.png", 10);
  EXPECT_FALSE(has(record)) << "an object's mask that was cut";
}

TEST(SegmentFiles, ALineOfOtherSettingsIsNoResult) {
  const test::TmpDir folder;
  const SegmentedImage a = segmented("a", "1");
  SegmentFiles(folder.path(), settings_of("settings"), false).write(a);
  const std::string record = read_file(folder / "segmented.jsonl");
  SegmentFiles files(folder.path(), settings_of("other settings"), false);
  files.write(a);
  std::ofstream(folder / "segmented.jsonl") << record;  // as where the disk had no room for more
  EXPECT_NE(
      message_of<IoError>([&] { files.finish({a.input}); }).find("segmented.jsonl: no line for"),
      std::string::npos);
}

TEST(SegmentFiles, AViewWithAnotherDetectorIsNotDone) {
  const test::TmpDir folder;
  SegmentedImage front = segmented("front/a", "1"), left = segmented("left/a", "1");
  left.input.view = "left";
  std::map<std::string, std::string> detectors{{"front", "a.ckpt"}, {"left", "b.ckpt"}};
  const SegmentFiles::Settings by_view = [&](const std::string& view) {
    return detectors.at(view);
  };
  {
    SegmentFiles files(folder.path(), by_view, false);
    files.write(front);
    files.write(left);
  }
  EXPECT_TRUE(SegmentFiles(folder.path(), by_view, false).has(left.input, "1"));
  std::swap(detectors.at("front"), detectors.at("left"));
  EXPECT_FALSE(SegmentFiles(folder.path(), by_view, false).has(front.input, "1"));
  EXPECT_FALSE(SegmentFiles(folder.path(), by_view, false).has(left.input, "1"));
}

TEST(SegmentFiles, ClassesHaveTheNamesOfTheirView) {
  const test::TmpDir folder;
  SegmentedImage front = segmented("front/a", "1"), left = segmented("left/a", "1");
  left.input.view = "left";
  const SegmentFiles::ClassNames names = [](const std::string& view) -> std::vector<std::string> {
    if (view == "front") return {"nucleus", "b", "c", "d", "a \"cell\""};
    return {"leaf"};
  };
  SegmentFiles files(folder.path(), settings_of("settings"), false, names);
  files.write(front);
  files.write(left);
  files.finish({front.input, left.input});
  const config::Node coco = config::parse_json(read_file(folder / "instances.json"), "coco");
  std::map<int64_t, std::string> categories;
  for (const config::Node& one : coco.at("categories").list)
    categories[one.get<int64_t>("id")] = one.get<std::string>("name");
  EXPECT_EQ(categories,
            (std::map<int64_t, std::string>{
                {0, "nucleus"}, {4, "a \"cell\""}, {5, "leaf"}, {6, "class 4"}}));
  std::vector<std::string> found;
  for (const config::Node& one : coco.at("annotations").list)
    found.push_back(categories.at(one.get<int64_t>("category_id")));
  const std::vector<std::string> expected{"nucleus", "a \"cell\"", "leaf", "class 4"};
  EXPECT_EQ(found, expected);
  const io::Table table = io::read_table(folder / "objects.csv");
  EXPECT_EQ(table.rows.at(0).at(3), "nucleus");
  EXPECT_EQ(table.rows.at(3).at(3), "4");
}

TEST(SegmentFiles, ObjectMasksOfAnImageLeaveThoseOfAFolderOfItsName) {
  const test::TmpDir folder;
  SegmentFiles files(folder.path(), settings_of("settings"), true);
  files.write(segmented("a/b", "1"));
  SegmentedImage image = segmented("a", "2");
  files.write(image);
  image.objects.pop_back();
  files.write(image);
  EXPECT_TRUE(std::filesystem::exists(folder / "objects/a/0001.png"));
  EXPECT_FALSE(std::filesystem::exists(folder / "objects/a/0002.png"));
  EXPECT_TRUE(std::filesystem::exists(folder / "objects/a/b/0002.png"));
  SegmentFiles(folder.path(), settings_of("settings"), false).write(image);
  EXPECT_FALSE(std::filesystem::exists(folder / "objects/a/0001.png")) << "of a run before";
  EXPECT_TRUE(std::filesystem::exists(folder / "objects/a/b/0002.png"));
}

TEST(SegmentFiles, TotalsTellEmptyMasksAndTheFullestImage) {
  const test::TmpDir folder;
  SegmentFiles files(folder.path(), settings_of("settings"), false);
  SegmentedImage a = segmented("a", "1");
  const SegmentedImage b = segmented("b", "2");
  const std::vector<unsigned char> nothing(6, 0);
  a.objects.push_back({{0, 0, 1, 1}, 0.1F, 0, io::encode_rle(nothing.data(), 2, 3)});
  files.write(a);
  files.write(b);
  const SegmentFiles::Totals totals = files.finish({b.input, a.input});
  EXPECT_EQ(totals.empty, 1);
  EXPECT_EQ(totals.most, 3);
  EXPECT_EQ(totals.most_in, "data/a.png");
}

TEST(SegmentFiles, TablesHoldEveryObject) {
  const test::TmpDir folder;
  SegmentFiles files(folder.path(), settings_of("settings"), false);
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
  ASSERT_EQ(coco.at("images").list.size(), 2U);
  EXPECT_EQ(coco.at("images").list[1].get<std::string>("label_file"), "masks/b.png");
  EXPECT_EQ(coco.at("categories").list.size(), 2U);
  const config::Node& last = coco.at("annotations").list.at(3);
  EXPECT_EQ(last.get<int64_t>("image_id"), 2);
  EXPECT_EQ(last.get<int64_t>("area"), 4);
  EXPECT_EQ(last.get<std::vector<double>>("bbox"), (std::vector<double>{1, 0, 2, 2}));
  EXPECT_EQ(last.get<std::string>("segmentation.counts"), b.objects[1].mask.text());
}

}  // namespace
}  // namespace cytra::pipelines
