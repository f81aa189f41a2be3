#include "pipelines/fundus/fundus.h"

#include <filesystem>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "data/sample/image_tensor.h"
#include "inference/predictor/original_grid.h"
#include "io/reader.h"
#include "samples/fundus.h"
#include "tests/data/make_transform.h"
#include "tests/support/program.h"
#include "tests/support/tmp_dir.h"

namespace cytra::pipelines {
namespace {

struct FundusTold {
  std::vector<std::string> done, failed, messages;
  FundusEvents events() {
    FundusEvents events;
    events.done = [this](const FundusInput& input, const data::fundus::Disc&) {
      done.push_back(input.name);
    };
    events.failed =
        [this](const FundusInput& input, const std::exception& error, const data::fundus::Disc*) {
          failed.push_back(input.name);
          messages.emplace_back(error.what());
        };
    return events;
  }
};

TEST(FundusPipeline, WritesWhatItFindsAndNamesTheRest) {
  const test::TmpDir dir;
  std::vector<FundusInput> inputs;
  for (uint64_t i = 0; i < 5; ++i) {
    const std::string path = dir / ("in" + std::to_string(i) + ".png");
    io::write_png(path, samples::generate_fundus(samples::varied_fundus(1, i), 1, i).image);
    inputs.push_back({path, "in" + std::to_string(i)});
  }
  io::Image black;
  black.shape = {3, 1, 100, 100};
  black.pixels.resize(black.bytes());
  io::write_png(dir / "black.png", black);
  inputs.insert(inputs.begin() + 1, {dir / "black.png", "black"});
  write_file(dir / "broken.png", "no image");
  inputs.push_back({dir / "broken.png", "broken"});

  FundusOptions options;
  options.view.size = 96;
  options.batch_size = 3;
  FundusTold told;
  StageReport report("test");
  preprocess_fundus(inputs, options, dir / "out", at::kCPU, report, told.events());
  std::sort(told.done.begin(), told.done.end());
  EXPECT_EQ(told.done, (std::vector<std::string>{"in0", "in1", "in2", "in3", "in4"}));
  std::sort(told.failed.begin(), told.failed.end());
  EXPECT_EQ(told.failed, (std::vector<std::string>{"black", "broken"}));
  for (const FundusInput& input : inputs) {
    for (const std::string& file : fundus_files(input, options))
      EXPECT_EQ(std::filesystem::exists(dir / ("out/" + file)), input.name.substr(0, 2) == "in")
          << file;
  }
  const at::Tensor mask = data::to_tensor(io::read_image(dir / "out/masks/in0.png"), 2, "mask");
  EXPECT_EQ(mask.sizes().vec(), (std::vector<int64_t>{1, 96, 96}));
  EXPECT_EQ(mask[0][48][48].item<int>(), 255);
  EXPECT_EQ(mask[0][1][1].item<int>(), 0);
  const at::Tensor shown = data::to_tensor(io::read_image(dir / "out/images/in0.png"), 2, "image");
  EXPECT_EQ(shown.size(0), 3);
  EXPECT_EQ(shown[0][1][1].item<int>(), 0);
  EXPECT_GT(shown[0][30][48].item<int>(), 10);
}

TEST(FundusPipeline, BatchesOfAnySizeGiveTheSameFiles) {
  const test::TmpDir dir;
  std::vector<FundusInput> inputs;
  for (uint64_t i = 0; i < 4; ++i) {
    const std::string path = dir / ("in" + std::to_string(i) + ".png");
    io::write_png(path, samples::generate_fundus({}, 1, i).image);
    inputs.push_back({path, "in" + std::to_string(i)});
  }
  for (const int64_t size : {1, 4}) {
    FundusOptions options;
    options.view.size = 96;
    options.batch_size = size;
    options.workers = size;
    FundusTold told;
    StageReport report("test");
    preprocess_fundus(inputs, options, dir / std::to_string(size), at::kCPU, report, told.events());
    ASSERT_EQ(told.done.size(), 4U);
  }
  for (const FundusInput& input : inputs) {
    const auto read = [&](const char* folder) {
      return data::to_tensor(
                 io::read_image(dir / (folder + ("/images/" + input.name + ".png"))), 2, "")
          .to(at::kInt);
    };
    EXPECT_LE((read("1") - read("4")).abs().max().item<int>(), 1);
  }
}

/// What predict.original_grid does with the mask of a model behind FundusNormalized.
TEST(FundusPipeline, OriginalGridUndoesTheTransform) {
  samples::FundusOptions squeezed;
  squeezed.axes_ratio = 0.9;
  const samples::FundusSample generated = samples::generate_fundus(squeezed, 4, 0);
  data::Sample sample;
  sample.id = "retina";
  sample.tensors["raw"] = data::to_tensor(generated.image, 2, "raw");
  sample.tensors["seg"] = data::to_tensor(generated.vessels, 2, "seg");
  io::Geometry original;
  original.spacing_um = {0, 1000, 1000};
  original.affine = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
  sample.geometries = {{"raw", original}, {"seg", original}};
  const at::Tensor truth = sample.tensors["seg"].clone();
  Rng rng(0);
  make_transform(
      "{_target_: FundusNormalized, keys: [raw, seg], mode: [bilinear, nearest], size: 512}")
      ->apply(sample, rng);
  inference::ToFileGrid grid{sample.geometries["seg"],
                             original,
                             sample.tensors["seg"].sizes().slice(1).vec(),
                             truth.sizes().slice(1).vec()};
  grid.are_labels = true;
  const at::Tensor made = inference::all_of(*grid.rows(), sample.tensors["seg"]);
  ASSERT_EQ(made.sizes(), truth.sizes());
  const at::Tensor a = made.eq(1), b = truth.eq(1);
  const double both = a.logical_and(b).sum().item<double>();
  const double dice = 2 * both / (a.sum().item<double>() + b.sum().item<double>());
  EXPECT_GT(dice, 0.97);
}

TEST(FundusProgram, LeavesOutWhatIsDoneAndNamesWhatFails) {
  const test::TmpDir dir;
  const std::string begin = "cd \"" + dir.path() + "\" && $BIN/";
  const test::Outcome made = test::shell(
      begin + "generate_samples --kind fundus --train 2 --valid 0 --test 0 --output set");
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string program =
      begin + "preprocess_fundus paths.output_dir=out fundus.size=64 trainer.accelerator=cpu ";
  const test::Outcome first = test::shell(program + "data.path=set/train.csv");
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.out.find("images: 2"), std::string::npos) << first.out;
  const test::Outcome second = test::shell(program + "data.path=set/train.csv");
  EXPECT_NE(second.err.find("2 of 2 images done, 2 of them before"), std::string::npos)
      << second.err;
  const test::Outcome other =
      test::shell(program + "data.path=set/train.csv fundus.contrast=false");
  EXPECT_EQ(other.err.find("of them before"), std::string::npos) << other.err;
  // The folder holds masks of vessels, too, which are no retinas.
  const test::Outcome masks = test::shell(program + "data.path=set/images");
  EXPECT_EQ(masks.code, 2);
  EXPECT_NE(masks.out.find("failed: set/images/train_0000_seg.png"), std::string::npos)
      << masks.out;
  EXPECT_NE(masks.err.find("no retina"), std::string::npos) << masks.err;
  const std::string table = read_file(dir / "out/fundus.csv");
  EXPECT_NE(table.find("train_0000_raw,found"), std::string::npos) << table;
  EXPECT_NE(table.find("train_0000_seg,too "), std::string::npos) << table;
}

TEST(FundusProgram, PhotographsAreNotOverwritten) {
  const test::TmpDir dir;
  const std::string begin = "cd \"" + dir.path() + "\" && $BIN/";
  const test::Outcome made = test::shell(
      begin + "generate_samples --kind fundus --train 1 --valid 0 --test 0 --output set");
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string photograph = read_file(dir / "set/images/train_0000_raw.png");
  const std::string program =
      begin + "preprocess_fundus fundus.size=64 trainer.accelerator=cpu data.path=set/train.csv ";
  const test::Outcome first = test::shell(program + "paths.output_dir=set");
  EXPECT_EQ(first.code, 2);
  EXPECT_NE(first.err.find("set/images exists, but there is no fundus.csv"), std::string::npos)
      << first.err;
  EXPECT_FALSE(std::filesystem::exists(dir / "set/fundus.csv"));
  ASSERT_EQ(test::shell(program + "paths.output_dir=out").code, 0);
  const test::Outcome again =
      test::shell(begin +
                  "preprocess_fundus fundus.size=64 trainer.accelerator=cpu data.path=out/images "
                  "paths.output_dir=out");
  EXPECT_EQ(again.code, 2);
  EXPECT_NE(again.err.find("would be overwritten"), std::string::npos) << again.err;
  EXPECT_EQ(read_file(dir / "set/images/train_0000_raw.png"), photograph);
  std::filesystem::create_directory(dir / "mine");
  write_file(dir / "mine/fundus.csv", "1\n");
  const test::Outcome foreign = test::shell(program + "paths.output_dir=mine");
  EXPECT_EQ(foreign.code, 2);
  EXPECT_NE(foreign.err.find("mine/fundus.csv: is there already"), std::string::npos)
      << foreign.err;
  EXPECT_EQ(read_file(dir / "mine/fundus.csv"), "1\n");
  EXPECT_FALSE(std::filesystem::exists(dir / "mine/fundus.jsonl"));
}
TEST(FundusProgram, MasksArePredictedInThePixelsOfThePhotograph) {
  const test::TmpDir dir;
  const std::string begin = "cd \"" + dir.path() + "\" && $BIN/";
  const test::Outcome made = test::shell(
      begin + "generate_samples --kind fundus --train 1 --valid 1 --test 1 --output set");
  ASSERT_EQ(made.code, 0) << made.err;
  const test::Outcome trained = test::shell(
      begin +
      "train experiment=fundus/vessels fundus_size=64 patch_shape=[32,32] model.filters=[4,4,8] "
      "trainer.accelerator=cpu trainer.max_epochs=1 trainer.limit_train_batches=1 "
      "data.num_workers=0 data.path=set paths.output_dir=run");
  ASSERT_EQ(trained.code, 0) << trained.err;
  const test::Outcome predicted = test::shell(
      begin +
      "predict trainer.accelerator=cpu predict.original_grid=true predict.format=npy "
      "data.path=set/test.csv checkpoint.ckpt_path=run/checkpoints/last.ckpt paths.output_dir=out");
  ASSERT_EQ(predicted.code, 0) << predicted.err;
  const auto photograph = io::open_image(dir / "set/images/test_0000_raw.png")->info().shape;
  std::string mask;
  for (const auto& entry : std::filesystem::directory_iterator(dir / "out")) {
    if (entry.path().extension() == ".npy") mask = entry.path();
  }
  ASSERT_NE(mask, "") << predicted.out;
  const auto shape = io::open_image(mask)->info().shape;
  EXPECT_EQ(shape[2], photograph[2]);
  EXPECT_EQ(shape[3], photograph[3]);
}

}  // namespace
}  // namespace cytra::pipelines
