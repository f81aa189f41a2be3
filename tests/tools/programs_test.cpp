// The programs as a user meets them.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/strings.h"
#include "config/node.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using test::Outcome;
using test::shell;

/// Small samples, made once; a path with a space on purpose.
class Programs : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new test::TmpDir();
    const Outcome made = shell("\"$BIN/generate_samples\" --output '" + samples() +
                               "' --train 3 --valid 1 --test 2 --size 96 --seed 3");
    ASSERT_EQ(made.code, 0) << made.err;
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }
  static std::string samples() { return *dir_ / "my samples"; }
  static std::string at(const std::string& name) { return *dir_ / name; }

  /// `train` on the samples for a few steps; `more` are further overrides.
  static std::string train(const std::string& more = "", const std::string& output = "run") {
    return "\"$BIN/train\" experiment=im2im/segmentation "
           "trainer.steps_per_epoch=null trainer.accelerator=cpu "
           "trainer.max_steps=2 patch_shape=[32,32] "
           "'data.path=" +
           samples() + "' 'paths.output_dir=" + at(output) + "' " + more;
  }
  static std::string value_of(const std::string& text, const std::string& key) {
    for (const std::string& line : split(text, '\n')) {
      if (line.starts_with(key + ": ")) return line.substr(key.size() + 2);
    }
    return "";
  }
  /// One error that holds every part, exit code 2, no run folder.
  static void expect_mistake(const std::string& command, const std::vector<std::string>& parts) {
    SCOPED_TRACE(command);
    const Outcome outcome = shell(command);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    const std::size_t error = outcome.err.rfind("error: ");
    ASSERT_NE(error, std::string::npos) << outcome.err;
    for (const std::string& part : parts)
      EXPECT_NE(outcome.err.find(part, error), std::string::npos)
          << part << " is not in: " << outcome.err;
    EXPECT_EQ(outcome.err.find("terminate"), std::string::npos);
    EXPECT_EQ(outcome.err.find("frame #"), std::string::npos);
  }
  static test::TmpDir* dir_;
};
test::TmpDir* Programs::dir_ = nullptr;

TEST_F(Programs, TrainPredictResume) {
  const Outcome trained = shell(train());
  ASSERT_EQ(trained.code, 0) << trained.err;
  const std::string best = value_of(trained.out, "best_checkpoint"),
                    last = value_of(trained.out, "last_checkpoint");
  ASSERT_TRUE(fs::exists(best)) << trained.out;
  ASSERT_TRUE(fs::exists(last)) << trained.out;
  EXPECT_TRUE(fs::exists(at("run/.hydra/config.yaml")));
  for (const char* log : {"csv/version_0/metrics.csv", "metrics.jsonl", "tensorboard"})
    EXPECT_TRUE(fs::exists(at("run/") + log)) << log;
  EXPECT_NE(read_file(at("run/report.html")).find(">finished<"), std::string::npos);
  EXPECT_NE(trained.err.find("checkpoint.ckpt_path="), std::string::npos)
      << "no command to go on with";

  const Outcome resumed =
      shell(train("trainer.max_steps=4 'checkpoint.ckpt_path=" + last + "'", "resumed"));
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(value_of(resumed.out, "steps"), "4");

  const Outcome again = shell("cd '" + at("") + "' && " +
                              train("trainer.max_steps=5 checkpoint.ckpt_path=last test=True") +
                              " paths.output_dir=run");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(value_of(again.out, "steps"), "5") << again.err;
  EXPECT_FALSE(value_of(again.out, "test/dice").empty()) << again.out;

  const Outcome predicted =
      shell("\"$BIN/predict\" 'checkpoint.ckpt_path=" + best + "' 'data.path=" + samples() +
            "/test.csv' data.with_target=true trainer.accelerator=cpu 'paths.output_dir=" +
            at("predicted") + "'");
  EXPECT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_TRUE(fs::exists(value_of(predicted.out, "prediction"))) << predicted.out;
  EXPECT_TRUE(fs::exists(value_of(predicted.out, "overlay"))) << predicted.out;
  EXPECT_FALSE(value_of(predicted.out, "dice").empty());

  const Outcome alone =
      shell("\"$BIN/predict\" 'checkpoint.ckpt_path=" + best + "' 'data.path=" + samples() +
            "/images' predict.save=probability trainer.limit_predict_batches=2 'paths.output_dir=" +
            at("alone") + "'");
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_NE(alone.err.find("2 of 2 images predicted"), std::string::npos) << alone.err;
  EXPECT_EQ(value_of(alone.out, "dice"), "");

  const Outcome measured = shell("\"$BIN/benchmark_performance\" --ckpt '" + best +
                                 "' --input-shape 1 1 32 32 --batch-sizes 1 2 "
                                 "--compare-opts --repeats 2 trainer.accelerator=cpu --output '" +
                                 at("report.json") + "'");
  EXPECT_EQ(measured.code, 0) << measured.err;
  EXPECT_NE(read_file(at("report.json")).find("\"channels_last\""), std::string::npos);
  EXPECT_NE(measured.out.find("images/s"), std::string::npos);
}

