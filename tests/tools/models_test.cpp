// Models of others in predict and export_model: tests/golden/make_models.py.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "io/reader.h"
#include "io/safetensors.h"
#include "tests/support/program.h"

namespace cytra {
namespace {

using test::Outcome;
using test::shell;

const std::string kGolden = CYTRA_SOURCE_DIR "/tests/golden/models/";

std::string value_in(const std::string& text, const std::string& key) {
  for (const std::string& line : split(text, '\n')) {
    if (line.starts_with(key + ": ")) return line.substr(key.size() + 2);
  }
  return "";
}

std::vector<float> floats(const void* data, std::size_t bytes) {
  std::vector<float> values(bytes / sizeof(float));
  std::memcpy(values.data(), data, bytes);
  return values;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  return largest;
}

/// The logits that `checkpoint` predicts of an image.
std::vector<float> logits_of(const std::string& checkpoint,
                             const std::string& image,
                             const std::string& more = "") {
  const test::TmpDir dir;
  const Outcome outcome =
      shell("\"$BIN/predict\" 'checkpoint.ckpt_path=" + checkpoint + "' 'data.path=" + image +
            "' trainer.accelerator=cpu predict.save=logits predict.format=npy "
            "'paths.output_dir=" +
            (dir / "out") + "' " + more);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  if (outcome.code != 0) return {};
  const io::Image values = io::read_image(value_in(outcome.out, "prediction"));
  return floats(values.pixels.data(), values.pixels.size());
}

TEST(ModelsOfOthers, ABundlePredictsAsMonaiDoes) {
  const io::SafetensorsFile expected(kGolden + "expected.safetensors");
  const io::TensorView& logits = expected.tensors().at("bundle/logits");
  const std::vector<float> got = logits_of(kGolden + "a bundle", kGolden + "image.nii.gz");
  EXPECT_LT(largest_difference(got, floats(logits.data, logits.bytes)), 1e-5);
}

TEST(ModelsOfOthers, ACheckpointTwiceIsTheSameAsOnce) {
  const std::string bundle = kGolden + "a bundle", image = kGolden + "image.nii.gz";
  EXPECT_LT(largest_difference(logits_of("[" + bundle + "," + bundle + "]", image),
                               logits_of(bundle, image)),
            1e-6);
}

/// What predict makes of TotalSegmentator's models: tests/golden/make_totalsegmentator.py.
Outcome total_segmentation(const std::string& models, const std::string& out) {
  const std::string golden = CYTRA_SOURCE_DIR "/tests/golden/totalsegmentator/";
  return shell("cd '" + golden + "' && \"$BIN/predict\" 'checkpoint.ckpt_path=" + models +
               "' data.path=ct.nii.gz trainer.accelerator=cpu 'paths.output_dir=" + out + "'");
}

TEST(ModelsOfOthers, TotalSegmentatorsLabelAsItDoes) {
  for (const auto& [name, models] :
       {std::pair("total", "Dataset29*_part*"),
        std::pair("fast", "Dataset297_TotalSegmentator_total_3mm_1559subj")}) {
    SCOPED_TRACE(name);
    const test::TmpDir dir;
    const Outcome outcome = total_segmentation(models, dir / "out");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const io::Image made = io::read_image(value_in(outcome.out, "prediction"));
    const io::Image expected = io::read_image(CYTRA_SOURCE_DIR "/tests/golden/totalsegmentator/" +
                                              std::string(name) + ".nii.gz");
    ASSERT_EQ(made.dtype, expected.dtype);
    ASSERT_EQ(made.pixels.size(), expected.pixels.size());
    int64_t differ = 0;
    for (std::size_t i = 0; i < made.pixels.size(); ++i)
      differ += made.pixels[i] != expected.pixels[i];
    // At an image's edges the weights of windows are smallest, and of other rounding there.
    EXPECT_LE(static_cast<double>(differ), 2e-3 * static_cast<double>(made.pixels.size()));
  }
}

TEST(ModelsOfOthers, TotalSegmentatorsPartsAreAllThereInOrder) {
  const test::TmpDir dir;
  const std::string first = "Dataset291_TotalSegmentator_part1_organs_1559subj",
                    second = "Dataset292_TotalSegmentator_part2_vertebrae_1532subj";
  for (const auto& [models, message] :
       {std::pair("[" + first + "," + second + "]",
                  "Dataset293_TotalSegmentator_part3_cardiac_1559subj"),
        std::pair("[" + second + "," + first + "]", "expected these in this order"),
        std::pair("[" + first + ",Dataset297_TotalSegmentator_total_3mm_1559subj]",
                  "has the class 'spleen', as a model before it")}) {
    const Outcome outcome = total_segmentation(models, dir / "out");
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
  }
  const Outcome alone = total_segmentation(first, dir / "out");
  EXPECT_EQ(alone.code, 0) << alone.err;
}

TEST(ModelsOfOthers, AreExported) {
  const test::TmpDir dir;
  const auto export_as = [&](const std::string& model, const std::string& format) {
    return shell("\"$BIN/export_model\" 'checkpoint.ckpt_path=" + kGolden + model +
                 "' format=" + format + " 'output=" + (dir / "a model") + "'");
  };
  const Outcome onnx = export_as("traced.pt", "onnx");
  EXPECT_EQ(onnx.code, 0) << onnx.err;
  const std::string bytes = read_file(dir / "a model");
  EXPECT_NE(bytes.find("ConvTranspose"), std::string::npos);
  EXPECT_NE(bytes.find("cytra_version"), std::string::npos);
  for (const auto& [model, format, said] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"control flow.pt", "onnx", "this model can't be written as ONNX: "},
           {"*r*e*.pt", "onnx", "expected one model"},
           {"traced.pt", "safetensors", "expected torchscript or onnx"},
           {"a bundle", "onnx", "it can be run, but not exported"}}) {
    const Outcome outcome = export_as(model, format);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
    EXPECT_EQ(read_file(dir / "a model"), bytes) << "what was there is gone";
  }
}

