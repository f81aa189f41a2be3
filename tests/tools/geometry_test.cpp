// Masks whose files say where they lie, from --check-data to the scores of predict. The files are
// nibabel's and pydicom's (tests/golden/make_geometry.py).
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "io/reader.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
using test::Outcome;
using test::shell;

const std::string kFolder = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/geometry/";

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

std::string table_of(const std::string& raw, const std::string& seg) {
  return "raw,seg\n" + kFolder + raw + "," + kFolder + seg + "\n";
}

/// The model is the identity, so that the mask is where the image is above 0.
class Geometry : public ::testing::Test {
 protected:
  Outcome predict(const std::string& raw,
                  const std::string& seg,
                  const std::string& transforms,
                  const std::string& more = "") {
    return predict_table(table_of(raw, seg), transforms, more);
  }
  Outcome predict_table(const std::string& table,
                        const std::string& transforms,
                        const std::string& more = "") {
    write_text(dir_ / "model.yaml",
               "task:\n  x_key: raw\n  y_key: seg\n"
               "  model: {in_channels: 1, spatial_dims: 3, divisor: [1, 1, 1]}\n"
               "  inference_args: {roi_size: [8, 16, 16], mode: constant, overlap: 0}\n"
               "data:\n  transforms:\n    predict:\n"
               "      - {_target_: LoadImaged, keys: [raw, seg], spatial_dims: 3}\n" +
                   transforms);
    write_text(dir_ / "t.csv", table);
    return shell("cd \"" + (dir_ / "") +
                 "\" && $BIN/predict checkpoint.ckpt_path=" CYTRA_SOURCE_DIR
                 "/tests/golden/models/identity.ts performance.backend=eager "
                 "trainer.accelerator=cpu predict.overlay=false data.with_target=true "
                 "checkpoint.config=model.yaml data.path=t.csv paths.output_dir=out" +
                 std::to_string(count_++) + " " + more);
  }
  test::TmpDir dir_;
  int count_ = 0;
};

TEST_F(Geometry, AMaskInAnyOrientationScoresAsItLies) {
  for (const std::string transforms :
       {"",
        "      - {_target_: Orientationd, keys: [raw, seg], axcodes: RAS}\n",
        "      - {_target_: Orientationd, keys: [raw], axcodes: LPS}\n",
        "      - {_target_: Rotate90d, keys: [raw, seg]}\n"
        "      - {_target_: Flipd, keys: [raw, seg], spatial_axis: [0]}\n"}) {
    std::string table;
    for (const std::string name : {"same", "flip_x", "flip_xy", "flip_z", "permuted", "no_forms"}) {
      // What has no form can't be turned alone
      if (name == "no_forms" && transforms.find("[raw],") != std::string::npos) continue;
      table += kFolder + "raw.nii.gz," + kFolder + "seg_" + name + ".nii.gz\n";
    }
    const Outcome run = predict_table("raw,seg\n" + table, transforms);
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_NE(run.out.find("dice: 1.0\n"), std::string::npos) << transforms << run.out;
  }
  if (io::is_image_path(kFolder + "series")) {
    const Outcome run = predict("series", "seg_converter.nii.gz", "");
    EXPECT_NE(run.out.find("dice: 1.0\n"), std::string::npos) << run.out << run.err;
  }
}

TEST_F(Geometry, AnotherPlaceIsAnErrorThatNamesBothAndWhatToType) {
  const Outcome run = predict("raw.nii.gz", "seg_half_voxel.nii.gz", "");
  EXPECT_EQ(run.code, 2);
  for (const char* part : {"seg_half_voxel.nii.gz", "raw.nii.gz", "ResampleToMatchd", "affine"})
    EXPECT_NE(run.err.find(part), std::string::npos) << run.err;
  EXPECT_EQ(run.out.find("dice: 1"), std::string::npos);
  const Outcome finer = predict("raw.nii.gz",
                                "seg_finer.nii.gz",
                                "      - {_target_: ResampleToMatchd, keys: [seg], key_dst: raw, "
                                "mode: nearest}\n");
  EXPECT_NE(finer.out.find("dice: 1.0\n"), std::string::npos) << finer.out << finer.err;
  for (const auto& [name, choice] : {std::pair{"finer", "resample"}, {"half_voxel", "ignore"}}) {
    const Outcome mended = predict("raw.nii.gz",
                                   std::string("seg_") + name + ".nii.gz",
                                   "",
                                   std::string("data.on_mismatch=") + choice);
    EXPECT_NE(mended.out.find("dice: 1.0\n"), std::string::npos) << mended.out << mended.err;
  }
}

