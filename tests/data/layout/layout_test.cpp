// Which folders and names hold images and targets.
#include "data/layout/layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/layout/layout_names.h"
#include "data/manifest.h"
#include "io/annotations/annotations.h"
#include "io/image_folder.h"
#include "tests/data/datamodule_fixture.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

class Layout : public ::testing::Test {
 protected:
  void add(const std::vector<std::string>& files) const {
    for (const std::string& file : files) touch(dir_ / file);
  }
  /// "folder data.folders=[image,label]", or "none".
  std::string found(bool prefers_annotations = false, const std::string& path = "") const {
    return found_in(path, {"raw", "seg", true, prefers_annotations});
  }
  std::string found_in(const std::string& path, const data::DataNeeds& needs) const {
    const auto layout = data::layout_of(path.empty() ? dir_.path() : dir_ / path, needs);
    if (!layout) return "none";
    std::string text = layout->module;
    for (const auto& [key, values] : layout->settings)
      text += fmt::format(" {}=[{}]", key, fmt::join(values, ","));
    return text;
  }
  const test::TmpDir dir_;
};

TEST_F(Layout, UsualNamesNeedNothing) {
  add({"raw/a.tif", "seg/a.tif", "notes.txt"});
  EXPECT_EQ(found(), "folder");
}

TEST_F(Layout, FoldersOfOtherNames) {
  for (const auto& [images, targets] : {std::pair{"image", "label"},
                                        std::pair{"images", "masks"},
                                        std::pair{"Tissue_Images", "Binary_masks"},
                                        std::pair{"images", "1st_manual"},
                                        std::pair{"img", "GT"}}) {
    const test::TmpDir dir;
    touch(dir / images + "/a.png");
    touch(dir / targets + "/a.png");
    const auto layout = data::layout_of(dir.path(), {"raw", "seg"});
    ASSERT_TRUE(layout) << images;
    EXPECT_EQ(layout->module, "folder");
    ASSERT_EQ(layout->settings.size(), 1U);
    EXPECT_EQ(layout->settings[0].second, (std::vector<std::string>{images, targets}));
  }
}

TEST_F(Layout, SplitsAboveAndBelowColumns) {
  add({"train/image/0.png", "train/label/0.png", "test/0.png"});
  EXPECT_EQ(found(), "folder data.folders=[image,label]");
  add({"yolo/images/train/a.jpg", "yolo/labels/train/a.txt", "yolo/labels/train/classes.txt"});
  EXPECT_EQ(found(true, "yolo"), "folder data.folders=[images,labels]");
}

TEST_F(Layout, PartsInLettersOfAnyCase) {
  add({"Training/imgs/0.png", "Training/gt/0.png", "Validation/imgs/1.png", "Test/imgs/2.png"});
  EXPECT_EQ(found(), "folder data.folders=[imgs,gt]");
  add({"up/set/Train/imgs/0.png", "up/set/Train/gt/0.png", "up/set/Val/imgs/1.png"});
  EXPECT_EQ(found(false, "up"), "folder data.folders=[set/{split}/imgs,set/{split}/gt]");
}

TEST_F(Layout, PartsInTheNamesOfFolders) {
  add({"c/train/0.png", "c/trainannot/0.png", "c/val/1.png", "c/valannot/1.png", "c/test/2.png"});
  EXPECT_EQ(found(false, "c"), "folder data.folders=[{split},{split}annot]");
  add({"k/train_images/0.png", "k/train_masks/0.png", "k/test_images/2.png"});
  EXPECT_EQ(found(false, "k"), "folder data.folders=[{split}_images,{split}_masks]");
  add({"i/ImagesTraining/0.png", "i/MasksTraining/0_m.png", "i/ImagesTest/2.png"});
  EXPECT_EQ(found(false, "i"),
            "folder data.folders=[Images{split},Masks{split}] data.regex=[(.*),(.*)_m]");
  add({"x/constraints/0.png", "x/images/0.png", "x/masks/0.png"});
  EXPECT_EQ(found(false, "x"), "folder data.folders=[images,masks]");
}

