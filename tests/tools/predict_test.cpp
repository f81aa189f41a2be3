// `predict` as a user meets it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "io/objects/palette.h"
#include "io/reader.h"
#include "io/tiff/ome_tiff.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using test::Outcome;
using test::shell;

/// A 2D model with patches of 32, trained once for a step.
class Predict : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new test::TmpDir();
    const Outcome made = shell("\"$BIN/generate_samples\" --output '" + at("samples") +
                               "' --train 1 --valid 1 --test 1 --size 64 --seed 3");
    ASSERT_EQ(made.code, 0) << made.err;
    const Outcome trained = shell(
        "\"$BIN/train\" experiment=im2im/segmentation trainer.accelerator=cpu "
        "trainer.max_steps=1 patch_shape=[32,32] model.filters=[4,8,8] 'data.path=" +
        at("samples") + "' 'paths.output_dir=" + at("run") + "'");
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }
  static std::string at(const std::string& name) { return *dir_ / name; }
  static std::string command(const std::string& path, const std::string& more = "") {
    return "\"$BIN/predict\" 'checkpoint.ckpt_path=" + at("run/checkpoints/last.ckpt") +
           "' trainer.accelerator=cpu 'data.path=" + path + "' 'paths.output_dir=" + path +
           ".out' " + more;
  }
  static std::vector<std::string> values_of(const std::string& text, const std::string& key) {
    std::vector<std::string> values;
    for (const std::string& line : split(text, '\n')) {
      if (line.starts_with(key + ": ")) values.push_back(line.substr(key.size() + 2));
    }
    return values;
  }
  static io::Image noise(std::array<int64_t, 4> shape) {
    io::Image image;
    image.shape = shape;
    image.pixels.resize(image.bytes());
    uint32_t state = 1;
    for (unsigned char& byte : image.pixels)
      byte = static_cast<unsigned char>((state = state * 1664525 + 1013904223) >> 24);
    return image;
  }
  static test::TmpDir* dir_;
};
test::TmpDir* Predict::dir_ = nullptr;

TEST_F(Predict, WhatHasNoEffectOnACpuIsSaidOnce) {
  for (const auto& [words, expected] : std::vector<std::pair<std::string, std::string>>{
           {"model.compile_model=true model.compile_mode=max-autotune",
            "model.compile_model: no effect: on a CPU"},
           {"model.compile_model=true performance.backend=eager",
            "model.compile_model: no effect: performance.backend=eager"},
           {"model.compile_mode=reduce-overhead",
            "model.compile_mode: no effect: model.compile_model is false"},
           {"'performance.fusion_strategy=[[STATIC,2],[DYNAMIC,10]]'",
            "performance.fusion_strategy: no effect"}}) {
    const Outcome outcome = shell(command(at("samples/images"), words));
    EXPECT_EQ(outcome.code, 0) << words << outcome.err;
    EXPECT_NE(outcome.err.find(expected), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("no effect"), outcome.err.rfind("no effect")) << outcome.err;
  }
}

// Each of them used to fail, or to do nothing, once for each image.
TEST_F(Predict, AWrongOptionIsToldOnceBeforeTheFirstImage) {
  for (const auto& [words, expected] : std::vector<std::pair<std::string, std::string>>{
           {"performance.backend=cudagraph", "needs a GPU"},
           {"trainer.precision=64", "use 32, bf16 or 16"},
           {"performance.quantization=int8 performance.backend=eager",
            "performance.backend=openvino"},
           {"performance.quantization=int8_dynamc", "Did you mean 'int8_dynamic'?"},
           {"'performance.fusion_strategy=[[STATC,2]]'", "Did you mean 'static'?"},
           {"'tta.mirror_axes=[0,-2]'", "expected each once"},
           {"trainer.limit_predict_batches=0", "one image at least"},
           {"'data.spacing_um=[0]'", "numbers above 0"},
           {"'inference_args.roi_size=[32,32,32]'", "has 3 numbers"}}) {
    const Outcome outcome = shell(command(at("samples/images"), words));
    EXPECT_EQ(outcome.code, 2) << words << outcome.err;
    EXPECT_NE(outcome.err.find(expected), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("error: "), outcome.err.rfind("error: ")) << outcome.err;
    EXPECT_TRUE(values_of(outcome.out, "failed").empty()) << outcome.out;
  }
}

