#include "app/optimize/tune.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/log.h"
#include "config/composer.h"
#include "config/json.h"
#include "device/device.h"
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
  /// What tuned() makes of it, and says. `make`: none: what is measured.
  app::TrainConfig tune(const std::vector<std::string>& overrides, app::MakePass make = {}) {
    const std::string log = dir_ / "log.txt";
    write_file(log, "");
    log::set_file(log);
    app::TrainConfig config = app::tuned(config_of(overrides), at::kCPU, std::move(make));
    log::set_file("");
    said_ = read_file(log);
    return config;
  }
  test::TmpDir dir_;
  std::string said_;
};

bool is_last(const app::TrainConfig& config) {
  const config::Node* layout = config.task.find("model.channels_last");
  return layout != nullptr && !layout->is_null() && layout->as<bool>();
}

/// Passes that take 1 s, `last` of them with channels last.
app::MakePass passes(double last, int* made = nullptr) {
  return [=](const app::TrainConfig& config, const data::Batch&, bool) {
    if (made != nullptr) *made += 1;
    return [seconds = is_last(config) ? last : 1.0] { return seconds; };
  };
}
const std::vector<std::string> kLayoutAlone{"performance.num_threads=1",
                                            "task.inference_args.sw_batch_size=4"};

TEST_F(Tune, MeasuresOnceWhatIsLeftOpen) {
  const app::TrainConfig first = tune({"performance.num_threads=1"});
  EXPECT_NE(said_.find("ms for forward and backward pass"), std::string::npos) << said_;
  const bool channels_last = first.task.get<bool>("model.channels_last");
  const config::Node kept = config::parse_json(read_file(dir_ / "cache/cytra/tuned.json"), "kept");
  ASSERT_EQ(kept.map.size(), 2U);  // the version, and this training
  const std::string& key = kept.map.back().first;
  EXPECT_EQ(key.rfind(device::describe(at::kCPU) + "; ", 0), 0U) << key;
  const app::TrainConfig again = tune({"performance.num_threads=1"}, passes(1));
  EXPECT_NE(said_.find("as kept in"), std::string::npos) << said_;
  EXPECT_EQ(again.task.get<bool>("model.channels_last"), channels_last);
  tune({"performance.num_threads=1", "data.batch_size=1"});
  EXPECT_EQ(said_.find("as kept in"), std::string::npos) << "another shape";
}

TEST_F(Tune, TakesATrueGainAndNothingElse) {
  // On a CPU channels come last where nobody says otherwise.
  EXPECT_TRUE(is_last(tune(kLayoutAlone, passes(1)))) << "identical work: it is left as it is";
  EXPECT_NE(said_.find("nothing that was tried is faster"), std::string::npos) << said_;
  std::filesystem::remove_all(dir_ / "cache");
  EXPECT_TRUE(is_last(tune(kLayoutAlone, passes(1.02)))) << "2 %";
  std::filesystem::remove_all(dir_ / "cache");
  EXPECT_FALSE(is_last(tune(kLayoutAlone, passes(1.3))));
  EXPECT_NE(said_.find("channels_last=false: 1e+03 ms for forward and backward pass, 1.30 times as "
                       "fast as before"),
            std::string::npos)
      << said_;
}

TEST_F(Tune, AKeptChoiceIsTimedAgainAndDroppedWhereItIsSlower) {
  EXPECT_FALSE(is_last(tune(kLayoutAlone, passes(1.3))));
  for (const double last : {1.3, 1.0, 0.99}) {  // no slower than nothing
    int made = 0;
    EXPECT_FALSE(is_last(tune(kLayoutAlone, passes(last, &made)))) << last;
    EXPECT_EQ(made, 2) << "with it and without";
    EXPECT_NE(said_.find("as kept in"), std::string::npos) << said_;
  }
  EXPECT_TRUE(is_last(tune(kLayoutAlone, passes(0.6)))) << "it was chosen under load";
  EXPECT_NE(
      said_.find("the earlier choice is dropped (0.60 times as fast (0 of 5 pairs)); chosen now: "),
      std::string::npos)
      << said_;
  int made = 0;
  EXPECT_TRUE(is_last(tune(kLayoutAlone, passes(0.6, &made))));
  EXPECT_NE(said_.find("as kept in"), std::string::npos) << said_;
  EXPECT_EQ(made, 0) << "it is as without a choice";
}

TEST_F(Tune, AFileThatIsBrokenIsWrittenAnew) {
  const std::string path = dir_ / "cache/cytra/tuned.json";
  tune(kLayoutAlone, passes(1.3));
  const std::string text = read_file(path);
  for (const char* broken : {"{", "[]", "{\"version\": \"0\"}"}) {
    write_file(path, broken);
    tune(kLayoutAlone, passes(1.3));
    EXPECT_NE(said_.find("ms for forward and backward pass"), std::string::npos) << broken;
    EXPECT_EQ(read_file(path), text);
  }
}

TEST_F(Tune, AsksForTheWindowsOfAPassThatNobodyHasSet) {
  const std::vector<std::string> others{"performance.num_threads=1", "model.channels_last=false"};
  const auto windows = [](const app::TrainConfig& config) {
    return config.task.get<int64_t>("inference_args.sw_batch_size");
  };
  tune(others);  // measured
  EXPECT_NE(said_.find("ms for a validation"), std::string::npos) << said_;
  EXPECT_EQ(said_.find("forward and backward"), std::string::npos) << said_;
  // 64 x 64 by 32 x 32, a quarter of it shared: 9 windows.
  for (const int64_t best : {1, 2, 4, 8, 16}) {
    std::filesystem::remove_all(dir_ / "cache");
    const auto make = [&](const app::TrainConfig& config, const data::Batch&, bool validates) {
      EXPECT_TRUE(validates);
      const double off =
          std::log2(static_cast<double>(windows(config))) - std::log2(static_cast<double>(best));
      return [seconds = 1 + std::abs(off)] { return seconds; };
    };
    EXPECT_EQ(windows(tune(others, make)), best) << said_;
    EXPECT_EQ(windows(tune(others, make)), best);
    EXPECT_NE(said_.find("as kept in"), std::string::npos) << said_;
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