TEST_F(Programs, ScoresAreOfWhatTheTaskLearns) {
  ASSERT_EQ(shell(train("trainer.max_steps=1", "scored")).code, 0);
  const std::string checkpoint = at("scored/checkpoints/last.ckpt");
  const auto dice = [&](const std::string& output, const std::string& more) {
    const Outcome outcome = shell(
        "\"$BIN/predict\" 'checkpoint.ckpt_path=" + checkpoint + "' 'data.path=" + samples() +
        "/test.csv' data.with_target=true trainer.accelerator=cpu 'paths.output_dir=" + at(output) +
        "' " + more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return value_of(outcome.out, "dice");
  };
  const std::string plain = dice("plain", "");
  EXPECT_EQ(dice("objects", "'predict.postprocess=[{_target_: ConnectedComponents}]'"), plain);
  EXPECT_EQ(dice("grid", "predict.original_grid=true"), plain);  // a TIFF, which has no affine
  expect_mistake("\"$BIN/predict\" 'checkpoint.ckpt_path=" + checkpoint +
                     "' 'data.path=" + samples() + "/images' data.with_target=true",
                 {"with_target", "manifest"});
  expect_mistake(
      train("task=regression loss=mse 'metrics=[mae]' 'checkpoint.ckpt_path=" + checkpoint + "'",
            "other"),
      {"a training of SegmentationTask, expected one of RegressionTask"});
}

TEST_F(Programs, ExportsHaveNoBatchNorms) {
  ASSERT_EQ(shell(train("trainer.max_steps=1 model=unet 'model.channels=[4,8]' 'model.strides=[2]' "
                        "model.norm=batch",
                        "normed"))
                .code,
            0);
  const std::string trained = at("normed/checkpoints/last.ckpt");
  const auto exported = [&](const std::string& format) {
    const Outcome outcome =
        shell("\"$BIN/export_model\" 'checkpoint.ckpt_path=" + trained + "' format=" + format +
              " 'output=" + at("normed." + format) + "' -v");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const bool is_folded = outcome.err.find("batch norms became part of") != std::string::npos;
    EXPECT_EQ(is_folded, format != "safetensors") << outcome.err;
    return read_file(at("normed." + format));
  };
  EXPECT_EQ(exported("onnx").find("BatchNormalization"), std::string::npos);
  exported("torchscript");
  EXPECT_NE(exported("safetensors").find("running_mean"), std::string::npos);
}

TEST_F(Programs, ExportedWeightsPredictTheSame) {
  ASSERT_EQ(shell(train("trainer.max_steps=1", "exported")).code, 0);
  const std::string trained = at("exported/checkpoints/last.ckpt");
  const auto predict = [](const std::string& checkpoint, const std::string& output) {
    const Outcome outcome = shell("\"$BIN/predict\" " + checkpoint + " 'data.path=" + samples() +
                                  "/test.csv' predict.save=logits trainer.accelerator=cpu "
                                  "'paths.output_dir=" +
                                  at(output) + "'");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read_file(value_of(outcome.out, "prediction"));
  };
  const auto export_as = [&](const std::string& format, const std::string& file) {
    return shell("\"$BIN/export_model\" 'checkpoint.ckpt_path=" + trained + "' format=" + format +
                 " performance.enable_tf32=true 'output=" + at(file) + "'");
  };
  const Outcome weights = export_as("safetensors", "weights"),
                model = export_as("torchscript", "model");
  EXPECT_EQ(weights.code, 0) << weights.err;
  EXPECT_EQ(model.code, 0) << model.err;
  EXPECT_NE(model.err.find("performance: no effect on a CPU: enable_tf32"), std::string::npos);
  EXPECT_EQ(value_of(weights.out, "output"), at("weights"));
  EXPECT_EQ(read_file(at("model")).substr(0, 2), "PK");
  const std::string expected = predict("'checkpoint.ckpt_path=" + trained + "'", "logits");
  EXPECT_TRUE(predict("'checkpoint.ckpt_path=" + at("weights") + "'", "logits") == expected);
  EXPECT_TRUE(predict("'checkpoint.ckpt_path=" + at("weights") +
                          "' 'checkpoint.config=" + at("exported") + "'",
                      "logits") == expected);
  if (fs::exists(CYTRA_BIN_DIR "/../lib/libcytra_openvino.so")) {
    EXPECT_EQ(export_as("openvino", "model").code, 0);
    EXPECT_EQ(predict("'checkpoint.ckpt_path=" + at("model.xml") + "'", "logits").size(),
              expected.size());
    fs::rename(at("model.bin"), at("other.bin"));
    expect_mistake(
        "\"$BIN/predict\" data.path=a.tif 'checkpoint.ckpt_path=" + at("model.xml") + "'",
        {"model.bin"});
  }
  const std::string torch = CYTRA_SOURCE_DIR "/tests/golden/torch/";
  expect_mistake("\"$BIN/predict\" data.path=a.tif 'checkpoint.ckpt_path=" + torch + "plain.pth'",
                 {"plain.pth", "checkpoint.config="});
  expect_mistake(
      "\"$BIN/export_model\" 'output=" + trained + "' 'checkpoint.ckpt_path=" + trained + "'",
      {"output", "is the checkpoint itself"});
  expect_mistake("\"$BIN/export_model\" output=a 'checkpoint.config=" + at("exported") +
                     "' 'checkpoint.ckpt_path=" + torch + "malicious.pth'",
                 {"posix.system", "nothing of it was run"});
  expect_mistake(train("'checkpoint.ckpt_path=" + torch + "plain.pth'"),
                 {"plain.pth", "checkpoint.weights_only=true"});
  expect_mistake(
      train("checkpoint.weights_only=true 'checkpoint.ckpt_path=" + torch + "plain.pth'"),
      {"missing", "unexpected (0.bias"});
}

TEST_F(Programs, ASteppedOrWholeTrainingGivesTheSameWeights) {
  // Everything after a checkpoint's header: weights, optimizer and generator.
  const auto tensors = [](const std::string& path) {
    const std::string bytes = read_file(path);
    uint64_t header = 0;
    std::copy_n(bytes.data(), 8, reinterpret_cast<char*>(&header));
    return bytes.substr(8 + header);
  };
  const std::string same =
      "data.batch_size=1 scheduler=constant model.dropout=0.1 performance.num_threads=1 ";
  // The last checkpoint is that of a step, or of the validation at the end; 2 of 3 steps of an
  // epoch are done in either.
  for (const std::string saved : {"callbacks.model_checkpoint.every_n_train_steps=1 "
                                  "trainer.limit_val_batches=0 ",
                                  "trainer.limit_val_batches=1 "}) {
    SCOPED_TRACE(saved);
    const Outcome whole =
        shell(train(same + saved + "data.num_workers=2 trainer.max_steps=5", "whole"));
    ASSERT_EQ(whole.code, 0) << whole.err;
    const Outcome part =
        shell(train(same + saved + "data.num_workers=2 trainer.max_steps=2", "part"));
    ASSERT_EQ(part.code, 0) << part.err;
    const Outcome rest =
        shell(train(same + saved + "data.num_workers=0 trainer.max_steps=5 'checkpoint.ckpt_path=" +
                        value_of(part.out, "last_checkpoint") + "'",
                    "rest"));
    ASSERT_EQ(rest.code, 0) << rest.err;
    EXPECT_TRUE(tensors(value_of(whole.out, "last_checkpoint")) ==
                tensors(value_of(rest.out, "last_checkpoint")));
  }
}

TEST_F(Programs, StartWithoutTorch) {
  for (const char* program : {"train",
                              "predict",
                              "benchmark_performance",
                              "optimize",
                              "export_model",
                              "preprocess_fundus",
                              "process_video",
                              "serve"}) {
    const Outcome help = shell(std::string("LD_DEBUG=libs \"$BIN/") + program + "\" --help");
    EXPECT_EQ(help.code, 0);
    EXPECT_EQ(help.err.find("libtorch"), std::string::npos) << program << " loads torch for --help";
    EXPECT_NE(help.out.find("Config groups"), std::string::npos);
    const Outcome version = shell(std::string("\"$BIN/") + program + "\" --version");
    EXPECT_TRUE(version.out.starts_with(program));
  }
  const Outcome composed =
      shell("LD_DEBUG=libs \"$BIN/train\" experiment=im2im/segmentation data.path=x --cfg job");
  EXPECT_EQ(composed.code, 0);
  EXPECT_EQ(composed.err.find("libtorch"), std::string::npos);
  EXPECT_NE(composed.out.find("_target_: DynUNet"), std::string::npos);
}

TEST_F(Programs, MistakesEndInOneLine) {
  expect_mistake(train("trainer.max_epoch=5"), {"trainer.max_epoch=5", "trainer.max_epochs"});
  expect_mistake(train("model.filter=[1]"), {"model.filter", "model.filters"});
  expect_mistake(train("experiment=im2im/segmentatoin"), {"segmentatoin", "segmentation"});
  expect_mistake(train("trainer.max_epochs=ten"), {"trainer.max_epochs", "an integer", "ten"});
  expect_mistake(train("optimizer.lr=-1"), {"optimizer.lr"});
  expect_mistake(train("loss._target_=DiceCELos"), {"DiceCELoss"});
  expect_mistake(train("data.path=/no/such/folder"), {"/no/such/folder"});
  expect_mistake(train("source_col=row"), {"train.csv", "row", "raw"});
  expect_mistake(train("checkpoint.ckpt_path=/no/such.ckpt"), {"/no/such.ckpt"});
  expect_mistake(train("--no-such-flag"), {"--no-such-flag"});
  expect_mistake(train("paths.output_dir=/proc/run"), {"/proc"});
  expect_mistake("\"$BIN/predict\" checkpoint.ckpt_path=" + shell("echo $BIN/predict").out,
                 {"predict"});
  expect_mistake(train("optimizer.lr=1e30 "), {"optimizer.lr"});
  expect_mistake(train("raw_im_channels=2 data.num_workers=0"),
                 {"1 channels, the model expects 2", "raw"});
  expect_mistake("\"$BIN/predict\" --check", {"checkpoint.ckpt_path", "data.path"});
  expect_mistake("\"$BIN/benchmark_performance\" --input-shape 1 1 32", {"--config"});
  expect_mistake(train("patch_shape=[30,30] data.num_workers=0"), {"multiples of (4,4)"});
  expect_mistake(train("trainer.accelerator=gpu_of_the_future"), {"trainer.accelerator"});
  expect_mistake(train("task.inference_args.overlap=1"), {"overlap", "[0, 1)"});
  // found before anything is trained
  shell("mkdir '" + at("untested") + "' && cp -r '" + samples() + "'/* '" + at("untested") +
        "' && rm '" + at("untested") + "/test.csv'");
  expect_mistake(train("test=True 'data.path=" + at("untested") + "'", "untested run"),
                 {"no test.csv"});
  EXPECT_FALSE(fs::exists(at("untested run")));
}

TEST_F(Programs, ALossThatIsNotFiniteEndsTheRun) {
  const Outcome outcome =
      shell(train("optimizer=sgd optimizer.lr=1e8 "
                  "trainer.max_steps=50",
                  "diverged"));
  EXPECT_EQ(outcome.code, 6) << outcome.err;
  EXPECT_NE(outcome.err.find("samples: "), std::string::npos) << outcome.err;
  EXPECT_NE(read_file(at("diverged/report.html")).find(">failed: the "), std::string::npos);
}

TEST_F(Programs, BrokenImagesAreNamed) {
  fs::create_directories(at("broken"));
  const std::string whole = read_file(
      samples() + "/" +
      fs::directory_iterator(samples() + "/images")->path().lexically_relative(samples()).string());
  std::ofstream(at("broken/cut.tif")) << whole.substr(0, whole.size() / 2);
  std::ofstream(at("broken/text.tif")) << "no image at all";
  std::ofstream(at("broken/empty.tif")) << "";
  for (const char* name : {"cut.tif", "text.tif", "empty.tif"}) {
    for (const char* csv : {"train.csv", "valid.csv"})
      std::ofstream(at("broken/") + csv) << "raw,seg\n" << name << "," << name << "\n";
    expect_mistake(train("'data.path=" + at("broken") + "'"), {name});
  }
  std::ofstream(at("broken/train.csv")) << "raw,seg\ncut.tif,cut.tif\nmissing.tif,cut.tif\n";
  expect_mistake(train("'data.path=" + at("broken") + "'"), {"train.csv:3", "missing.tif"});
  std::ofstream(at("broken/train.csv")) << "raw,seg\nmissing.tif,cut.tif\nalso.tif,cut.tif\n";
  expect_mistake(train("'data.path=" + at("broken") + "'"),
                 {"train.csv:2", "\n" + at("broken/train.csv:3")});  // a line each
  std::ofstream(at("broken/train.csv")) << "raw,seg\ncut.tif\n";
  expect_mistake(train("'data.path=" + at("broken") + "'"), {"train.csv:2"});
}

TEST_F(Programs, CheckDataTellsWhatIsThere) {
  const Outcome good = shell(train("--check-data", "unused"));
  EXPECT_EQ(good.code, 0) << good.out << good.err;
  for (const char* part : {"train raw: 3 images", "valid seg: 1 images", "classes    0: ", "ok\n"})
    EXPECT_NE(good.out.find(part), std::string::npos) << part << " is not in: " << good.out;
  EXPECT_FALSE(fs::exists(at("unused")));
  expect_mistake(train("--check-data trainer.max_epoch=5"), {"trainer.max_epochs"});
  expect_mistake(train("--check-data -m trainer.max_epochs=1,2"), {"--check-data"});
  fs::create_directories(at("leak"));
  std::ofstream(at("leak/cut.tif")) << "II";
  for (const char* csv : {"train.csv", "valid.csv"}) {
    std::ofstream(at("leak/") + csv)
        << "raw,seg\n../my samples/images/train_0000_raw.ome.tif,cut.tif\n";
  }
  const Outcome bad = shell(train("--check-data --json 'data.path=" + at("leak") + "'", "unused"));
  EXPECT_EQ(bad.code, 2) << bad.err;
  const config::Node node = config::parse_yaml(bad.out, "output");
  EXPECT_EQ(node.get<int64_t>("splits.train.seg.broken"), 1);
  EXPECT_EQ(node.get<int64_t>("splits.train.raw.broken"), 0);
  EXPECT_EQ(node.at("problems").list.size(), 3U) << bad.out;
}

TEST_F(Programs, PredictGoesOnAfterABrokenImage) {
  ASSERT_EQ(shell(train("trainer.max_steps=1", "for prediction")).code, 0);
  fs::create_directories(at("mixed"));
  fs::copy_file(samples() + "/images/test_0000_raw.ome.tif",
                at("mixed/a.ome.tif"),
                fs::copy_options::overwrite_existing);
  std::ofstream(at("mixed/b.tif")) << "no image";
  fs::copy_file(samples() + "/images/test_0001_raw.ome.tif",
                at("mixed/c.ome.tif"),
                fs::copy_options::overwrite_existing);
  const Outcome outcome =
      shell("\"$BIN/predict\" 'checkpoint.ckpt_path=" + at("for prediction/checkpoints/last.ckpt") +
            "' 'data.path=" + at("mixed") +
            "' inference_args.overlap=0.5 'paths.output_dir=" + at("two of three") + "'");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("b.tif"), std::string::npos) << outcome.err;
  EXPECT_EQ(value_of(outcome.out, "failed"), at("mixed/b.tif"));
  EXPECT_TRUE(fs::exists(at("two of three/a.ome.tif")));
  EXPECT_TRUE(fs::exists(at("two of three/c.ome.tif")));
}

