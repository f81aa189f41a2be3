// Data as people bring it, from a folder to a mask, with what the first day's messages say to type.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/files.h"
#include "io/image.h"
#include "io/reader.h"
#include "io/tiff/ome_tiff.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using test::Outcome;
using test::shell;

class Newcomers : public ::testing::Test {
 protected:
  /// Bright boxes on noise, or the mask of them.
  static io::Image boxes(int64_t seed, int64_t planes, bool is_mask, int64_t side = 32) {
    io::Image image;
    image.shape = {1, planes, side, side};
    image.pixels.resize(image.bytes());
    for (std::size_t p = 0; p < image.pixels.size(); ++p) {
      const auto i = static_cast<int64_t>(p);
      const bool is_box = (i / side + seed) % 16 < 8 && (i + 3 * seed) % 16 < 8;
      image.pixels[p] = static_cast<unsigned char>(is_mask  ? is_box
                                                   : is_box ? 150 + i % 40
                                                            : i % 40);
    }
    return image;
  }
  void put(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(dir_ / path).parent_path());
    std::ofstream(dir_ / path) << text;
  }
  std::string place(const std::string& path) const {
    fs::create_directories(fs::path(dir_ / path).parent_path());
    return dir_ / path;
  }
  Outcome in_folder(const std::string& line) const {
    return shell("cd \"" + dir_.path() + "\" && PATH=\"$BIN:$PATH\" && " + line);
  }
  Outcome train(const std::string& words) const {
    return in_folder(
        "train trainer.accelerator=cpu performance.num_threads=1 data.num_workers=0 logger=none "
        "trainer.max_steps=1 trainer.limit_val_batches=1 model.filters=[4,8,8] " +
        words);
  }
  Outcome predict(const std::string& words) const {
    return in_folder("predict trainer.accelerator=cpu predict.overlay=false " + words);
  }
  /// With the identity for a model of stacks: what is read is what comes out.
  Outcome read(const std::string& words) const {
    put("model.yaml",
        "task:\n  x_key: raw\n  y_key: seg\n  model: {in_channels: 1, spatial_dims: 3, divisor: "
        "[1, 1, 1]}\n  inference_args: {roi_size: 16, mode: constant, overlap: 0}\n"
        "data:\n  transforms:\n    predict:\n      - {_target_: LoadImaged, keys: [raw, seg], "
        "spatial_dims: 3}\n");
    return predict("checkpoint.ckpt_path=" CYTRA_SOURCE_DIR
                   "/tests/golden/models/identity.ts performance.backend=eager "
                   "checkpoint.config=model.yaml predict.save=logits predict.format=npy " +
                   words);
  }
  const test::TmpDir dir_;
};

#define EXPECT_SAYS(outcome, text) \
  EXPECT_NE((outcome).err.find(text), std::string::npos) << text << " is not in " << (outcome).err

// Four cases of two files each, without splits_final.json.
TEST_F(Newcomers, NnUnetsFewCasesTrainAndPredict) {
  for (int i = 0; i < 5; ++i) {
    const std::string name = "case" + std::to_string(i), part = i < 4 ? "Tr/" : "Ts/";
    for (const char* channel : {"_0000.nii.gz", "_0001.nii.gz"})
      io::write_nifti(place("set/images" + part + name + channel), boxes(i, 16, false));
    if (i < 4) io::write_nifti(place("set/labelsTr/" + name + ".nii.gz"), boxes(i, 16, true));
  }
  const std::string begin =
      R"({"channel_names": {"0": "a", "1": "b"}, "numTraining": 4, "file_ending": ".nii.gz", )";
  put("set/dataset.json", begin + R"("labels": {"background": 0, "cell": 1}})");
  const Outcome trained = train("data.path=set patch_shape=[16,32,32] paths.output_dir=run");
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_SAYS(trained, "train: 3 images");
  EXPECT_SAYS(trained, "raw_im_channels=2");
  EXPECT_SAYS(trained, "trainer.max_steps=2 checkpoint.ckpt_path=");  // it has had its one
  for (const char* path : {"set", "set/imagesTs"}) {
    const Outcome predicted = predict("checkpoint.ckpt_path=run data.path=" + std::string(path) +
                                      " paths.output_dir=out");
    ASSERT_EQ(predicted.code, 0) << predicted.err;
    EXPECT_TRUE(fs::exists(dir_ / "out/case4.nii.gz")) << predicted.out;
    fs::remove_all(dir_ / "out");
  }
  // A test without labels is told ahead of the training
  const Outcome untested =
      train("data.path=set patch_shape=[16,32,32] paths.output_dir=no test=true");
  EXPECT_EQ(untested.code, 2);
  EXPECT_SAYS(untested, "test=true: 1 of 1 images of the test have no seg, as set/imagesTs/case4");
  EXPECT_EQ(untested.err.find("epoch 0"), std::string::npos) << untested.err;
  EXPECT_FALSE(fs::exists(dir_ / "no"));
  // What it says of the labels wins over what their values look like, and can't be contradicted
  put("set/dataset.json", begin + R"("labels": {"background": 0, "cell": 1, "nucleus": 2}})");
  const Outcome three = train("data.path=set patch_shape=[16,32,32] paths.output_dir=three");
  EXPECT_SAYS(three, "num_classes=3");
  const Outcome one =
      train("data.path=set patch_shape=[16,32,32] paths.output_dir=one num_classes=1");
  EXPECT_EQ(one.code, 2);
  EXPECT_SAYS(one, "num_classes=1");
  EXPECT_SAYS(one, "2 (nucleus)");
  EXPECT_SAYS(one, "expected num_classes=3");
  const Outcome mended = train(
      "data.path=set patch_shape=[16,32,32] paths.output_dir=mended num_classes=1 "
      "task.target_threshold=0");
  EXPECT_EQ(mended.code, 0) << mended.err;
}

