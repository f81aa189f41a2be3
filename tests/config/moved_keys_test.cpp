// Keys by the names of CytoDL's guides.
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/composer.h"
#include "tests/config/tree.h"

namespace cytra::config {
namespace {

class MovedKeys : public testing::Test {
 protected:
  void SetUp() override {
    tree_.write("train.yaml",
                "# @keys_of CytoDL\ndefaults:\n  - performance: default\n  - model: unet\n  - "
                "experiment: null\n  - "
                "_self_\nspatial_dims: 2\noptimizer: {lr: 1e-3}\nscheduler: {gamma: 0.9}\n"
                "task: {inference_args: {overlap: 0.25, mode: gaussian}}\n");
    tree_.write("performance/default.yaml", "enable_tf32: false\n");
    tree_.write("performance/mine.yaml", "enable_tf32: true\nchannels_last: true\n");
    tree_.write("model/unet.yaml", "spatial_dims: ${spatial_dims}\nchannels_last: null\n");
    tree_.write(
        "predict.yaml",
        "# @keys_of CytoDL\ninference_args: {overlap: 0.25}\nmodel: {compile_model: false}\n");
    tree_.write("other.yaml", "model: {optimizer: {lr: 1}, spatial_dims: 3}\n");
  }
  Node compose(const std::vector<std::string>& overrides,
               const std::string& primary = "train") const {
    return Composer({tree_.folder()}).compose(primary, overrides);
  }
  std::string experiment(const std::string& text) const {
    tree_.write("experiment/mine.yaml", "# @package _global_\n" + text);
    return "experiment=mine";
  }
  std::string error_of(const std::vector<std::string>& overrides) const {
    return message_of<ConfigError>([&] { compose(overrides); });
  }
  Tree tree_;
};

TEST_F(MovedKeys, OverridesReachTheirNewPlaces) {
  const Node config = compose({"model.spatial_dims=3",
                               "model.optimizer.lr=0.0001",
                               "model.lr_scheduler.gamma=0.5",
                               "model.inference_args.overlap=0.5",
                               "performance.channels_last=True"});
  EXPECT_EQ(
      to_json(config),
      R"({"performance":{"enable_tf32":false},"model":{"spatial_dims":3,"channels_last":true},)"
      R"("spatial_dims":3,"optimizer":{"lr":0.0001},"scheduler":{"gamma":0.5},)"
      R"("task":{"inference_args":{"overlap":0.5,"mode":"gaussian"}}})");
  EXPECT_EQ(config.at("optimizer.lr").where(),
            "command line 'model.optimizer.lr=0.0001': optimizer.lr");
  EXPECT_EQ(to_json(compose({"model.inference_args.overlap=0.5"}, "predict")),
            R"({"inference_args":{"overlap":0.5},"model":{"compile_model":false}})");
}

TEST_F(MovedKeys, FilesToo) {
  const Node config =
      compose({experiment("model:\n  spatial_dims: 3\n  inference_args:\n    overlap: 0.5\n"
                          "  optimizer:\n    generator:\n      lr: 0.1\n")});
  EXPECT_EQ(
      to_json(config),
      R"({"performance":{"enable_tf32":false},"model":{"spatial_dims":3,"channels_last":null},)"
      R"("spatial_dims":3,"optimizer":{"lr":0.1},"scheduler":{"gamma":0.9},)"
      R"("task":{"inference_args":{"overlap":0.5,"mode":"gaussian"}}})");
  EXPECT_EQ(config.at("optimizer.lr").where(),
            tree_.folder() + "/experiment/mine.yaml:8:11: optimizer.lr");
}

TEST_F(MovedKeys, TheGuidesValuesAreTakenAndIdleKeysTold) {
  tree_.write("with_trainer.yaml",
              "# @keys_of CytoDL\ndefaults:\n  - _self_\n  - experiment: null\n"
              "trainer: {precision: 32}\n");
  const std::string guide =
      experiment("gpu: {precision: fp16}\nprocessing: {use_multiprocessing: true}\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(to_json(compose({guide}, "with_trainer")), R"({"trainer":{"precision":"16-mixed"}})");
  EXPECT_EQ(
      to_json(compose({"gpu.precision=FP32", "processing.max_queue_size=100"}, "with_trainer")),
      R"({"trainer":{"precision":"32-true"}})");
  const std::string told = testing::internal::GetCapturedStderr();
  for (const char* key : {"processing.use_multiprocessing", "processing.max_queue_size"})
    EXPECT_NE(told.find(std::string(key) + ": no effect, "), std::string::npos) << told;
  tree_.write("with_video.yaml",
              "# @keys_of CytoDL\ndefaults:\n  - _self_\n  - experiment: null\n"
              "video: {queue_frames: 16}\n");
  EXPECT_EQ(to_json(compose({"processing.max_queue_size=100"}, "with_video")),
            R"({"video":{"queue_frames":100}})");
  EXPECT_EQ(to_json(compose({experiment("processing: {max_queue_size: 90}\n")}, "with_video")),
            R"({"video":{"queue_frames":90}})");
}

TEST_F(MovedKeys, TheLaterFileWins) {
  // The group comes before that of the key's new place, the experiment after both.
  EXPECT_TRUE(compose({"performance=mine"}).at("model.channels_last").boolean);
  const Node config = compose({"performance=mine", experiment("model: {channels_last: false}\n")});
  EXPECT_FALSE(config.at("model.channels_last").boolean);
  EXPECT_EQ(compose({experiment("model: {optimizer: {lr: 0.1}}\n"), "optimizer.lr=0.2"})
                .get<double>("optimizer.lr"),
            0.2);
}

TEST_F(MovedKeys, TwoValuesForOneKeyAreAMistake) {
  EXPECT_EQ(error_of({"model.optimizer.lr=0.1", "optimizer.lr=0.2"}),
            "command line 'optimizer.lr=0.2': optimizer.lr is 0.2, but model.optimizer.lr is 0.1 "
            "(command line 'model.optimizer.lr=0.1'); they are two names of one value, expected "
            "one of them");
  EXPECT_EQ(error_of({"model.optimizer.lr=0.1", "optimizer.lr=0.1"}), "");
  EXPECT_EQ(error_of({"optimizer.lr=0.1", "optimizer.lr=0.2"}), "");
  const std::string file = tree_.folder() + "/experiment/mine.yaml";
  EXPECT_EQ(error_of({experiment("model: {spatial_dims: 3}\nspatial_dims: 2\n")}),
            file + ":2:23: model.spatial_dims is 3, but spatial_dims is 2 (" + file +
                ":3:15); they are two names of one value, expected one of them");
  EXPECT_EQ(error_of({experiment("model: {optimizer: {lr: 1}}\noptimizer: {lr: 1}\n")}), "");
}

TEST_F(MovedKeys, AnotherTreeKeepsItsOwn) {
  tree_.write("theirs.yaml",
              "defaults:\n  - _self_\n  - model: theirs\noptimizer: {lr: 1}\nspatial_dims: 2\n");
  tree_.write("model/theirs.yaml", "optimizer: {lr: 2}\nspatial_dims: 3\n");
  tree_.write("model/mnist.yaml", "model: {optimizer: {lr: 4}}\n");
  EXPECT_EQ(
      to_json(compose({"+model@_global_=mnist"}, "theirs")),
      R"({"optimizer":{"lr":1},"spatial_dims":2,"model":{"optimizer":{"lr":4},"spatial_dims":3}})");
  EXPECT_EQ(
      to_json(compose({"model.optimizer.lr=5"}, "theirs")),
      R"({"optimizer":{"lr":1},"spatial_dims":2,"model":{"optimizer":{"lr":5},"spatial_dims":3}})");
  EXPECT_EQ(to_json(compose({"model.optimizer.lr=2"}, "other")),
            R"({"model":{"optimizer":{"lr":2},"spatial_dims":3}})");
}

}  // namespace
}  // namespace cytra::config