/// What Cytra writes of a network of one's own it reads back: one with a least side, too.
TEST(ModelsOfOthers, AnExportedNetworkIsPredictedFromEachFormat) {
  const test::TmpDir dir;
  const auto at = [&](const std::string& name) { return dir / name; };
  EXPECT_EQ(shell("\"$BIN/generate_samples\" --train 2 --valid 1 --test 1 --size 64 --output '" +
                  at("samples") + "'")
                .code,
            0);
  const std::string image = at("samples") + "/images/test_0000_raw.ome.tif";
  int runs = 0;
  for (const char* network : {"sides/strided_2", "sides/least_4", "sides/pooled_8", "attention"}) {
    SCOPED_TRACE(network);
    const bool is_attention =
        std::string(network) == "attention";  // images of one size, one by one
    const std::string run = at("run") + std::to_string(runs++);
    const Outcome trained =
        shell("\"$BIN/train\" experiment=im2im/segmentation model=exported 'model.file=" +
              std::string(CYTRA_SOURCE_DIR) + "/tests/golden/exported/" + network +
              ".pt2' trainer.accelerator=cpu trainer.max_steps=1 'patch_shape=" +
              (is_attention ? "[64,64]" : "[48,48]") +
              "' "
              "num_classes=" +
              (is_attention ? "2" : "1") + " 'data.path=" + at("samples") +
              "' 'paths.output_dir=" + run + "'");
    ASSERT_EQ(trained.code, 0) << trained.err;
    const std::string checkpoint = run + "/checkpoints/last.ckpt";
    const std::vector<float> expected = logits_of(checkpoint, image);
    for (const std::string format : {"torchscript", "onnx", "safetensors"}) {
      if (is_attention && format == "onnx") continue;  // it has no form of attention
      const std::string net = run + format;
      const Outcome exported = shell("\"$BIN/export_model\" 'checkpoint.ckpt_path=" + checkpoint +
                                     "' format=" + format + " 'output=" + net + "'");
      ASSERT_EQ(exported.code, 0) << format << exported.err;
      EXPECT_LT(largest_difference(logits_of(net, image), expected), 1e-5) << format;
    }
  }
}

