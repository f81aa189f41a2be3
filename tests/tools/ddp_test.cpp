// Training with two processes, as a user meets it.
#include <cmath>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "io/safetensors.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using test::Outcome;
using test::shell;

class Ddp : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new test::TmpDir();
    ASSERT_EQ(shell("\"$BIN/generate_samples\" --output '" + at("samples") +
                    "' --train 8 --valid 3 --test 1 --size 64 --seed 3")
                  .code,
              0);
    // what a training that is not disturbed ends with
    const Outcome whole = shell(train("whole", kTwo));
    ASSERT_EQ(whole.code, 0) << whole.err;
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }
  static std::string at(const std::string& name) { return *dir_ / name; }
  static std::string last(const std::string& run) { return at(run + "/checkpoints/last.ckpt"); }

  static std::string train(const std::string& output, const std::string& more) {
    return "\"$BIN/train\" experiment=im2im/segmentation "
           "trainer.steps_per_epoch=null trainer.accelerator=cpu optimizer=sgd "
           "scheduler=constant trainer.max_epochs=12 trainer.check_val_every_n_epoch=6 "
           "patch_shape=[32,32] "
           "logger=csv callbacks.model_checkpoint.every_n_train_steps=1 performance.num_threads=1 "
           "'data.path=" +
           at("samples") + "' 'paths.output_dir=" + at(output) + "' " + more +
           (more.find("model=") == std::string::npos ? " model.filters=[4,8,8]" : "");
  }
  /// Starts a training, and does `what` to process $rank1 of $rank0 once it has saved something.
  static Outcome disturbed(const std::string& output, const std::string& what) {
    return shell(train(output, kTwo) + " trainer.max_epochs=4000 & rank0=$!; until [ -e '" +
                 last(output) +
                 "' ] || ! kill -0 $rank0; do sleep 0.05; done; rank1=$(pgrep -P $rank0); " + what +
                 "; begin=$SECONDS; wait $rank0; code=$?; echo \"took: $((SECONDS - begin))\"; "
                 "sleep 0.2; kill -0 $rank0 $rank1 2>/dev/null; echo \"alive: $?\"; exit $code");
  }
  static std::string value_of(const std::string& text, const std::string& key) {
    for (const std::string& line : split(text, '\n')) {
      if (line.starts_with(key + ": ")) return line.substr(key.size() + 2);
    }
    return "";
  }
  /// Ends within `seconds`, as a kill of a process should; nothing is left.
  static void expect_end(const Outcome& outcome, int code) {
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_LT(std::stoi("0" + value_of(outcome.out, "took")), 30) << outcome.err;
    EXPECT_EQ(value_of(outcome.out, "alive"), "1") << "processes are left";
  }
  static constexpr const char* kTwo = "trainer.devices=2 data.batch_size=2 model.dropout=0.2";
  static test::TmpDir* dir_;
};
test::TmpDir* Ddp::dir_ = nullptr;

/// The largest difference between the weights of two checkpoints in float64.
double difference(const std::string& one, const std::string& other) {
  const io::SafetensorsFile a(one), b(other);
  double largest = NAN;
  for (const auto& [name, tensor] : a.tensors()) {
    if (!name.starts_with("model.") || tensor.dtype != "F64") continue;
    const auto* x = static_cast<const double*>(tensor.data);
    const auto* y = static_cast<const double*>(b.tensors().at(name).data);
    for (std::size_t i = 0; i < tensor.bytes / sizeof(double); ++i)
      largest = std::fmax(largest, std::abs(x[i] - y[i]));
  }
  return largest;
}

/// Every tensor of a checkpoint: weights, optimizer, averages.
std::map<std::string, std::string> tensors(const std::string& checkpoint) {
  const io::SafetensorsFile file(checkpoint);
  std::map<std::string, std::string> all;
  for (const auto& [name, tensor] : file.tensors())
    all[name] = std::string(static_cast<const char*>(tensor.data), tensor.bytes);
  return all;
}

TEST_F(Ddp, TwoLearnAsOneWithTwiceTheBatch) {
  const Outcome two = shell(
                    train("two", "trainer.devices=2 data.batch_size=2 trainer.precision=64-true")),
                one = shell(train("one", "data.batch_size=4 trainer.precision=64-true"));
  ASSERT_EQ(two.code, 0) << two.err;
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_LT(difference(last("two"), last("one")), 1e-9);
  // the metrics of all 3 images, which two processes can't share evenly
  EXPECT_NEAR(
      std::stod(value_of(two.out, "best_score")), std::stod(value_of(one.out, "best_score")), 1e-5);
  EXPECT_FALSE(fs::exists(at("two-1"))) << "a second run folder";
  EXPECT_TRUE(fs::exists(at("two/train.rank1.log")));
}