TEST_F(Predict, TellsWhatHasNoEffect) {
  const Outcome outcome =
      shell(command(at("samples/images"), "trainer=cpu trainer.max_epochs=3 +seed=1 --check"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* told : {"trainer.max_epochs: no effect here", "seed: no effect here"})
    EXPECT_NE(outcome.err.find(told), std::string::npos) << outcome.err;
}

TEST_F(Predict, NiftiInNiftiOut) {
  io::Image image = noise({1, 1, 50, 70});
  const double c = std::cos(0.7), s = std::sin(0.7);
  image.geometry.affine = {0.5 * c, -0.75 * s, 0, -11.5, 0.5 * s, 0.75 * c, 0, 22, 0, 0, -2, 3};
  image.geometry.spacing_um = {2000, 750, 500};
  io::write_nifti(at("oblique.nii.gz"), image);
  const Outcome outcome = shell(command(at("oblique.nii.gz")));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string path = at("oblique.nii.gz.out/oblique.nii.gz");
  EXPECT_EQ(values_of(outcome.out, "prediction"), (std::vector<std::string>{path}));
  const io::Image mask = io::read_image(path);
  EXPECT_EQ(mask.shape, image.shape);
  EXPECT_EQ(mask.dtype, io::Dtype::u8);
  for (std::size_t i = 0; i < 12; ++i)
    EXPECT_NEAR(mask.geometry.affine[i], image.geometry.affine[i], 1e-6) << i;
}

TEST_F(Predict, ResumeLeavesFoldersOfOthersAlone) {
  std::filesystem::create_directories(at("own"));
  std::filesystem::copy(at("samples/images/test_0000_raw.ome.tif"), at("own/a.ome.tif"));
  const std::string before = read_file(at("own/a.ome.tif"));
  const Outcome outcome =
      shell(command(at("own/a.ome.tif"), "--resume 'paths.output_dir=" + at("own") + "'"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(read_file(at("own/a.ome.tif")), before);
  EXPECT_NE(outcome.err.find("has no results of predict"), std::string::npos) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists(at("own-1/a.ome.tif")));
}

TEST_F(Predict, ResumePredictsAnewWhereAnOptionThatChangesNumbersDiffers) {
  const std::string raw = at("samples/images/test_0000_raw.ome.tif");
  const std::string words = "--resume 'paths.output_dir=" + at("anew") + "' ";
  ASSERT_EQ(shell(command(raw, "'paths.output_dir=" + at("anew") + "'")).code, 0);
  Outcome outcome = shell(command(raw, words + "performance.num_threads=1"));
  EXPECT_NE(outcome.err.find("1 of them before"), std::string::npos) << outcome.err;
  for (const char* option : {"performance.matmul_precision=medium",
                             "performance.enable_tf32=true",
                             "model.channels_last=true",
                             "tta.rotate90=true"}) {
    outcome = shell(command(raw, words + option));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err.find("of them before"), std::string::npos) << option << outcome.err;
    outcome = shell(command(raw, words + option));
    EXPECT_NE(outcome.err.find("1 of them before"), std::string::npos) << option << outcome.err;
  }
}

TEST_F(Predict, TheOverlayIsTheMaskOverTheImage) {
  const std::string raw = at("samples/images/test_0000_raw.ome.tif");
  const Outcome outcome = shell(command(raw, "'paths.output_dir=" + at("overlaid") + "'"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const io::Image image = io::read_image(raw),
                  mask = io::read_image(values_of(outcome.out, "prediction").at(0)),
                  overlay = io::read_image(values_of(outcome.out, "overlay").at(0));
  const auto height = static_cast<std::size_t>(image.shape[2]),
             width = static_cast<std::size_t>(image.shape[3]), size = height * width;
  ASSERT_EQ(mask.shape, image.shape);
  ASSERT_EQ(overlay.shape, (std::array<int64_t, 4>{3, 1, image.shape[2], image.shape[3]}));
  std::vector<std::pair<int, int>> shown;  // of the background: brightness on file and here
  std::size_t outline = 0, inside = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t y = i / width, x = i % width;
    const auto colour = [&](std::size_t c) -> int { return overlay.pixels[c * size + i]; };
    if (mask.pixels[i] == 0) {
      EXPECT_TRUE(colour(0) == colour(1) && colour(1) == colour(2)) << y << " " << x;
      uint16_t value = 0;
      std::memcpy(&value, image.pixels.data() + i * sizeof value, sizeof value);
      shown.emplace_back(value, colour(0));
      continue;
    }
    const auto differs = [&](std::size_t other) { return mask.pixels[other] != mask.pixels[i]; };
    const bool is_outline = (x > 0 && differs(i - 1)) || (x + 1 < width && differs(i + 1)) ||
                            (y > 0 && differs(i - width)) || (y + 1 < height && differs(i + width));
    ++(is_outline ? outline : inside);
    const double share = is_outline ? 0.9 : 0.15;  // of the class's colour, over any grey
    for (std::size_t c = 0; c < 3; ++c) {
      const double least = share * io::label_colour(mask.pixels[i])[c];
      EXPECT_GE(colour(c), least - 1) << y << " " << x;
      EXPECT_LE(colour(c), least + (1 - share) * 255 + 1) << y << " " << x;
    }
  }
  EXPECT_GT(std::min({shown.size(), outline, inside}), 50U) << "the model sees one class alone";
  std::sort(shown.begin(), shown.end());
  for (std::size_t i = 1; i < shown.size(); ++i)
    ASSERT_LE(shown[i - 1].second, shown[i].second) << "brightness " << shown[i].first;
  EXPECT_GT(shown.back().second - shown.front().second, 100) << "the image is under it";
}

TEST_F(Predict, EveryFrameOfATimeLapse) {
  io::ImageInfo info;
  info.shape = {1, 1, 40, 40};
  info.timepoints = 3;
  {
    io::OmeTiffWriter writer(at("lapse.ome.tif"), info);
    for (int64_t t = 0; t < 3; ++t) writer.write({}, noise(info.shape), t);
    writer.finish();
  }
  const Outcome outcome = shell(command(at("lapse.ome.tif"), "predict.overlay=false"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::vector<std::string> expected;
  for (const char* t : {"0", "1", "2"})
    expected.push_back(at("lapse.ome.tif.out/lapse_t") + t + ".ome.tif");
  EXPECT_EQ(values_of(outcome.out, "prediction"), expected);
  EXPECT_EQ(io::open_image(expected[2])->info().timepoints, 1);
  EXPECT_NE(outcome.err.find("3 of 3 images predicted"), std::string::npos) << outcome.err;
}

TEST_F(Predict, ATimeLapseAsOneFile) {
  for (const int64_t planes : {1, 0}) {  // 0: as OME-Zarr
    const std::string name = planes == 1 ? "movie" : "zarr";
    io::ImageInfo info;
    info.shape = {1, 1, 40, 40};
    info.timepoints = 3;
    std::vector<io::Image> frames;
    {
      io::OmeTiffWriter writer(at(name + ".ome.tif"), info);
      for (int64_t t = 0; t < 3; ++t) {
        frames.push_back(noise(info.shape));
        writer.write({}, frames.back(), t);
      }
      writer.finish();
    }
    const std::string format = planes == 1 ? "" : " predict.format=ome_zarr";
    const std::string folder = at(name + ".ome.tif.out/");
    const Outcome apart =
        shell(command(at(name + ".ome.tif"), "predict.save=probability" + format));
    ASSERT_EQ(apart.code, 0) << apart.err;
    std::vector<io::Image> expected;
    for (const std::string& path : values_of(apart.out, "prediction"))
      expected.push_back(io::read_image(path));
    fs::remove_all(folder);
    const std::string words = "predict.frames=together predict.save=probability" + format;
    Outcome outcome = shell(command(at(name + ".ome.tif"), words));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const std::string whole = folder + name + (planes == 1 ? ".ome.tif" : ".ome.zarr");
    EXPECT_EQ(values_of(outcome.out, "prediction"), std::vector<std::string>{whole});
    EXPECT_EQ(values_of(outcome.out, "overlay").size(), 3U);
    EXPECT_NE(outcome.err.find("3 of 3 images predicted"), std::string::npos) << outcome.err;
    EXPECT_FALSE(fs::exists(folder + name + "_t0" + (planes == 1 ? ".ome.tif" : ".ome.zarr")));
    ASSERT_EQ(io::open_image(whole, {0, 0, 0})->info().timepoints, 3);
    for (std::size_t t = 0; t < 3; ++t) {
      EXPECT_EQ(io::read_image(whole, {0, 0, static_cast<int64_t>(t)}).pixels, expected[t].pixels)
          << name << " " << t;
    }
    outcome = shell(command(at(name + ".ome.tif"), words + " --resume"));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("3 of them before"), std::string::npos) << outcome.err;
    EXPECT_EQ(values_of(outcome.out, "prediction"), std::vector<std::string>{whole});
    outcome = shell(command(at(name + ".ome.tif"), "predict.save=probability --resume" + format));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(values_of(outcome.out, "prediction").size(), 3U);
    EXPECT_FALSE(fs::exists(whole)) << "files apart replace the one";
  }
  const Outcome refused =
      shell(command(at("movie.ome.tif"), "predict.frames=together predict.format=nifti"));
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("expected ome_tiff or ome_zarr"), std::string::npos) << refused.err;
}

// It was booked as one time point that can't be read, and the run went on.
TEST_F(Predict, AFullDiskWhereFinishedFramesAreJoinedEndsTheRun) {
  io::ImageInfo info;
  info.shape = {1, 1, 100, 100};
  info.timepoints = 3;
  {
    io::OmeTiffWriter writer(at("full.ome.tif"), info);
    for (int64_t t = 0; t < 3; ++t) writer.write({}, noise(info.shape), t);
    writer.finish();
  }
  const std::string words = "predict.save=probability predict.overlay=false ";
  const Outcome apart = shell(command(at("full.ome.tif"), words));
  ASSERT_EQ(apart.code, 0) << apart.err;
  const Outcome full =
      shell("trap '' XFSZ; ulimit -f 40; " +
            command(at("full.ome.tif"), words + "predict.frames=together --resume"));
  EXPECT_EQ(full.code, 4) << full.err;
  EXPECT_NE(full.err.find("full.ome.tif: can't be written"), std::string::npos) << full.err;
  EXPECT_EQ(full.err.find("time point"), std::string::npos) << full.err;
  const Outcome more =
      shell(command(at("full.ome.tif"), words + "predict.frames=together --resume"));
  EXPECT_EQ(more.code, 0) << more.err;
  EXPECT_NE(more.err.find("3 of them before"), std::string::npos) << more.err;
}

TEST_F(Predict, WhateverIsWrongWithAnImageCostsThatImageAlone) {
  fs::create_directories(at("odd"));
  io::write_ome_tiff(at("odd/1_pages.ome.tif"), noise({2, 3, 40, 40}));
  io::write_ome_tiff(at("odd/2_channels.ome.tif"), noise({3, 1, 40, 40}));
  std::ofstream(at("odd/3_text.tif")) << "no image";
  fs::create_symlink(at("nothing"), at("odd/4_link.tif"));
  io::write_ome_tiff(at("odd/5_good.ome.tif"), noise({1, 1, 40, 40}));
  std::ofstream(at("odd.csv")) << "raw\nodd/1_pages.ome.tif\nodd/4_link.tif\nodd/3_text.tif\n"
                                  "odd/2_channels.ome.tif\nodd/5_good.ome.tif\n";
  const Outcome skipped = shell(command(at("odd.csv")));
  EXPECT_EQ(skipped.code, 2) << skipped.err;
  EXPECT_EQ(values_of(skipped.out, "failed").size(), 4U) << skipped.out;
  EXPECT_EQ(values_of(skipped.out, "prediction"),
            (std::vector<std::string>{at("odd.csv.out/5_good.ome.tif")}));
  EXPECT_NE(skipped.err.find("1 of 5 images predicted"), std::string::npos) << skipped.err;
  EXPECT_NE(skipped.err.find("3 channels that differ, the model expects 1"), std::string::npos)
      << skipped.err;

  const Outcome failed = shell(command(at("odd"), "data.on_error=fail"));
  EXPECT_EQ(failed.code, 2) << failed.err;
  EXPECT_NE(failed.err.find("1_pages.ome.tif"), std::string::npos) << failed.err;
  EXPECT_FALSE(fs::exists(at("odd.out/5_good.ome.tif")));
}

TEST_F(Predict, ImagesThatAreWrittenSideBySideAreBookedInTheirOrder) {
  fs::create_directories(at("many"));
  std::vector<std::string> names;  // the first takes longer to write than all others together
  for (const int64_t side : {900, 40, 41, 42, 43, 44, 45}) {
    names.push_back(std::to_string(names.size()) + ".ome.tif");
    io::write_ome_tiff(at("many/") + names.back(), noise({1, 1, side, side}));
  }
  std::map<std::string, std::string> files;
  for (const char* threads : {"1", "4"}) {
    const std::string out = at("many") + threads;
    const Outcome outcome =
        shell(command(at("many"),
                      "'paths.output_dir=" + out +
                          "' performance.backend=eager performance.num_threads=" + threads));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    std::vector<std::string> expected;
    for (const std::string& name : names) expected.push_back(out + "/" + name);
    EXPECT_EQ(values_of(outcome.out, "prediction"), expected);
    std::size_t before = 0;
    const std::string record = read_file(out + "/predictions.jsonl");
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::size_t place = record.find("\"name\":\"" + std::to_string(i) + "\"");
      ASSERT_NE(place, std::string::npos) << record;
      EXPECT_GE(place, before) << record;
      before = place;
      const std::string& first = files.emplace(names[i], read_file(expected[i])).first->second;
      EXPECT_TRUE(read_file(expected[i]) == first) << names[i];
    }
  }
}

TEST_F(Predict, WindowsAreTwiceThePatchUnlessToldOtherwise) {
  io::write_ome_tiff(at("plane.ome.tif"), noise({1, 1, 100, 50}));
  const auto log_of = [](const std::string& more) {
    const Outcome outcome = shell(command(at("plane.ome.tif"), more));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.err;
  };
  EXPECT_NE(log_of("").find("windows of 64x52"), std::string::npos);
  EXPECT_NE(log_of("inference_args.roi_size=null").find("windows of 32x32"), std::string::npos);
  EXPECT_NE(log_of("inference_args.roi_size=[48,48]").find("windows of 48x48"), std::string::npos);
  const Outcome wrong = shell(command(at("plane.ome.tif"), "inference_args.roi_size=[a,b]"));
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("roi_size"), std::string::npos) << wrong.err;
}

