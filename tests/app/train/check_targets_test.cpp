// Targets of users' own tasks, and of their own heads, are judged as those of Cytra's.
#include "app/train/check_targets.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "config/composer.h"
#include "config/run_config.h"
#include "data/survey/check_targets.h"
#include "io/image.h"
#include "nn/model.h"
#include "tasks/image_task.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

using Meaning = data::TargetMeaning;

Meaning meaning_of(Meaning::Kind kind, const std::string& key) {
  Meaning meaning;
  meaning.kind = kind;
  meaning.key = key;
  meaning.image_key = "raw";
  return meaning;
}

struct OwnTask final : training::Task {
  struct Options {
    config::Node model;
    bool says = true;
    void visit(auto& v) {
      v("model", model, "the network", config::component<nn::Model>());
      v("says", says, "what its target means");
    }
  };
  explicit OwnTask(const Options& options)
      : options(options), network(make<nn::Model>(options.model)) {}
  nn::Model& model() override { return *network; }
  at::Tensor training_step(const data::Batch& batch) override {
    return (*network)(batch.at("raw")).mean();
  }
  std::vector<Meaning> target_meanings() const override {
    if (!options.says) return Task::target_meanings();
    return {meaning_of(Meaning::Kind::mask, "seg")};
  }
  Options options;
  std::shared_ptr<nn::Model> network;
};
CYTRA_REGISTER(training::Task, OwnTask, "OwnJudgedTask");

struct OwnHead final : tasks::Head {
  struct Options : tasks::HeadOptions {
    void visit(auto& v) { HeadOptions::visit(v); }
    void check(const config::Node& = config::Node::make_map()) {
      decoder = config::parse_yaml("{_target_: RegressionDecoder}", "OwnHead");
    }
  };
  explicit OwnHead(const Options& options) : Head(options, {metrics::Metric::Input::values}, 1) {}
  void prepare(data::Sample&, const std::string&) const override {}
  std::string text() const override { return "own"; }
  std::map<std::string, at::Tensor> preview(const at::Tensor&, const data::Batch&) const override {
    return {};
  }
  std::optional<Meaning> target_meaning() const override {
    return meaning_of(Meaning::Kind::objects, y_key_);
  }

 protected:
  at::Tensor target(const at::Tensor&, const data::Batch& batch) const override {
    return batch.at(y_key_);
  }
  metrics::Compared compared(const at::Tensor& output,
                             const data::Batch&,
                             metrics::Metric::Input) const override {
    return {output, output, {}};
  }
};
CYTRA_REGISTER(tasks::Head, OwnHead, "OwnJudgedHead");

class OwnTargets : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(dir_ / "raw");
    std::filesystem::create_directories(dir_ / "seg");
    for (int i = 0; i < 4; ++i) {
      io::Image image;
      image.shape = {1, 1, 16, 16};
      image.pixels.resize(256);
      for (int p = 0; p < 256; ++p)
        image.pixels[static_cast<std::size_t>(p)] = static_cast<unsigned char>((7 * p + i) % 251);
      const std::string name = "/" + std::to_string(i) + ".png";
      io::write_png(dir_ / "raw" + name, image);
      for (int p = 0; p < 256; ++p)  // ilastik's: no background
        image.pixels[static_cast<std::size_t>(p)] = p % 16 < 8 ? 1 : 2;
      io::write_png(dir_ / "seg" + name, image);
    }
  }
  std::string judged(const std::string& task) const {
    const config::Node tree = config::Composer({std::string(CYTRA_SOURCE_DIR) + "/configs"})
                                  .compose("train",
                                           {"experiment=im2im/segmentation",
                                            "data=folder",
                                            "data.path=" + dir_.path(),
                                            "paths.output_dir=unused",
                                            "trainer.accelerator=cpu",
                                            "data.num_workers=0",
                                            "model.filters=[4,8]"});
    config::Problems problems;
    auto config = config::read_options<app::TrainConfig>(config::job_config(tree),
                                                         problems,
                                                         {"source_col",
                                                          "target_col",
                                                          "spatial_dims",
                                                          "raw_im_channels",
                                                          "num_classes",
                                                          "multilabel",
                                                          "ignore_index",
                                                          "target_values",
                                                          "class_names",
                                                          "patch_shape"});
    problems.throw_if_any();
    config.task = config::parse_yaml(task, "test");
    std::string text;
    for (const std::string& line : app::check_targets(app::Setup(config, c10::Device(at::kCPU)), 8))
      text += line + "\n";
    return text;
  }
  const test::TmpDir dir_;
};

const std::string kNetwork = "model: {_target_: DynUNet, filters: [4, 8]}";

TEST_F(OwnTargets, OfATask) {
  const std::string told = judged("{_target_: OwnJudgedTask, " + kNetwork + "}");
  EXPECT_NE(told.find("train seg: no background (0)"), std::string::npos) << told;
  EXPECT_NE(told.find("target_values=[1,2]"), std::string::npos) << told;
  EXPECT_EQ(judged("{_target_: OwnJudgedTask, says: false, " + kNetwork + "}"), "");
}

TEST_F(OwnTargets, OfAHead) {
  const std::string told = judged(
      "{_target_: MultiTask, x_key: raw, model: {_target_: MultiHead, backbone: {_target_: "
      "DynUNet, filters: [4, 8], out_channels: 4}, heads: {own: {_target_: "
      "ResBlocksHead, out_channels: 1}}}, heads: {own: {_target_: OwnJudgedHead, loss: {_target_: "
      "MSELoss}}}}");
  EXPECT_NE(told.find("expected 0 where no object is"), std::string::npos) << told;
  EXPECT_NE(told.find("+task.heads.own.object_values=[2]"), std::string::npos) << told;
}

}  // namespace
}  // namespace cytra
