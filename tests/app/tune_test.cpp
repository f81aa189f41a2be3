#include "app/tune.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/log.h"
#include "config/composer.h"
#include "config/json.h"
#include "perf/device.h"
#include "samples/generate.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

class Tune : public ::testing::Test {
 protected:
  Tune() {
    samples::NucleiOptions options;
    options.size = 64;
    samples::write_dataset(dir_.path(), options, 2, 1, 0, 7);
    setenv("XDG_CACHE_HOME", (dir_ / "cache").c_str(), 1);
  }
  ~Tune() override { unsetenv("XDG_CACHE_HOME"); }

  app::TrainConfig config_of(std::vector<std::string> overrides) const {
    overrides.insert(overrides.begin(),
                     {"experiment=im2im/segmentation",
                      "data.path=" + dir_.path(),
                      "paths.output_dir=unused",
                      "trainer.accelerator=cpu",
                      "patch_shape=[32,32]",
                      "data.batch_size=2",
                      "model.filters=[4,8,8]",
                      "model.compile_model=true",
                      "model.compile_mode=max-autotune"});
    const config::Node tree =
        config::Composer({std::string(CYTRA_SOURCE_DIR) + "/configs"}).compose("train", overrides);
    config::Problems problems;
    return config::read_options<app::TrainConfig>(tree, problems);
  }
  /// What tuned() makes of it, and says.
  app::TrainConfig tune(const std::vector<std::string>& overrides) {
    const std::string log = dir_ / "log.txt";
    write_file(log, "");
    log::set_file(log);
    app::TrainConfig config = app::tuned(config_of(overrides), at::kCPU);
    log::set_file("");
    said_ = read_file(log);
    return config;
  }
  test::TmpDir dir_;
  std::string said_;
};

TEST_F(Tune, MeasuresOnceWhatIsLeftOpen) {
  const app::TrainConfig first = tune({"performance.num_threads=1"});
  EXPECT_NE(said_.find("ms for forward and backward pass"), std::string::npos) << said_;
  const bool channels_last = first.task.get<bool>("model.channels_last");
  const config::Node kept = config::parse_json(read_file(dir_ / "cache/cytra/tuned.json"), "kept");
  ASSERT_EQ(kept.map.size(), 2U);  // the version, and this training
  const std::string& key = kept.map.back().first;
  EXPECT_EQ(key.rfind(perf::describe(at::kCPU) + "; ", 0), 0U) << key;
  const app::TrainConfig again = tune({"performance.num_threads=1"});
  EXPECT_NE(said_.find("as kept in"), std::string::npos) << said_;
  EXPECT_EQ(again.task.get<bool>("model.channels_last"), channels_last);
  tune({"performance.num_threads=1", "data.batch_size=1"});
  EXPECT_EQ(said_.find("as kept in"), std::string::npos) << "another shape";
}

TEST_F(Tune, TakesTheOtherChoiceOfAFileThatSaysSo) {
  const std::string path = dir_ / "cache/cytra/tuned.json";
  const bool first = tune({"performance.num_threads=1"}).task.get<bool>("model.channels_last");
  std::string text = read_file(path);
  const std::string old = first ? "channels_last=true" : "channels_last=false";
  text.replace(text.find(old), old.size(), first ? "channels_last=false" : "channels_last=true");
  write_file(path, text);
  EXPECT_NE(tune({"performance.num_threads=1"}).task.get<bool>("model.channels_last"), first);
  for (const char* broken : {"{", "[]", "{\"version\": \"0\"}"}) {
    write_file(path, broken);
    tune({"performance.num_threads=1"});
    EXPECT_NE(said_.find("ms for forward and backward pass"), std::string::npos) << broken;
  }
}

TEST_F(Tune, AsksForTheWindowsOfAPassThatNobodyHasSet) {
  const std::vector<std::string> others{"performance.num_threads=1", "model.channels_last=false"};
  const std::string path = dir_ / "cache/cytra/tuned.json";
  const app::TrainConfig first = tune(others);
  EXPECT_NE(said_.find("ms for a validation"), std::string::npos) << said_;
  EXPECT_EQ(said_.find("forward and backward"), std::string::npos) << said_;
  EXPECT_NE(read_file(path).find("\"task.inference_args.sw_batch_size="), std::string::npos);
  // 64 x 64 by 32 x 32, a quarter of it shared: 9 windows.
  for (const char* count : {"1", "2", "8", "16"}) {
    std::string text = read_file(path);
    const std::size_t begin = text.find("sw_batch_size=") + 14;
    write_file(path, text.replace(begin, text.find('"', begin) - begin, count));
    const app::TrainConfig again = tune(others);
    EXPECT_NE(said_.find("as kept in"), std::string::npos) << said_;
    EXPECT_EQ(std::to_string(again.task.get<int64_t>("inference_args.sw_batch_size")), count);
  }
  for (const char* alone : {"trainer.limit_val_batches=0", "patch_shape=[64,64]"}) {
    std::vector<std::string> words = others;
    words.emplace_back(alone);
    tune(words);
    EXPECT_EQ(said_, "") << alone;
  }
}

TEST_F(Tune, LeavesWhatIsSaidAlone) {
  const app::TrainConfig set = tune({"performance.num_threads=1",
                                     "model.channels_last=false",
                                     "task.inference_args.sw_batch_size=4"});
  EXPECT_FALSE(set.task.get<bool>("model.channels_last"));
  EXPECT_EQ(said_, "");
  const app::TrainConfig other = tune({"model.compile_mode=default"});
  EXPECT_TRUE(other.task.at("model.channels_last").is_null());
  EXPECT_EQ(other.performance.num_threads, 0);
  EXPECT_EQ(said_, "");
}

}  // namespace
}  // namespace cytra
