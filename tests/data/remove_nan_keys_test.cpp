// RemoveNaNKeysd, and manifests whose rows lack an image.
#include "tests/data/datamodule_fixture.h"
#include "tests/data/make_transform.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

std::shared_ptr<data::DataModule> with_gaps(const std::string& path, const std::string& first) {
  return make("{_target_: DataframeDatamodule, path: '" + path + "', transforms: {train: [" +
              first + "{_target_: LoadImaged, keys: seg, allow_missing_keys: true}]}}");
}

TEST(RemoveNaNKeysd, ARowMayLackAnImage) {
  const test::TmpDir dir;
  for (const char* name : {"a.tif", "b.tif", "c.tif"}) touch(dir / name);
  touch(dir / "train.csv", "raw,seg,mask,note\na.tif,nan,b.tif,first\nb.tif,c.tif,,\n");
  EXPECT_NE(message_of([&] {
              with_gaps(dir.path(), "")->items(data::Split::train);
            }).find("train.csv:2: column 'seg' is empty"),
            std::string::npos);
  const auto items =
      with_gaps(dir.path(), "{_target_: RemoveNaNKeysd}, ")->items(data::Split::train);
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[0].columns,
            (std::map<std::string, std::string>{{"seg", "nan"}, {"note", "first"}}));
  EXPECT_EQ(items[0].sources.size(), 2U);
  EXPECT_EQ(items[1].sources.count("seg"), 1U);
  data::Sample sample = items[0];
  Rng rng(0);
  make_transform("{_target_: cyto_dl.datamodules.dataframe.utils.RemoveNaNKeysd}")
      ->apply(sample, rng);
  EXPECT_EQ(sample.columns, (std::map<std::string, std::string>{{"note", "first"}}));
  make_transform("{_target_: LoadImaged, keys: seg, allow_missing_keys: true}")->apply(sample, rng);
  EXPECT_FALSE(sample.has("seg"));
}

TEST(RemoveNaNKeysd, ARowWithoutAnyImageIsAnError) {
  const test::TmpDir dir;
  touch(dir / "a.tif");
  touch(dir / "train.csv", "raw,seg,note\na.tif,a.tif,x\n,NA,y\n");
  EXPECT_NE(message_of([&] {
              with_gaps(dir.path(), "{_target_: RemoveNaNKeysd}, ")->items(data::Split::train);
            }).find("train.csv:3: column 'raw' is empty, like all cells of images in this row"),
            std::string::npos);
}

}  // namespace
}  // namespace cytra