TEST_F(Layout, AFolderForEachClass) {
  const data::DataNeeds needs{"raw", "seg", true, false, true};
  add({"a/Cat/1.png", "a/Cat/2.png", "a/dog/1.png", "a/dog/3.png", "a/README.md"});
  EXPECT_EQ(found_in("a", needs), "class_folders class_names=[Cat,dog]");
  EXPECT_EQ(found(false, "a"), "none");
  add({"b/Train/cat/1.png", "b/Train/dog/2.png", "b/Val/cat/3.png", "b/Val/dog/4.png"});
  EXPECT_EQ(found_in("b", needs), "class_folders class_names=[cat,dog]");
  add({"e/archive/train/cat/1.png",
       "e/archive/train/dog/2.png",
       "e/archive/val/cat/3.png",
       "e/archive/val/dog/4.png"});
  EXPECT_EQ(found_in("e", needs), "class_folders class_names=[cat,dog]");
  const auto module = make("{_target_: ClassFolderDatamodule, path: '" + dir_ / "e" +
                           "', class_names: [cat, dog]}");
  EXPECT_EQ(module->items(data::Split::valid).at(1).id, dir_ / "e/archive/val/dog/4.png");
  add({"c/day1/1.png", "c/day1/2.png", "c/day2/1.png", "c/day2/2.png"});
  const std::string said = message_of([&] { found_in("c", needs); });
  EXPECT_NE(said.find("type experiment=im2im/classification 'class_names=[day1,day2]'"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("data=folder 'data.folders=[day1,day2]'"), std::string::npos) << said;
  add({"d/images/1.png", "d/masks/1.png"});
  EXPECT_EQ(found_in("d", needs), "folder data.folders=[images,masks]");
}

TEST_F(Layout, SequencesOfTheCellTrackingChallenge) {
  const std::string image = R"((\d+)/t(\d+)\.)", target = R"(/SEG/man_seg(\d+)\.)";
  const std::string regex =
      "folder data.folders=[.,.] data.recursive=[true] data.regex=[" + image + R"(,(\d+)_)";
  add({"01/t000.tif", "01/t001.tif", "01_GT/SEG/man_seg000.tif", "01_GT/TRA/man_track000.tif"});
  EXPECT_EQ(found(), regex + "GT" + target + "] data.on_error=[skip]");
  add({"01_ST/SEG/man_seg000.tif", "01_ST/SEG/man_seg001.tif"});
  EXPECT_EQ(found(), regex + "ST" + target + "]");
  const auto module = make("{_target_: FolderDatamodule, path: '" + dir_.path() +
                           "', columns: [raw, seg], folders: [., .], recursive: true, regex: ['" +
                           image + R"(', '(\d+)_ST)" + target + "'], valid_fraction: 0.5}");
  const data::Sample valid = module->items(data::Split::valid).at(0);
  EXPECT_EQ(valid.id, dir_ / "01/t001.tif");
  EXPECT_EQ(valid.sources.at("seg").path, dir_ / "01_ST/SEG/man_seg001.tif");
}

TEST_F(Layout, BidsWithMasksOfDerivatives) {
  for (const std::string subject : {"sub-01", "sub-02"}) {
    add({subject + "/anat/" + subject + "_T1w.nii.gz",
         subject + "/anat/" + subject + "_T1w.json",
         "derivatives/manual/" + subject + "/anat/" + subject + "_space-orig_dseg.nii.gz"});
  }
  add({"dataset_description.json"});
  EXPECT_EQ(
      found(),
      R"(folder data.folders=[.,.] data.recursive=[true] data.regex=[(sub-[^/]+)/(ses-[^/]+/)?anat/[^/]*_T1w\.,)"
      R"(derivatives/manual/(sub-[^/]+)/(ses-[^/]+/)?anat/[^/]*_dseg\.])");
  add({"sub-01/anat/sub-01_FLAIR.nii.gz"});
  EXPECT_NE(message_of([&] { found(); }).find("several images or masks may be meant"),
            std::string::npos);
}

TEST_F(Layout, AnnotationsWithNamesOfTheirOwn) {
  add({"a.tif", "b.tif", "a_RoiSet.zip", "b_RoiSet.zip"});
  EXPECT_EQ(found(), "folder data.folders=[.,.] data.regex=[(.*),(.*)_RoiSet]");
  add({"f/images/a.tif", "f/rois/a_objects.geojson"});
  EXPECT_EQ(found(false, "f"), "none");  // `rois` may be anything
  add({"g/images/a.tif", "g/annotations/a_objects.geojson"});
  EXPECT_EQ(found(false, "g"),
            "folder data.folders=[images,annotations] data.regex=[(.*),(.*)_objects]");
}

TEST_F(Layout, OneFileOfAnnotationsBesideTheImages) {
  add({"images/a.png"});
  touch(dir_ / "annotations.xml",
        R"(<annotations><image name="a.png" width="9" height="9"/></annotations>)");
  EXPECT_EQ(found(), "folder data.folders=[images,.]");
  EXPECT_EQ(found(true, "annotations.xml"), "coco");
}

TEST_F(Layout, LabelsInTheImages) {
  add({"a.ome.zarr/.zgroup",
       "a.ome.zarr/labels/nuclei/.zgroup",
       "b.ome.zarr/.zgroup",
       "b.ome.zarr/labels/nuclei/.zgroup"});
  EXPECT_EQ(found(), "folder data.folders=[.,*/labels/nuclei]");
  const auto module = make("{_target_: FolderDatamodule, path: '" + dir_.path() +
                           "', columns: [raw, seg], folders: [., '*/labels/nuclei']}");
  const data::Sample valid = module->items(data::Split::valid).at(0);
  EXPECT_EQ(valid.id, dir_ / "b.ome.zarr");
  EXPECT_EQ(valid.sources.at("seg").path, dir_ / "b.ome.zarr/labels/nuclei");
  add({"a.ome.zarr/labels/cells/.zgroup"});
  EXPECT_NE(message_of([&] { found(); })
                .find("type data=folder 'data.folders=[.,*/labels/cells]', "
                      "or data=folder 'data.folders=[.,*/labels/nuclei]'"),
            std::string::npos);
}

TEST_F(Layout, SomeImagesHaveNoTarget) {
  add({"a.tif", "b.tif", "c.tif", "a_mask.tif", "b_mask.tif"});
  EXPECT_EQ(found(), R"(folder data.folders=[.,.] data.regex=[(?!.*_mask\.)(.*),(.*)_mask])");
}

TEST_F(Layout, ImagesThatAreNotReadAreNamed) {
  add({"images/a.czi", "masks/a.png"});
  EXPECT_NE(
      message_of([&] { found(); }).find("images/a.czi: not read; convert it with Bio-Formats"),
      std::string::npos);
}

TEST_F(Layout, UnpackedArchives) {
  add({"BCCD/JPEGImages/a.jpg", "BCCD/Annotations/a.xml", "BCCD/ImageSets/Main/train.txt"});
  EXPECT_EQ(found(true), "folder data.folders=[BCCD/JPEGImages,BCCD/Annotations]");
  EXPECT_EQ(found(true, "BCCD"), "folder data.folders=[JPEGImages,Annotations]");
}

TEST_F(Layout, NamesWithPartsOfTheirOwn) {
  add({"training/images/21_training.tif",
       "training/images/22_training.tif",
       "training/1st_manual/21_manual1.tif",
       "training/1st_manual/22_manual1.tif"});
  EXPECT_EQ(found(),
            R"(folder data.folders=[images,1st_manual] data.regex=[(.*)_\w+,(.*)_manual1])");
  add({"omni/caulo_1.tif",
       "omni/caulo_2.tif",
       "omni/masks/caulo_1_cp_masks.tif",
       "omni/masks/caulo_2_cp_masks.tif"});
  EXPECT_EQ(found(false, "omni"), "folder data.folders=[.,masks] data.regex=[(.*),(.*)_cp_masks]");
}

TEST_F(Layout, FoldersThatAreTyped) {
  add({"images/21_training.tif",
       "images/22_training.tif",
       "gt/21_manual1.tif",
       "gt/22_manual1.tif"});
  data::DataNeeds needs{"raw", "seg"};
  needs.folders = {"images", "gt"};
  const auto layout = data::layout_of(dir_.path(), needs);
  ASSERT_TRUE(layout);
  ASSERT_EQ(layout->settings.size(), 1U);
  EXPECT_EQ(layout->settings[0].second, (std::vector<std::string>{R"((.*)_\w+)", "(.*)_manual1"}));
  add({"gt/21_training.tif"});
  EXPECT_FALSE(data::layout_of(dir_.path(), needs));
}

TEST_F(Layout, OneFolder) {
  add({"a.png", "a_mask.png", "b.png", "b_mask.png"});
  EXPECT_EQ(found(), "folder data.folders=[.,.] data.regex=[(?!.*_mask\\.)(.*),(.*)_mask]");
  add({"x/a_raw.tif", "x/a_seg.tif"});
  EXPECT_EQ(found(false, "x"), "folder data.folders=[.,.] data.regex=[(.*)_raw,(.*)_seg]");
  add({"y/mask_01.tif", "y/mask_02.tif", "y/01.tif", "y/02.tif"});
  EXPECT_EQ(found(false, "y"), "folder data.folders=[.,.] data.regex=[(?!mask_)(.*),mask_(.*)]");
  add({"z/a.jpg", "z/a.json", "z/b.jpg", "z/b.json"});
  EXPECT_EQ(found(true, "z"), "folder data.folders=[.,.]");
}

TEST_F(Layout, SeveralThatMayBeMeant) {
  add({"images/a.png", "masks/a.png", "labels/a.png", "annotations/a.json"});
  EXPECT_EQ(message_of([&] { found(); }),
            "data.path: " + dir_.path() +
                ": several folders may be meant; type data=folder 'data.folders=[images,labels]', "
                "or data=folder 'data.folders=[images,masks]'");
  EXPECT_EQ(found(true), "folder data.folders=[images,annotations]");
  add({"seg/a.png"});
  EXPECT_EQ(found(), "folder data.folders=[images,seg]");
}

TEST_F(Layout, AFolderForEachImage) {
  for (const char* name : {"stage1_train/n1", "stage1_train/n2", "other/x/n1", "other/x/n2"}) {
    const std::string folder = name;
    add({folder + "/images/a.png", folder + "/masks/0.png", folder + "/masks/1.png"});
  }
  EXPECT_EQ(found(), "folder data.folders=[stage1_train/*/images,stage1_train/*/masks]");
  EXPECT_EQ(found(false, "stage1_train"), "folder data.folders=[*/images,*/masks]");
  EXPECT_EQ(found(false, "other"), "folder data.folders=[x/*/images,x/*/masks]");
  const auto images = data::layout_of(dir_ / "other/x", {"raw", "seg", false});
  ASSERT_TRUE(images);
  EXPECT_EQ(images->settings[0].second, std::vector<std::string>{"*/images"});
}

TEST_F(Layout, AFolderForEachImageOfWhichOneHasNoMasks) {
  for (const char* name : {"1", "2", "3", "4"}) {
    const std::string folder = name;
    add({folder + "/images/a.png"});
    if (folder != "3") add({folder + "/masks/0.png", folder + "/masks/1.png"});
  }
  EXPECT_EQ(found(), "folder data.folders=[*/images,*/masks]");
  const auto module = make("{_target_: FolderDatamodule, path: '" + dir_.path() +
                           "', columns: [raw, seg], folders: ['*/images', '*/masks']}");
  EXPECT_NE(message_of([&] {
              module->items(data::Split::train);
            }).find("3/images/a.png: no annotations named '3' in " + (dir_ / "*/masks")),
            std::string::npos);
}

TEST_F(Layout, AnImageAndItsMasksInAFolder) {
  add({"a/1/cell.png", "a/1/Mask_0.png", "a/1/Mask_1.png", "a/2/cell.png", "a/2/Mask_0.png"});
  EXPECT_EQ(found(false, "a"), "folder data.folders=[*,*] data.regex=[(?!.*Mask),.*Mask]");
  add({"b/1/1.png", "b/1/1_seg_label.png", "b/2/2.png", "b/2/2_seg_label.png"});
  EXPECT_EQ(found(false, "b"), "folder data.folders=[*,*] data.regex=[(?!.*label),.*label]");
  add({"c/1/t1.png", "c/1/t2.png", "c/1/seg.png", "c/2/t1.png", "c/2/t2.png", "c/2/seg.png"});
  EXPECT_EQ(message_of([&] {
              EXPECT_EQ(found(false, "c").find("[*"), std::string::npos);
            }).find("data.folders=[*"),
            std::string::npos);
}

TEST_F(Layout, OneFolderThatHoldsTheColumnsIsNoImage) {
  add({"set/images/a.png", "set/masks/a.png"});
  EXPECT_EQ(found(), "folder data.folders=[set/images,set/masks]");
}

TEST(FolderDatamodule, AFolderForEachImageHasMasksOfItsObjects) {
  const test::TmpDir dir;
  const auto of_folders = [&](const std::string& folders) {
    return make("{_target_: FolderDatamodule, path: '" + dir.path() +
                "', columns: [raw, seg], valid_fraction: 0.5, folders: " + folders + "}");
  };
  for (const char* name : {"many/1/masks/p", "many/1/masks/q", "many/2/masks/p"})
    touch(dir / name + ".png");
  for (const char* name : {"many/1/images/1", "many/2/images/2"}) touch(dir / name + ".png");
  const auto many = of_folders("['many/*/images', 'many/*/masks']");
  const data::Sample first = many->items(data::Split::train).at(0);
  EXPECT_EQ(first.id, dir / "many/1/images/1.png");
  EXPECT_EQ(first.sources.at("seg").path, dir / "many/1/masks");
  EXPECT_EQ(many->items(data::Split::valid).at(0).sources.at("seg").path, dir / "many/2/masks");
  // One file each is a target itself, as are those that have the names of several images.
  for (const char* name : {"one/1/images/a", "one/1/masks/b", "one/2/images/a", "one/2/masks/b"})
    touch(dir / name + ".png");
  EXPECT_EQ(of_folders("['one/*/images', 'one/*/masks']")
                ->items(data::Split::train)
                .at(0)
                .sources.at("seg")
                .path,
            dir / "one/1/masks/b.png");
  for (const char* name : {"set/1/images/a", "set/1/images/b", "set/1/masks/a", "set/1/masks/b"})
    touch(dir / name + ".png");
  EXPECT_EQ(of_folders("['set/*/images', 'set/*/masks']")
                ->items(data::Split::valid)
                .at(0)
                .sources.at("seg")
                .path,
            dir / "set/1/masks/b.png");
}

TEST_F(Layout, AFileForEachObject) {
  add({"a/pics/im_1.png", "a/pics/im_2.png", "a/masks/im_1_001.png", "a/masks/im_1_002.png"});
  add({"a/masks/im_2_001.png"});
  EXPECT_EQ(found(false, "a"), "folder data.folders=[pics,masks] data.regex=[(.*),(.*?)_\\d+\\.]");
  add({"b/X 1.png", "b/X 1-mask3.png", "b/X 1-mask10.png", "b/X 2.png", "b/X 2-mask1.png"});
  EXPECT_EQ(found(false, "b"),
            "folder data.folders=[.,.] data.regex=[(?!.*-mask\\d+\\.)(.*),(.*?)-mask\\d+\\.]");
  const auto module = make("{_target_: FolderDatamodule, path: '" + (dir_ / "a") +
                           "', columns: [raw, seg], valid_fraction: 0.5, folders: [pics, masks], "
                           "regex: ['(.*)', '(.*?)_\\d+\\.']}");
  EXPECT_EQ(module->items(data::Split::train).at(0).sources.at("seg").path,
            dir_ / "a/masks/im_1_*.png");
  EXPECT_EQ(module->items(data::Split::valid).at(0).sources.at("seg").path,
            dir_ / "a/masks/im_2_*.png");
  EXPECT_EQ(io::mask_files(dir_ / "a/masks/im_1_*.png").size(), 2U);
  EXPECT_TRUE(data::is_there(dir_ / "a/masks/im_1_*.png"));
  EXPECT_FALSE(data::is_there(dir_ / "a/masks/im_3_*.png"));
}

TEST(FolderDatamodule, MasksBesideTheImageMustBeAllThatThereIs) {
  const test::TmpDir dir;
  for (const char* name : {"1/cell", "1/mask_0", "1/mask_1", "2/cell", "2/mask_0"})
    touch(dir / name + ".png");
  const std::string config = "{_target_: FolderDatamodule, path: '" + dir.path() +
                             "', columns: [raw, seg], valid_fraction: 0.5, folders: ['*', '*'], "
                             "regex: ['cell', '.*mask']}";
  EXPECT_EQ(make(config)->items(data::Split::train).at(0).sources.at("seg").path, dir / "1");
  touch(dir / "1/contour.png");
  EXPECT_NE(
      message_of([&] { make(config)->items(data::Split::train); }).find("2 files are masks and 2"),
      std::string::npos);
}

// A repository, or an archive, whose data set is one folder of several.
TEST_F(Layout, ADataSetBesideOtherFolders) {
  add({"one/BCCD/JPEGImages/a.jpg",
       "one/BCCD/Annotations/a.xml",
       "one/dataset/im2rec.py",
       "one/scripts/split.py",
       "one/example.jpg"});
  EXPECT_EQ(found(true, "one"), "folder data.folders=[BCCD/JPEGImages,BCCD/Annotations]");
  add({"two/A/images/a.tif", "two/A/masks/a.tif", "two/B/x/a_raw.tif", "two/B/x/a_seg.tif"});
  const auto word = [&](const std::string& folder) { return "'data.path=" + dir_ / folder + "'"; };
  EXPECT_EQ(message_of([&] { found(false, "two"); }),
            "data.path: " + dir_ / "two" + ": several data sets are in it; type " + word("two/A") +
                ", or " + word("two/B"));
  add({"file/Task04/imagesTr/a.nii.gz", "file/Task04/labelsTr/a.nii.gz"});
  add({"file/Task04/dataset.json"});
  EXPECT_EQ(found(false, "file"), "decathlon");
  add({"file/notes/a.txt"});
  EXPECT_EQ(message_of([&] { found(false, "file"); }),
            "data.path: " + dir_ / "file" + ": a data set is in it; type " + word("file/Task04"));
  add({"eyes/DRIVE/training/images/21_training.tif",
       "eyes/DRIVE/training/1st_manual/21_manual1.gif",
       "eyes/DRIVE/training/mask/21_training_mask.gif",
       "eyes/CHASE/Image_01L.jpg"});
  EXPECT_NE(message_of([&] { found(false, "eyes"); })
                .find("type data=folder \"data.folders=['DRIVE/{split}/images',"
                      "'DRIVE/{split}/1st_manual']\""),
            std::string::npos);
  add({"all/batch/a.tif", "all/more/a.tif", "all/sparse_annotation/a.tif"});
  add({"all/BBBC007/images/a.tif", "all/BBBC007/masks/a.tif"});
  EXPECT_NE(message_of([&] {
              found(false, "all");
            }).find("[more,sparse_annotation]', or " + word("all/BBBC007")),
            std::string::npos);
}

// Two of eighty masks of a copy of DRIVE are 34manual1.gif and 51_manual1).gif, which pairs.
TEST_F(Layout, AFewNamesOfManyAreMisspelt) {
  for (int i = 20; i < 100; ++i) {
    const std::string number = std::to_string(i);
    const char* ending = i == 34 ? "manual1" : i == 51 ? "_manual1)" : "_manual1";
    add({"images/" + number + "_training.tif", "manual/" + number + ending + ".gif"});
  }
  EXPECT_EQ(found(), R"(folder data.folders=[images,manual] data.regex=[(.*)_\w+,(.*)_manual1])");
  const auto module = make("{_target_: FolderDatamodule, path: '" + dir_.path() +
                           "', columns: [raw, seg], folders: [images, manual], "
                           "regex: ['(.*)_training', '(.*)_manual1']}");
  const std::string why = message_of([&] { module->items(data::Split::train); });
  EXPECT_NE(why.find("34_training.tif: no image named '34'"), std::string::npos) << why;
  EXPECT_NE(why.find("of 80 images 1 has no partner"), std::string::npos) << why;
}

// A training that was started in the folder of its images, and one among them.
TEST_F(Layout, OwnRunsAreNoPartOfTheData) {
  const std::string run = "/train/runs/a/b/2026-01-01_00-00-00/";
  const auto has_run = [&](const std::string& set) {
    add({set + "logs" + run + ".hydra/config.yaml",
         set + "logs" + run + "pictures/a.png",
         set + "logs/train/multiruns/2026/0/.hydra/config.yaml",
         set + "logs/train/multiruns/2026/0.log",
         set + "predictions/.hydra/config.yaml",
         set + "predictions/a.png"});
  };
  add({"pairs/images/a.png", "pairs/masks/a.png"});
  add({"one/a.png", "one/a_mask.png"});
  add({"classes/dead/a.png", "classes/alive/b.png"});
  data::DataNeeds needs{"raw", "seg", true, false};
  needs.may_be_classes = true;
  for (const std::string set : {"pairs", "one", "classes"}) {
    const std::string before = found_in(set, needs);
    EXPECT_NE(before, "none") << set;
    has_run(set + "/");
    EXPECT_EQ(found_in(set, needs), before) << set;
    EXPECT_EQ(io::list_images(dir_ / set, true).size(), 2U) << set;
  }
  add({"each/a/images/a.png", "each/a/masks/1.png", "each/b/images/b.png", "each/b/masks/1.png"});
  has_run("each/");
  const auto module = make("{_target_: FolderDatamodule, path: '" + (dir_ / "each") +
                           "', columns: [raw, seg], folders: ['*/images', '*/masks']}");
  EXPECT_EQ(module->items(data::Split::train).size() + module->items(data::Split::valid).size(),
            2U);
  add({"mine/run/.hydra/config.yaml", "mine/run/a.png", "mine/b.png", "notes/run/a.csv"});
  EXPECT_EQ(io::list_images(dir_ / "mine", true), std::vector<std::string>{dir_ / "mine/b.png"});
}

TEST_F(Layout, OnlyImages) {
  add({"a.tif", "b.tif", "README.txt"});
  EXPECT_EQ(found(), "none");
  const auto layout = data::layout_of(dir_.path(), {"raw", "seg", false});
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->settings[0].second, std::vector<std::string>{"."});
}