/// Networks that take one size, of images that are smaller than it and no multiples of it.
TEST(ModelsOfOthers, ExportsOfOneSizePredictAsTheirCheckpoints) {
  const test::TmpDir dir;
  std::vector<std::string> images;
  for (const std::string size : {"24", "72"}) {
    const std::string folder = dir / ("samples" + size);
    EXPECT_EQ(shell("\"$BIN/generate_samples\" --train 2 --valid 1 --test 1 --size " + size +
                    " --output '" + folder + "'")
                  .code,
              0);
    images.push_back(folder + "/images/test_0000_raw.ome.tif");
  }
  const std::string vit =
      "'patch_shape=[32,32]' model.emb_dim=16 model.encoder_layer=2 model.encoder_head=2 ";
  for (const auto& [name, shape, training] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"mae",
            "[32,32]",
            "experiment=im2im/mae model.decoder_layer=1 model.decoder_dim=18 " + vit},
           {"seg_vit",
            "[32,32]",
            "experiment=im2im/vit_segmentation model.n_decoder_filters=16 " + vit},
           {"swin_unetr",
            "[64,64]",
            "experiment=im2im/segmentation model=swin_unetr 'patch_shape=[64,64]' "
            "model.feature_size=12"},
           {"dynunet",
            "[32,32]",
            "experiment=im2im/segmentation 'model.filters=[4,8]' 'patch_shape=[32,32]'"}}) {
    SCOPED_TRACE(name);
    const std::string run = dir / name, checkpoint = run + "/checkpoints/last.ckpt";
    const Outcome trained =
        shell("\"$BIN/train\" " + training + " 'data.path=" + (dir / "samples72") +
              "' trainer.accelerator=cpu " + "trainer.max_steps=1 'paths.output_dir=" + run + "'");
    ASSERT_EQ(trained.code, 0) << trained.err;
    const std::string more =
        (name == "mae" ? "predict.save=auto " : "") + ("'inference_args.roi_size=" + shape + "'");
    for (const std::string format : {"torchscript", "onnx", "openvino"}) {
      const std::string file = run + format,
                        begin = "\"$BIN/export_model\" 'checkpoint.ckpt_path=" + checkpoint +
                                "' format=" + format + " 'output=" + file + "' export.input_shape=";
      const Outcome exported = shell(begin + "'" + shape + "'");
      ASSERT_EQ(exported.code, 0) << format << exported.err;
      for (const std::string& image : images)
        EXPECT_LT(
            largest_difference(logits_of(file + (format == "openvino" ? ".xml" : ""), image, more),
                               logits_of(checkpoint, image, more)),
            1e-4)
            << format << image;
      const Outcome wrong = shell(begin + "[33,33]");
      EXPECT_EQ(wrong.code, 2);
      EXPECT_NE(wrong.err.find("export.input_shape=[33,33]: "), std::string::npos) << wrong.err;
    }
  }
}

/// What `bioimageio test` says of such packages: tests/golden/check_bioimageio.py.
TEST(ModelsOfOthers, APackageIsReadAndWritten) {
  const test::TmpDir dir;
  const std::string package = CYTRA_SOURCE_DIR "/tests/golden/bioimageio/masks",
                    image = package + "/test_input.npy";
  const auto values_of = [&](const std::string& checkpoint, const std::string& out) {
    const Outcome outcome = shell("\"$BIN/predict\" 'checkpoint.ckpt_path=" + checkpoint +
                                  "' trainer.accelerator=cpu predict.save=probability "
                                  "predict.format=npy 'data.axes=TCYX' 'data.path=" +
                                  image + "' 'paths.output_dir=" + (dir / out) + "'");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("its test image gives its test output"), std::string::npos)
        << outcome.err;
    const io::Image values = io::read_image(value_in(outcome.out, "prediction"));
    return floats(values.pixels.data(), values.pixels.size());
  };
  const std::string written = dir / "nuclei.zip",
                    begin = "\"$BIN/export_model\" 'checkpoint.ckpt_path=" + package +
                            "' format=bioimageio 'output=" + written + "' ",
                    said =
                        "'bioimageio.authors=[Ada Lovelace]' bioimageio.license=MIT "
                        "'bioimageio.cite=[{text: A paper, url: \"https://example.com/\"}]'";
  const Outcome outcome = shell(begin + said);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_LT(largest_difference(values_of(written, "a"), values_of(package, "b")), 1e-6);
  for (const auto& [options, expected] : std::vector<std::pair<std::string, std::string>>{
           {"output=n.pt",
            "the zoo asks for output: a name that ends with .zip, not n.pt: a package is an "
            "archive; bioimageio.name: 5 to 128 characters, not n; bioimageio.authors: them, "
            "bioimageio.authors='[Ada Lovelace]'; bioimageio.license: one by its SPDX name, "
            "bioimageio.license=CC-BY-4.0; bioimageio.cite: what to cite"},
           {"'bioimageio.authors=[A]' 'bioimageio.cite=[{text: A}]'", "maps of text, and doi or"},
           {said + " output=nuclei.pt", "ends with .zip"}}) {
    const Outcome refused = shell(begin + options);
    EXPECT_EQ(refused.code, 2) << refused.err;
    EXPECT_NE(refused.err.find(expected), std::string::npos) << refused.err;
  }
}