TEST_F(Predict, PredictsAsManyWindowsAtOnceAsABudgetHasRoomFor) {
  io::write_ome_tiff(at("wide.ome.tif"), noise({1, 1, 500, 500}));
  const auto at_once = [](const std::string& more) {
    const Outcome outcome = shell(command(at("wide.ome.tif"), more));
    const std::size_t end = outcome.err.find(" at once");
    EXPECT_NE(end, std::string::npos) << outcome.err;
    return std::atoi(outcome.err.c_str() + outcome.err.rfind(' ', end - 1));
  };
  const int many = at_once("predict.max_memory_mb=1000"), few = at_once("predict.max_memory_mb=20");
  EXPECT_EQ(many, 64);
  EXPECT_LT(few, many);
  EXPECT_GE(few, 1);
  EXPECT_EQ(at_once("predict.max_memory_mb=1000 inference_args.sw_batch_size=3"), 3);
  io::write_ome_tiff(at("row.ome.tif"), noise({1, 1, 64, 20000}));
  const Outcome none = shell(command(at("row.ome.tif"), "predict.max_memory_mb=1"));
  EXPECT_EQ(none.code, 5);
  EXPECT_NE(none.err.find("predict.max_memory_mb"), std::string::npos) << none.err;
}

TEST_F(Predict, ProfilesTheThreadThatComputes) {
  for (const auto& [kind, files] : {std::pair("memory", "table.txt memory.svg memory.json"),
                                    std::pair("transfers", "table.txt"),
                                    std::pair("pytorch", "table.txt operations.pt.trace.json")}) {
    const std::string out = at(std::string("profile_") + kind);
    const Outcome outcome =
        shell(command(at("samples/images"),
                      std::string("performance.backend=eager 'paths.output_dir=") + out +
                          "' predict.profiler=" + kind));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    for (const std::string& file : split(files, ' '))
      EXPECT_TRUE(fs::exists(out + "/profiler/" + file)) << kind << " " << file;
  }
  const std::string memory = read_file(at("profile_memory/profiler/table.txt"));
  EXPECT_NE(memory.find("predict "), std::string::npos) << memory;
  const std::string operations = read_file(at("profile_pytorch/profiler/table.txt"));
  EXPECT_NE(operations.find("aten::convolution"), std::string::npos) << operations;
  const std::string transfers = read_file(at("profile_transfers/profiler/table.txt"));
  EXPECT_NE(transfers.find("predict: aten::"), std::string::npos) << transfers;
}