TEST_F(Layout, DataSetsWithADescription) {
  add({"n/imagesTr/a_0000.nii.gz", "n/labelsTr/a.nii.gz", "n/dataset.json"});
  EXPECT_EQ(found(false, "n"), "nnunet");
  add({"d/imagesTr/a.nii.gz", "d/labelsTr/a.nii.gz", "d/dataset.json"});
  EXPECT_EQ(found(false, "d"), "decathlon");
  add({"raw/Dataset501/imagesTr/a_0000.nii.gz", "raw/Dataset501/dataset.json"});
  EXPECT_EQ(found(false, "raw"), "nnunet");
}

TEST_F(Layout, ColumnsOfTables) {
  touch(dir_ / "train.csv", "image,instances,size\na.tif,b.tif,3\n");
  EXPECT_EQ(found(), " source_col=[image] target_col=[instances]");
  touch(dir_ / "train.csv", "raw,seg\na.tif,b.tif\n");
  EXPECT_EQ(found(), "none");
  touch(dir_ / "all.csv", "raw,mask,part\na.tif,b.tif,train\nc.tif,d.tif,val\n");
  EXPECT_EQ(found(false, "all.csv"), " target_col=[mask] data.split_column=[part]");
  touch(dir_ / "train.csv", "raw,mask,label\na.tif,b.tif,c.tif\n");
  EXPECT_NE(message_of([&] { found(); }).find("type target_col=mask, or target_col=label"),
            std::string::npos);
}