/// What nnU-Net makes of such archives: tests/golden/check_nnunet.py.
TEST(ModelsOfOthers, AModelOfNnunetIsReadAndWritten) {
  const test::TmpDir dir;
  const std::string golden = CYTRA_SOURCE_DIR "/tests/golden/nnunet_models/",
                    folder = golden + "Dataset001_Planes/nnUNetTrainer__nnUNetPlans__2d",
                    fold = folder + "/fold_0/checkpoint_final.pth",
                    written = dir / "Dataset003_Back.zip";
  const auto values_of = [&](const std::string& checkpoint, const std::string& out) {
    const Outcome outcome =
        shell("\"$BIN/predict\" 'checkpoint.ckpt_path=" + checkpoint +
              "' trainer.accelerator=cpu predict.save=logits "
              "predict.format=npy 'data.path=" +
              golden + "images/plane_0000.png' 'paths.output_dir=" + (dir / out) + "'");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const io::Image values = io::read_image(value_in(outcome.out, "prediction"));
    EXPECT_EQ(values.shape[2], 50);  // rows that are 0 are cut off, and given back
    return floats(values.pixels.data(), values.pixels.size());
  };
  const std::string begin = "\"$BIN/export_model\" 'checkpoint.ckpt_path=" + fold +
                            "' format=nnunet 'output=" + written + "' ";
  const Outcome outcome = shell(begin);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(values_of(written, "a"), values_of(fold, "b"));
  EXPECT_NE(values_of(folder, "c"), values_of(fold, "d"));  // all folds
  // Both channels of a volume whose axes nnU-Net turns, and its labels in the voxels of the file.
  const Outcome volume = shell("\"$BIN/predict\" 'checkpoint.ckpt_path=" + golden +
                               "Dataset002_Volumes' trainer.accelerator=cpu 'data.path=" + golden +
                               "images/same_0000.nii.gz' 'paths.output_dir=" + (dir / "e") + "'");
  ASSERT_EQ(volume.code, 0) << volume.err;
  const io::Image labels = io::read_image(value_in(volume.out, "prediction"));
  const io::SafetensorsFile expected_file(golden + "expected.safetensors");
  const io::TensorView& expected_labels = expected_file.tensors().at("same.labels");
  ASSERT_EQ(labels.pixels.size(), expected_labels.bytes);
  EXPECT_EQ(std::memcmp(labels.pixels.data(), expected_labels.data, expected_labels.bytes), 0);
  for (const auto& [options, expected] : std::vector<std::pair<std::string, std::string>>{
           {"output=back.zip", "expected Dataset, three digits and a name"},
           {"output=Dataset003_Back.pth", "ends with .zip"},
           {"nnunet.file_ending=.jpg", "expected .png, .bmp, .tif"},
           {"nnunet.file_ending=.nii.gz", "nnunet.spacing=[1,1]"}}) {
    const Outcome refused = shell(begin + options);
    EXPECT_EQ(refused.code, 2) << refused.err;
    EXPECT_NE(refused.err.find(expected), std::string::npos) << refused.err;
  }
}

TEST(ModelsOfOthers, WhatIsNoneIsOneLineAndExitCodeTwo) {
  for (const char* name :
       {"cut.pt", "two_inputs.pt", "saving.pt", "image.nii.gz", ".", "no such.pt"}) {
    const Outcome outcome = shell(
        "\"$BIN/predict\" data.path=a.tif trainer.accelerator=cpu "
        "'checkpoint.ckpt_path=" +
        kGolden + name + "'");
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(outcome.err.find("error: " + kGolden + name), 0U) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  }
}

const std::string kScripts = CYTRA_SOURCE_DIR "/tests/golden/scripts/";

TEST(ModelsOfOthers, WhatTheyPrintDoesNotReachStdout) {
  const test::TmpDir dir;
  const Outcome outcome = shell("\"$BIN/predict\" 'checkpoint.ckpt_path=" + kScripts +
                                "printing.pt' 'data.path=" + kScripts +
                                "image.png' trainer.accelerator=cpu "
                                "performance.backend=eager 'paths.output_dir=" +
                                (dir / "out") + "'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("forged"), std::string::npos) << outcome.out;
  EXPECT_EQ((outcome.out + outcome.err).find('\x1b'), std::string::npos);
}

TEST(ModelsOfOthers, AResultOfAnotherSizeIsTheModelsMistake) {
  const test::TmpDir dir;
  const Outcome outcome = shell("\"$BIN/predict\" 'checkpoint.ckpt_path=" + kScripts +
                                "halved.pt' 'data.path=" + kScripts +
                                "image.png' trainer.accelerator=cpu "
                                "performance.backend=eager 'paths.output_dir=" +
                                (dir / "out") + "'");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("expected a model that gives each pixel a value"), std::string::npos)
      << outcome.err;
}

TEST(ModelsOfOthers, OneThatNeverComesBackEndsBySigterm) {
  const test::TmpDir dir;
  const auto predict = [&](const std::string& name) {
    return "timeout --preserve-status -k 60 -s TERM 3 \"$BIN/predict\" 'checkpoint.ckpt_path=" +
           kScripts + name + ".pt' 'data.path=" + kScripts +
           "image.png' trainer.accelerator=cpu performance.backend=eager 'paths.output_dir=" +
           (dir / name) + "' & " + name + "=$!\n";
  };
  const Outcome outcome = shell(predict("endless") + predict("endless_load") +
                                "wait $endless; echo endless: $?\n"
                                "wait $endless_load; echo endless_load: $?");
  EXPECT_EQ(outcome.out, "endless: 143\nendless_load: 143\n") << outcome.err;
}

}  // namespace
}  // namespace cytra