TEST_F(Programs, AFolderThatCantBeWrittenIsNamed) {
  const std::string nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups ";
  if (::geteuid() != 0 || shell(nobody + "\"$BIN/train\" --version").code != 0) {
    GTEST_SKIP() << "needs root, and a build folder that others may read";
  }
  fs::create_directories(at("locked"));
  fs::permissions(at("locked"), fs::perms::owner_read | fs::perms::owner_exec);
  fs::permissions(
      dir_->path(), fs::perms::others_read | fs::perms::others_exec, fs::perm_options::add);
  const Outcome outcome = shell(nobody + train("'paths.output_dir=" + at("locked/run") + "'"));
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("locked"), std::string::npos) << outcome.err;
}

TEST_F(Programs, AFullDiskLeavesNothingHalfWritten) {
  fs::create_directories(at("small"));
  if (shell("mount -t tmpfs -o size=300k none '" + at("small") + "'").code != 0)
    GTEST_SKIP() << "can't mount a tmpfs";
  const Outcome outcome = shell(train("'paths.output_dir=" + at("small/run") + "'"));
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(at("small"))) {
    if (entry.path().string().find(".ckpt") != std::string::npos) ++files;
  }
  shell("umount '" + at("small") + "'");
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_NE(outcome.err.find("No space left"), std::string::npos) << outcome.err;
  EXPECT_EQ(files, 0);
}