TEST_F(Layout, ColumnsOfWholeImages) {
  data::DataNeeds needs{"raw", "seg"};
  needs.is_any_task = true;
  std::string rows = "image;number of cells;site;well;split\n";
  for (int i = 0; i < 20; ++i)
    rows += fmt::format("{}.tif;{},5;{};{};{}\n",
                        i,
                        i % 7 * 3,
                        i % 3,
                        "A" + std::to_string(i),
                        i < 15 ? "train" : "valid");
  touch(dir_ / "all.csv", rows);
  const std::string said = message_of([&] { found_in("all.csv", needs); });
  EXPECT_NE(
      said.find("type experiment=im2im/regression_scalar target_col=\"'number of cells'\", or "
                "experiment=im2im/classification target_col=site"),
      std::string::npos)
      << said;
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = rows.find(from); at != std::string::npos; at = rows.find(from, at))
      rows.replace(at, from.size(), to);
    touch(dir_ / "all.csv", rows);
  };
  replace(",5;", ";");
  replace("site", "");  // a column without a name, as pandas writes its index
  EXPECT_EQ(found_in("all.csv", needs),
            " source_col=[image] target_col=[number of cells] data.split_column=[split]");
  touch(dir_ / "words.csv", "raw,diagnosis\na.tif,no\nb.tif,yes\nc.tif,no\nd.tif,yes\n");
  EXPECT_EQ(found_in("words.csv", needs), " target_col=[diagnosis] class_names=[no,yes]");
  touch(dir_ / "words.csv", "raw,EncodedPixels\na.tif,1 2\n");
  EXPECT_NE(message_of([&] { found_in("words.csv", needs); }).find("run lengths"),
            std::string::npos);
  touch(dir_ / "words.csv", "raw,name\na.tif,no\nb.tif,yes\nc.tif,one\nd.tif,two\n");
  EXPECT_EQ(found_in("words.csv", needs), "none");
}