TEST_F(Newcomers, TheDecathlonsChannelsTrainAndPredict) {
  std::string training;
  for (int i = 0; i < 5; ++i) {
    const std::string name = "case" + std::to_string(i);
    io::ImageInfo info;
    info.shape = {1, 16, 32, 32};
    info.timepoints = 2;
    io::OmeTiffWriter writer(
        place(i < 4 ? "set/imagesTr/" + name + ".ome.tif" : "set/imagesTs/" + name + ".ome.tif"),
        info);
    for (int64_t t = 0; t < 2; ++t) writer.write({}, boxes(i + t, 16, false), t);
    writer.finish();
    if (i == 4) break;
    io::write_ome_tiff(place("set/labelsTr/" + name + ".ome.tif"), boxes(i, 16, true));
    training += (i == 0 ? "" : ",") + std::string(R"({"image": "./imagesTr/)") + name +
                R"(.ome.tif", "label": "./labelsTr/)" + name + R"(.ome.tif"})";
  }
  const auto describe = [&](const std::string& more) {
    put("set/dataset.json",
        R"({"labels": {"0": "background", "1": "cell"}, "tensorImageSize": "4D", "training": [)" +
            training + R"(], "test": ["./imagesTs/case4.ome.tif"], )" + more + "}");
  };
  describe(R"("modality": {"0": "a", "1": "b"}, "numTraining": 4)");
  const Outcome trained = train("data.path=set patch_shape=[16,32,32] paths.output_dir=run");
  ASSERT_EQ(trained.code, 0) << trained.err;
  for (const char* path : {"set", "set/dataset.json", "set/imagesTs/case4.ome.tif"}) {
    const Outcome predicted = predict("checkpoint.ckpt_path=run data.path=" + std::string(path) +
                                      " paths.output_dir=out");
    ASSERT_EQ(predicted.code, 0) << predicted.err;
    EXPECT_TRUE(fs::exists(dir_ / "out/case4.ome.tif")) << predicted.out;
    fs::remove_all(dir_ / "out");
  }
  for (const auto& [more, says] :
       {std::pair{R"("modality": {"0": "a"})", "modality names 1 channels"},
        {R"("modality": {"0": "a", "1": "b"}, "numTraining": 5)", "numTraining is 5"},
        {R"("modality": {"0": "a", "1": "b"}, "numTest": 3)", "numTest is 3"}}) {
    describe(more);
    const Outcome refused = train("data.path=set paths.output_dir=refused");
    EXPECT_EQ(refused.code, 2) << more;
    EXPECT_SAYS(refused, says);
  }
}

// One image trains; the model of planes takes every image of a file, and says what it needs for a
// stack.
TEST_F(Newcomers, FoldersOfClassesTrainAndPredict) {
  for (int i = 0; i < 10; ++i) {
    const std::string name = i < 5 ? "Cat/" : "dog/";
    io::write_ome_tiff(place("classes/" + name + std::to_string(i) + ".tif"), boxes(i, 1, i < 5));
  }
  const std::string words =
      "train trainer.accelerator=cpu performance.num_threads=1 data.num_workers=0 logger=none "
      "patch_shape=[32,32] trainer.max_steps=1 data.path=classes ";
  const Outcome trained = in_folder(words + "paths.output_dir=run");
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_SAYS(trained, "experiment=im2im/classification data=class_folders");
  EXPECT_SAYS(trained, "'class_names=[Cat,dog]' (a folder of images for each class)");
  EXPECT_SAYS(trained, "train: 8 images");
  // What was held out is scored, and the parent of the classes' folders is predicted
  const Outcome scored = predict(
      "checkpoint.ckpt_path=run data.path=run/held_out.csv data.with_target=true "
      "paths.output_dir=scored");
  ASSERT_EQ(scored.code, 0) << scored.err;
  EXPECT_NE(scored.out.find("accuracy"), std::string::npos) << scored.out;
  const Outcome predicted =
      predict("checkpoint.ckpt_path=run data.path=classes paths.output_dir=all");
  ASSERT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_EQ(in_folder("wc -l <all/predictions.csv").out, "11\n");
  EXPECT_EQ(in_folder(words + "--check-data").code, 0);
  const Outcome masks = in_folder(words + "experiment=im2im/segmentation paths.output_dir=no");
  EXPECT_EQ(masks.code, 2) << masks.err;
}