TEST_F(Predict, EndsWithinAnImageAtTheFirstSignal) {
  io::write_ome_tiff(at("large.ome.tif"), noise({1, 1, 1500, 1500}));
  const Outcome outcome =
      shell(command(at("large.ome.tif"), "inference_args.overlap=0.95") +
            " & pid=$!; while ! grep -q 'windows of' '" + at("large.ome.tif.out/predict.log") +
            "' 2>/dev/null && kill -0 $pid; do sleep 0.1; done; kill -TERM $pid; wait $pid");
  EXPECT_EQ(outcome.code, 143) << outcome.err;
  EXPECT_NE(outcome.err.find("interrupted: 0 of 1 images predicted"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(values_of(outcome.out, "output_dir").size(), 1U) << outcome.out;
  EXPECT_FALSE(fs::exists(at("large.ome.tif.out/large.ome.tif")));
}

TEST_F(Predict, AFullStdoutIsAnError) {
  io::write_ome_tiff(at("small.ome.tif"), noise({1, 1, 40, 40}));
  const Outcome outcome = shell(command(at("small.ome.tif")) + " > /dev/full");
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_NE(outcome.err.find("stdout"), std::string::npos) << outcome.err;
  EXPECT_TRUE(fs::exists(at("small.ome.tif.out/small.ome.tif")));
  for (const char* program : {"predict --help", "train --cfg job", "train --version"})
    EXPECT_EQ(shell(std::string("\"$BIN\"/") + program + " > /dev/full").code, 4) << program;
  // Who reads may have had enough.
  const Outcome left = shell("(sleep 0.3; \"$BIN\"/train --help; echo code $? >&2) | true");
  EXPECT_EQ(left.err, "code 0\n");
}

TEST_F(Predict, ALineEndInANameMakesUpNoResults) {
  const std::string name = "a\nbest_checkpoint: forged.ome.tif";
  io::write_ome_tiff(at(name), noise({1, 1, 40, 40}));
  const Outcome outcome = shell(command(at(name)));
  EXPECT_EQ(values_of(outcome.out, "best_checkpoint").size(), 0U) << outcome.out;
  std::ofstream(at(name)) << "no image";
  const std::string err = shell(command(at(name))).err;
  EXPECT_EQ(("\n" + err).find("\nbest_checkpoint"), std::string::npos) << err;
}

}  // namespace
}  // namespace cytra