TEST_F(Programs, WorkInABareEnvironment) {
  const Outcome outcome = shell("cd / && env -i LANG=C BIN=\"$BIN\" " +
                                train("trainer.max_steps=1", "bare run") + " </dev/null");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find('\033'), std::string::npos) << "colour without a terminal";
}

TEST_F(Programs, TwentyStartsAtOnceGetTheirOwnFolders) {
  const Outcome outcome =
      shell("for i in $(seq 20); do " + train("trainer.max_steps=1 data.num_workers=0 -q", "many") +
            " & done; wait");
  std::set<std::string> folders;
  for (const std::string& line : split(outcome.out, '\n')) {
    if (line.starts_with("output_dir: ")) folders.insert(line);
  }
  EXPECT_EQ(folders.size(), 20U) << outcome.err;
}

TEST_F(Programs, ResultsAsJson) {
  const Outcome outcome = shell(train("--json -q", "json"));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out.front(), '{');
  EXPECT_NE(outcome.out.find("\"last_checkpoint\""), std::string::npos);
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Programs, AnInterruptedTestGivesNoNumbers) {
  const Outcome outcome = shell(
      "mkdir '" + at("long") + "' && cp -r '" + samples() + "'/* '" + at("long") + "'; cd '" +
      at("long") + "'; for i in $(seq 4000); do tail -n 1 test.csv; done > more; " +
      "cat more >> test.csv; " +
      train("test=True 'data.path=" + at("long") + "' trainer.max_steps=1", "tested") +
      " & pid=$!; while ! grep -q 'step 1/1' '" + at("tested") +
      "/train.log' 2>/dev/null && kill -0 $pid; do sleep 0.1; done; sleep 1; kill -TERM $pid; wait "
      "$pid");
  EXPECT_EQ(outcome.code, 143) << outcome.err;
  EXPECT_EQ(value_of(outcome.out, "test/dice"), "") << outcome.out;
  EXPECT_NE(outcome.err.find("interrupted in the test"), std::string::npos) << outcome.err;
}