TEST_F(Newcomers, OneImageTrainsAndFilesArePredictedWhole) {
  io::write_png(place("one/raw/only.png"), boxes(0, 1, false, 64));
  io::write_png(place("one/seg/only.png"), boxes(0, 1, true, 64));
  const Outcome trained = train("data.path=one patch_shape=[32,32] paths.output_dir=run");
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_SAYS(trained, "the only image, so validation has the same");
  const std::string begin = "checkpoint.ckpt_path=run data.path=";
  const Outcome plate = predict(begin + CYTRA_SOURCE_DIR
                                "/tests/golden/zarr/v3/plate_0.4.zarr paths.output_dir=plate");
  ASSERT_EQ(plate.code, 0) << plate.err;
  EXPECT_SAYS(plate, "4 of 4 images predicted");
  for (const char* scene : {"_A1_0", "_A1_1", "_B1_0", "_B1_1"})
    EXPECT_TRUE(fs::exists(dir_ / "plate/plate_0.4" + scene + ".ome.zarr")) << scene << plate.out;
  EXPECT_EQ(plate.err.find("left out"), std::string::npos) << plate.err;
  io::write_ome_tiff(place("stack.tif"), boxes(0, 5, false));
  const Outcome stack = predict(begin + "stack.tif paths.output_dir=stack");
  EXPECT_EQ(stack.code, 0) << stack.err;
  const Outcome typed =
      predict(begin + "stack.tif paths.output_dir=typed inference_args.spatial_dim=0");
  EXPECT_EQ(typed.code, 0) << typed.err;
  EXPECT_EQ(read_file(dir_ / "stack/stack.ome.tif"), read_file(dir_ / "typed/stack.ome.tif"));
}

TEST_F(Newcomers, FoldersWithoutImagesAndTablesOfTwoKindsAreNamed) {
  fs::create_directories(dir_ / "empty/below");
  const Outcome empty = train("data.path=empty paths.output_dir=run");
  EXPECT_EQ(empty.code, 2);
  EXPECT_SAYS(empty, "empty: no images in this folder, nor below it; DICOM, TIFF, OME-Zarr, NIfTI");
  EXPECT_EQ(empty.err.find("train.csv"), std::string::npos) << empty.err;
  for (int i = 0; i < 3; ++i) {
    io::write_ome_tiff(place("t/r" + std::to_string(i) + ".tif"), boxes(i, 1, false));
    io::write_ome_tiff(place("t/s" + std::to_string(i) + ".tif"), boxes(i, 1, true));
  }
  put("t/train.tsv", "raw;seg;weight\nr0.tif;s0.tif;0,5\nr1.tif;s1.tif;1,5\n");
  put("t/val.csv", "raw\tseg\nr2.tif\ts2.tif\n");
  const std::string words = "data.path=t patch_shape=[32,32] paths.output_dir=";
  const Outcome good = train(words + "good data.weight_column=null");
  EXPECT_EQ(good.code, 0) << good.err;
  put("t/val.csv", "raw\tseg\nr1.tif\ts1.tif\n");
  const Outcome shared = train(words + "shared");
  EXPECT_EQ(shared.code, 2);
  EXPECT_SAYS(shared, "r1.tif: this image is for training and for validation");
  EXPECT_EQ(train(words + "typed data.allow_shared=true").code, 0);
  put("t/train.csv", "raw,seg\nr0.tif,s0.tif\n");
  const Outcome two = train(words + "two");
  EXPECT_EQ(two.code, 2);
  EXPECT_SAYS(two, "t/train.csv and t/train.tsv: two tables for train");
}

TEST_F(Newcomers, OnePlaneIsAStackOfOne) {
  io::write_ome_tiff(place("p/tiff.ome.tif"), boxes(0, 1, false));
  io::write_nifti(place("p/nifti.nii.gz"), boxes(0, 1, false));
  io::write_png(place("p/png.png"), boxes(0, 1, false));
  io::write_npy(place("p/npy.npy"), boxes(0, 1, false));
  const Outcome planes = read("data.path=p paths.output_dir=out");
  EXPECT_EQ(planes.code, 0) << planes.err;
  EXPECT_SAYS(planes, "4 of 4 images predicted");
}

}  // namespace
}  // namespace cytra