TEST_F(Layout, TablesOfWindows) {
  add({"Bilder/a.tif", "Masken/a.tif"});
  for (const std::string place : {"", R"(C:\Daten\x\)", R"(\\server\share\)"}) {
    touch(dir_ / "train.csv",
          "Bild;Maske\n" + place + R"(Bilder\a.tif;)" + place + "Masken\\a.tif\n");
    EXPECT_EQ(found(), " source_col=[Bild] target_col=[Maske]") << place;
    EXPECT_EQ(data::path_in_table(dir_ / "train.csv", place + R"(Bilder\a.tif)"),
              dir_ / "Bilder/a.tif");
  }
  EXPECT_EQ(data::path_in_table(dir_ / "train.csv", R"(x\a.tif)"), dir_ / R"(x\a.tif)");
  EXPECT_EQ(data::path_in_table(dir_ / "train.csv", R"(\\)"), dir_ / R"(\\)");
}

TEST(FolderDatamodule, PartsInTheNamesOfFolders) {
  const test::TmpDir dir;
  for (const char* name : {"Train/a", "TrainMask/a", "VAL/b", "VALMask/b"})
    touch(dir / name + ".png");
  const auto module = make("{_target_: FolderDatamodule, path: '" + dir.path() +
                           "', columns: [raw, seg], folders: ['{split}', '{split}Mask']}");
  EXPECT_EQ(module->items(data::Split::train).at(0).sources.at("seg").path,
            dir / "TrainMask/a.png");
  EXPECT_EQ(module->items(data::Split::valid).at(0).sources.at("seg").path, dir / "VALMask/b.png");
  EXPECT_NE(message_of([&] { module->items(data::Split::test); }).find("test: no such folder"),
            std::string::npos);
}

