// data.source_keys: channels in several files.
#include "data/source_keys.h"

#include "data/loader/pipeline.h"
#include "io/image.h"
#include "tests/data/datamodule_fixture.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

void write_grey(const std::string& path, unsigned char value, int64_t width = 4) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  io::Image image;
  image.shape = {1, 1, 3, width};
  image.pixels.assign(static_cast<std::size_t>(3 * width), value);
  io::write_png(path, image);
}

class SourceKeys : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a", "b"}) {
      write_grey(dir_ / "dapi/" + name + ".png", 10);
      write_grey(dir_ / "gfp/" + name + ".png", 20);
      write_grey(dir_ / "seg/" + name + ".png", 1);
    }
  }
  const test::TmpDir dir_;
};

const std::string kLoaded =
    "columns: [raw, seg], transforms: {train: [{_target_: LoadImaged, keys: [raw, seg]}]}";

TEST_F(SourceKeys, OfFoldersAreTheChannelsOfOneImage) {
  const auto module = make("{_target_: FolderDatamodule, path: '" + dir_.path() +
                           "', valid_fraction: 0.5, source_keys: [gfp, dapi], " + kLoaded + "}");
  const data::Sample item = module->items(data::Split::train).at(0);
  EXPECT_EQ(item.sources.size(), 2U);
  EXPECT_EQ(item.sources.at("raw").path, dir_ / "gfp/a.png");
  EXPECT_EQ(item.sources.at("raw").more, std::vector<std::string>{dir_ / "dapi/a.png"});
  data::Sample sample = item;
  Rng rng(0);
  data::make_transforms(module->loader().transforms, data::Split::train)[0]->apply(sample, rng);
  const at::Tensor image = sample.at("raw");
  EXPECT_EQ(image.sizes().vec(), (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(image[0].max().item<double>(), 20);
  EXPECT_EQ(image[1].max().item<double>(), 10);
}

TEST_F(SourceKeys, OfTables) {
  touch(dir_ / "train.csv", "dapi,gfp,seg\ndapi/a.png,gfp/a.png,seg/a.png\n");
  const std::string begin = "{_target_: DataframeDatamodule, path: '" + dir_.path() + "', ";
  const auto module = make(begin + "source_keys: [dapi, gfp], " + kLoaded + "}");
  const data::Sample item = module->items(data::Split::train).at(0);
  EXPECT_EQ(item.sources.at("raw").more, std::vector<std::string>{dir_ / "gfp/a.png"});
  EXPECT_EQ(item.sources.count("dapi"), 0U);
  EXPECT_NE(message_of([&] {
              make(begin + "source_keys: [dapi, rfp], " + kLoaded + "}")->items(data::Split::train);
            }).find("rfp"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              make(begin + "source_keys: [dapi, dapi], " + kLoaded + "}");
            }).find("expected each once"),
            std::string::npos);
  touch(dir_ / "train.csv", "dapi,gfp,seg,gfp_channel\ndapi/a.png,gfp/a.png,seg/a.png,0\n");
  EXPECT_NE(message_of([&] { module->items(data::Split::train); }).find("data.source_keys: gfp"),
            std::string::npos);
}

TEST_F(SourceKeys, TheFirstColumnMayBeOneOfThem) {
  touch(dir_ / "train.csv", "raw,gfp,seg\ndapi/a.png,gfp/a.png,seg/a.png\n");
  const auto module = make("{_target_: DataframeDatamodule, path: '" + dir_.path() +
                           "', source_keys: [raw, gfp], " + kLoaded + "}");
  const data::Sample item = module->items(data::Split::train).at(0);
  EXPECT_EQ(item.sources.at("raw").path, dir_ / "dapi/a.png");
  EXPECT_EQ(item.sources.at("raw").more, std::vector<std::string>{dir_ / "gfp/a.png"});
}

}  // namespace
}  // namespace cytra
