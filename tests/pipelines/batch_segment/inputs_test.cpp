#include "pipelines/batch_segment/inputs.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra::pipelines {
namespace {

void touch(const std::string& path) {
  make_folders(std::filesystem::path(path).parent_path().string());
  std::ofstream(path) << "x";
}

TEST(SegmentInputs, SubFoldersAreViews) {
  const test::TmpDir folder;
  for (const char* name : {"b.png",
                           "front/a.ome.tif",
                           "front/day 1/a.tif",
                           "left/a.png",
                           "left/a.tif",
                           "left/notes.txt",
                           ".hidden/x.png"})
    touch(folder / name);
  const auto inputs = list_segment_inputs(folder.path(), {});
  std::vector<std::string> got;
  for (const auto& input : inputs) got.push_back(input.view + ":" + input.name);
  EXPECT_EQ(got,
            (std::vector<std::string>{
                ":b", "front:front/a", "front:front/day 1/a", "left:left/a", "left:left/a_2"}));
  EXPECT_EQ(list_segment_inputs(folder.path(), "left").size(), 2U);
  const std::string message =
      message_of<ConfigError>([&] { list_segment_inputs(folder.path(), "frnt"); });
  EXPECT_NE(message.find("Did you mean 'front'?"), std::string::npos) << message;
}

TEST(SegmentInputs, ATableNamesImagesAndViews) {
  const test::TmpDir folder;
  std::ofstream(folder / "t.csv") << "view,image\nfront,images/a.png\nleft,images/a.png\n,b.tif\n";
  const auto inputs = list_segment_inputs(folder / "t.csv", {});
  ASSERT_EQ(inputs.size(), 3U);
  EXPECT_EQ(inputs[0].path, folder / "images/a.png");
  EXPECT_EQ(inputs[0].name, "front/a");
  EXPECT_EQ(inputs[1].view, "left");
  EXPECT_EQ(inputs[2].name, "b");
  EXPECT_THROW(list_segment_inputs(folder / "none", {}), ConfigError);
  std::ofstream(folder / "up.csv") << "view,image\n../front,images/a.png\n";
  EXPECT_NE(message_of<DataError>([&] {
              list_segment_inputs(folder / "up.csv", {});
            }).find("the view '../front', expected a name without '/'"),
            std::string::npos);
  std::ofstream(folder / "plain.csv") << "image\nimages/a.png\n";
  EXPECT_NE(message_of<ConfigError>([&] {
              list_segment_inputs(folder / "plain.csv", "front");
            }).find("has no views"),
            std::string::npos);
}

}  // namespace
}  // namespace cytra::pipelines