TEST_F(Programs, GoingOnAgainReplacesWhatGoesOn) {
  std::string line = train("trainer.limit_val_batches=0", "going");
  for (int run = 0; run < 3; ++run) {
    const Outcome outcome = shell("cd /; " + line);
    ASSERT_EQ(outcome.code, 0) << line << outcome.err;
    const std::size_t at = outcome.err.find("go on with it:  ") + 16;
    line = outcome.err.substr(at, outcome.err.find('\n', at) - at);
    for (const char* key : {"checkpoint.ckpt_path=", "trainer.max_steps="}) {
      EXPECT_NE(line.find(key), std::string::npos) << line;
      EXPECT_EQ(line.find(key), line.rfind(key)) << line;
    }
  }
  EXPECT_NE(line.find("trainer.max_steps=16"), std::string::npos) << line;
}

TEST_F(Programs, InterruptSavesAndTellsHowToGoOn) {
  const Outcome outcome =
      shell(train("trainer.max_steps=100000 trainer.max_epochs=-1 trainer.limit_val_batches=0",
                  "stopped") +
            " & pid=$!; while ! grep -q parameters '" + at("stopped") +
            "/train.log' 2>/dev/null && kill -0 $pid; do sleep 0.1; done; "
            "sleep 1; kill -TERM $pid; wait $pid");
  EXPECT_EQ(outcome.code, 143) << outcome.err;
  EXPECT_TRUE(fs::exists(at("stopped/checkpoints/last.ckpt"))) << outcome.err;
  EXPECT_NE(outcome.err.find("go on with it"), std::string::npos);
  const std::string report = read_file(at("stopped/report.html"));
  for (const char* part : {">interrupted<", "<li>interrupted at step "})
    EXPECT_NE(report.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace cytra