TEST(FolderDatamodule, TheGroupOfARegexIsWithoutTheEnding) {
  const test::TmpDir dir;
  for (const char* name : {"a", "b"}) {
    touch(dir / name + ".ome.tif");
    touch(dir / "masks/" + name + "_cp_masks.tif");
  }
  const auto module = make("{_target_: FolderDatamodule, path: '" + dir.path() +
                           "', columns: [raw, seg], folders: ['.', masks], regex: ['(.*)', "
                           "'(.*)_cp_masks'], valid_fraction: 0.5}");
  EXPECT_EQ(module->items(data::Split::train).at(0).sources.at("seg").path,
            dir / "masks/a_cp_masks.tif");
}

TEST(FolderDatamodule, ImagesWithoutATarget) {
  const test::TmpDir dir;
  for (const char* name : {"a", "b", "c", "d"}) touch(dir / "raw/" + name + ".tif");
  for (const char* name : {"a", "c", "d"}) touch(dir / "seg/" + name + ".png");
  const std::string config =
      "{_target_: FolderDatamodule, path: '" + dir.path() + "', columns: [raw, seg]";
  const std::string why = message_of([&] { make(config + "}")->items(data::Split::train); });
  EXPECT_NE(why.find("of 4 images 1 has no partner, which data.on_error=skip leaves out"),
            std::string::npos)
      << why;
  const auto module = make(config + ", on_error: skip, valid_fraction: 0.34}");
  EXPECT_EQ(module->items(data::Split::train).size(), 2U);
  EXPECT_EQ(module->items(data::Split::valid).size(), 1U);
}