TEST_F(Ddp, BatchNormsOfTwoAreThoseOfOneWithTwiceTheBatch) {
  const std::string norms = " model.norm_name=batch trainer.precision=64-true";
  const std::string two = "trainer.devices=2 data.batch_size=2" + norms;
  for (const auto& [name, more] : std::vector<std::pair<std::string, std::string>>{
           {"synced", two + " trainer.sync_batchnorm=true"},
           {"apart", two},
           {"large", "data.batch_size=4" + norms}}) {
    const Outcome outcome = shell(train(name, more));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  EXPECT_LT(difference(last("synced"), last("large")), 1e-9);
  EXPECT_GT(difference(last("apart"), last("large")), 1e-6);
}

/// A network of torch.export with batch norms that are frozen, that remember and that do not.
TEST_F(Ddp, AnExportedNetworkLearnsOnTwoAsOnOne) {
  const std::string net =
      "model=exported num_classes=2 trainer.precision=64-true "
      "trainer.sync_batchnorm=true 'model.file=" CYTRA_SOURCE_DIR
      "/tests/golden/exported/residual.pt2' ";
  for (const auto& [name, more] : std::vector<std::pair<std::string, std::string>>{
           {"exported two", "trainer.devices=2 data.batch_size=2"},
           {"exported one", "data.batch_size=4"}}) {
    const Outcome outcome = shell(train(name, net + more));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  EXPECT_LT(difference(last("exported two"), last("exported one")), 1e-9);
}

/// Dropouts and batch norms go on where they were, without the network's file.
TEST_F(Ddp, AnExportedNetworkGoesOnBitForBit) {
  const std::string net = "model=exported optimizer=adamw 'model.file=";
  const std::string file = CYTRA_SOURCE_DIR "/tests/golden/exported/net.pt2'";
  const Outcome whole = shell(train("exported", net + file)),
                half = shell(train("exported half", net + file + " trainer.max_epochs=6"));
  ASSERT_EQ(whole.code, 0) << whole.err;
  ASSERT_EQ(half.code, 0) << half.err;
  const std::string checkpoint = last("exported half");
  const Outcome rest = shell(
      train("exported rest", net + checkpoint + "' 'checkpoint.ckpt_path=" + checkpoint + "'"));
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_TRUE(tensors(last("exported rest")) == tensors(last("exported")));
}

TEST_F(Ddp, AKilledProcessIsNamedAndTheRunGoesOn) {
  const Outcome killed = disturbed("killed", "kill -9 $rank1");
  expect_end(killed, 4);
  EXPECT_NE(killed.err.find("error: rank 1 was ended by signal 9"), std::string::npos)
      << killed.err;
  EXPECT_EQ(killed.err.find("frame #"), std::string::npos) << killed.err;
  const Outcome resumed = shell(train("killed", kTwo) + " checkpoint.autoresume=true");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("from " + last("killed")), std::string::npos) << resumed.err;
  EXPECT_TRUE(tensors(last("killed-1")) == tensors(last("whole")));
}

TEST_F(Ddp, ASignalToOneEndsAllWithACheckpoint) {
  const Outcome ended = disturbed("ended", "kill -TERM $rank1");
  expect_end(ended, 143);
  EXPECT_NE(ended.err.find("interrupted at step"), std::string::npos) << ended.err;
  const Outcome resumed =
      shell(train("resumed", kTwo) + " 'checkpoint.ckpt_path=" + last("ended") + "'");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_TRUE(tensors(last("resumed")) == tensors(last("whole")));
}

TEST_F(Ddp, AnotherNumberOfProcessesGoesOn) {
  const Outcome fewer = shell(train("fewer",
                                    "trainer.max_epochs=13 data.batch_size=4 model.dropout=0.2 "
                                    "'checkpoint.ckpt_path=" +
                                        last("whole") + "'"));
  EXPECT_EQ(fewer.code, 0) << fewer.err;
  const Outcome more = shell(train("more",
                                   "trainer.max_epochs=14 data.batch_size=2 trainer.devices=2 "
                                   "'checkpoint.ckpt_path=" +
                                       last("fewer") + "'"));
  EXPECT_EQ(more.code, 0) << more.err;
}

TEST_F(Ddp, AMistakeFoundWhileTrainingIsToldOnce) {
  const Outcome outcome =
      shell(train("late",
                  std::string(kTwo) + " trainer.check_val_every_n_epoch=1 "
                                      "callbacks.model_checkpoint.monitor=val/dise"));
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  const std::size_t first = outcome.err.find("error: ");
  ASSERT_NE(first, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("error: ", first + 1), std::string::npos) << outcome.err;
  EXPECT_NE(read_file(at("late/train.rank1.log")).find("val/dise"), std::string::npos);
}

TEST_F(Ddp, EachProcessHasItsProfile) {
  const Outcome outcome =
      shell(train("profiled", std::string(kTwo) + " trainer.max_epochs=1 trainer.profiler=simple"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* folder : {"profiler", "profiler.rank1"})
    EXPECT_TRUE(fs::exists(at("profiled/") + folder + "/table.txt")) << folder;
}

TEST_F(Ddp, ARankWithoutTheFirstSaysSo) {
  const Outcome outcome = shell("WORLD_SIZE=2 RANK=1 MASTER_ADDR=localhost MASTER_PORT=29511 " +
                                train("alone", "trainer.devices=2 trainer.process_timeout=2"));
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_NE(outcome.err.find("rank 0 can't be reached at 127.0.0.1:29511"), std::string::npos);
  EXPECT_EQ(outcome.err.find("frame #"), std::string::npos) << outcome.err;
}

TEST_F(Ddp, MistakesAreToldOnce) {
  for (const auto& [command, message] : std::vector<std::pair<std::string, std::string>>{
           {"WORLD_SIZE=4 RANK=0 MASTER_ADDR=localhost MASTER_PORT=29511 " +
                train("mistake", "trainer.devices=2"),
            "WORLD_SIZE=4 in the environment, but trainer.devices=2"},
           {train("mistake", "trainer.devices=2 data.path=/nowhere"), "/nowhere"},
           {train("mistake", "trainer.devices=0"), "trainer.devices"}}) {
    const Outcome outcome = shell(command);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    const std::size_t first = outcome.err.find("error: ");
    ASSERT_NE(first, std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(message, first), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("error: ", first + 1), std::string::npos) << outcome.err;
    EXPECT_FALSE(fs::exists(at("mistake")));
  }
}

}  // namespace
}  // namespace cytra