TEST_F(Geometry, CheckDataAndPlanSeeIt) {
  const auto check = [&](const std::string& seg, const std::string& more) {
    write_text(dir_ / "train.csv", table_of("raw.nii.gz", seg));
    write_text(dir_ / "valid.csv", table_of("raw.nii.gz", seg));
    return shell(
        "cd \"" + (dir_ / "") +
        "\" && $BIN/train experiment=im2im/segmentation_3d data.path=. model.filters=[4,8,8] "
        "patch_shape=[4,8,8] trainer.accelerator=cpu data.num_workers=0 data.allow_shared=true " +
        more);
  };
  const Outcome turned = check("seg_flip_z.nii.gz", "--check-data");
  EXPECT_NE(turned.out.find("in another order or direction"), std::string::npos) << turned.out;
  const Outcome shifted = check("seg_half_voxel.nii.gz", "--check-data");
  EXPECT_EQ(shifted.code, 2);
  EXPECT_NE(shifted.out.find("0.5 voxels beside"), std::string::npos) << shifted.out;
  EXPECT_NE(shifted.out.find("ResampleToMatchd"), std::string::npos) << shifted.out;
  for (const std::string choice : {"ignore", "resample"}) {
    const Outcome mended =
        check("seg_half_voxel.nii.gz", "--check-data data.on_mismatch=" + choice);
    EXPECT_EQ(mended.out.find("ResampleToMatchd"), std::string::npos) << mended.out;
  }
  const Outcome plan = check("seg_half_voxel.nii.gz", "--plan");
  EXPECT_EQ(plan.code, 2);
  EXPECT_NE(plan.err.find("ResampleToMatchd"), std::string::npos) << plan.err;
  const Outcome training = check("seg_half_voxel.nii.gz", "trainer.max_steps=1 paths.output_dir=t");
  EXPECT_EQ(training.code, 2);
  EXPECT_NE(training.err.find("ResampleToMatchd"), std::string::npos) << training.err;
}

TEST_F(Geometry, ResultsKeepTheFormsOfTheImage) {
  for (const std::string name : {"both_differ", "qform_only", "sform_only", "none"}) {
    // A copy, as an image is never its own target.
    std::filesystem::copy_file(kFolder + name + ".nii", dir_ / (name + ".nii"));
    const Outcome run = predict_table(
        "raw,seg\n" + kFolder + name + ".nii," + name + ".nii\n", "", "predict.save=logits");
    ASSERT_EQ(run.code, 0) << run.err;
    const std::string out = dir_ / "out" + std::to_string(count_ - 1) + "/" + name + ".nii.gz";
    const io::Geometry image = io::open_image(kFolder + name + ".nii")->info().geometry;
    const io::Geometry result = io::open_image(out)->info().geometry;
    EXPECT_EQ(result.sform, image.sform) << name;
    EXPECT_EQ(result.qform, image.qform) << name;
    EXPECT_EQ(result.xyzt_units, image.xyzt_units) << name;
    for (std::size_t i = 0; i < 12; ++i) {
      EXPECT_NEAR(result.affine[i], image.affine[i], 1e-4) << name;
      EXPECT_NEAR(result.qform_affine[i], image.qform_affine[i], 1e-4) << name;
    }
  }
}

}  // namespace
}  // namespace cytra