TEST(FolderDatamodule, PartsBelowTheColumnsAndWithoutValidation) {
  const test::TmpDir dir;
  for (const char* name : {"train/a", "train/b", "val/c"}) {
    touch(dir / "images/" + name + ".png");
    touch(dir / "labels/" + name + ".png");
  }
  const std::string config = "{_target_: FolderDatamodule, path: '" + dir.path() +
                             "', columns: [raw, seg], folders: [images, labels]}";
  EXPECT_EQ(make(config)->items(data::Split::train).size(), 2U);
  EXPECT_EQ(make(config)->items(data::Split::valid).at(0).id, dir / "images/val/c.png");
  std::filesystem::remove_all(dir / "images/val");
  std::filesystem::remove_all(dir / "labels/val");
  const std::string half = config.substr(0, config.size() - 1) + ", valid_fraction: 0.5}";
  EXPECT_EQ(make(half)->items(data::Split::train).at(0).id, dir / "images/train/a.png");
  EXPECT_EQ(make(half)->items(data::Split::valid).at(0).id, dir / "images/train/b.png");
}

TEST(FolderDatamodule, AnnotationsBesideTheirImageAreTheTarget) {
  const test::TmpDir dir;
  for (const char* name : {"a", "b"}) {
    touch(dir / name + ".jpg");
    touch(dir / name + ".json", "{}");
  }
  const auto module = make("{_target_: FolderDatamodule, path: '" + dir.path() +
                           "', columns: [raw, seg], folders: ['.', '.'], valid_fraction: 0.5}");
  EXPECT_EQ(module->items(data::Split::train).at(0).sources.at("seg").path, dir / "a.json");
}

}  // namespace
}  // namespace cytra
