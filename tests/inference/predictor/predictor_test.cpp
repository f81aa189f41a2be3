// A program's way: checkpoint -> Predictor -> images of files and tensors.
#include "inference/predictor/predictor.h"

#include <thread>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"
#include "device/device.h"
#include "inference/outputs/overlay_rows.h"
#include "inference/predictor/foreground.h"
#include "inference/predictor/windowed_model.h"
#include "inference/windows/window_run.h"
#include "io/reader.h"
#include "nn/model.h"
#include "nn/weights.h"
#include "ops/windows/sums.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra::inference {
namespace {

constexpr const char* kDynUNet =
    "{_target_: DynUNet, filters: [4, 8], strides: [1, 2], kernel_size: [3, 3], "
    "upsample_kernel_size: [2]";

/// A model of some classes with weights of its own, as `train` would keep it.
std::string write_checkpoint(const std::string& path,
                             int64_t dims,
                             int64_t classes = 3,
                             const std::string& network_of = kDynUNet) {
  at::manual_seed(3);
  const std::string model =
      fmt::format("{}, out_channels: {}, spatial_dims: {}}}", network_of, classes, dims);
  const auto network = make<nn::Model>(model);
  std::map<std::string, at::Tensor> kept;
  io::TensorViews views;
  for (const auto& [key, tensor] : nn::state_of(*network)) {
    kept[key] = tensor.detach().contiguous();
    views[key] = nn::view_of(kept[key]);
  }
  const std::string config =
      "{patch_shape: [16, 16], task: {_target_: SegmentationTask, x_key: raw, y_key: seg, "
      "num_classes: " +
      std::to_string(classes) + ", inference_args: {roi_size: 16, overlap: 0.25}, model: " + model +
      "}, data: {transforms: {train: [], predict: null, valid: [{_target_: LoadImaged, keys: [raw, "
      "seg], spatial_dims: " +
      std::to_string(dims) + "}, {_target_: NormalizeIntensityd, keys: raw}]}}}";
  io::write_safetensors(path, views, {{"config", config}});
  return path;
}

io::Image noise_image(std::array<int64_t, 4> shape) {
  io::Image image;
  image.shape = shape;
  image.pixels.resize(image.bytes());
  uint32_t state = 1;
  for (unsigned char& byte : image.pixels)
    byte = static_cast<unsigned char>((state = state * 1664525 + 1013904223) >> 24);
  image.geometry.spacing_um = {2, 0.5, 0.5};
  return image;
}

class PredictorTest : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    options_.accelerator = "cpu";
    options_.engine.backend = "eager";
    checkpoint_ = write_checkpoint(dir_ / "model.safetensors", GetParam());
  }
  std::vector<int64_t> shape() const {
    return GetParam() == 2 ? std::vector<int64_t>{1, 45, 37} : std::vector<int64_t>{1, 21, 18, 26};
  }
  test::TmpDir dir_;
  std::string checkpoint_;
  PredictorOptions options_;
};

TEST_P(PredictorTest, WindowsWithoutForegroundAreBackground) {
  std::vector<int64_t> size(static_cast<std::size_t>(GetParam()), 20);
  size[0] = 90;
  size.insert(size.begin(), 1);
  at::Tensor image = at::rand(size) * 0.5;
  image.slice(1, 4, 20).add_(1.5);  // rows of the first two windows of each column
  const at::Tensor all = Predictor::load(checkpoint_, options_).predict(image);
  EXPECT_GT(all.slice(1, 40).ne(0).sum().item<int64_t>(), 0);
  for (const char* rule : {"1", "'>1.0'", "otsu", "'<-1'"}) {
    options_.foreground = foreground_rule(config::parse_yaml(rule, "test"));
    const at::Tensor some = Predictor::load(checkpoint_, options_).predict(image);
    const bool is_below = std::string(rule).find('<') != std::string::npos;
    EXPECT_EQ(some.slice(1, 40).ne(0).sum().item<int64_t>(), 0) << rule;
    const at::Tensor there = is_below ? at::zeros_like(all) : all;
    EXPECT_TRUE(some.slice(1, 0, 24).equal(there.slice(1, 0, 24))) << rule;
  }
  for (const char* wrong : {"[1]", "much", "'>'", "nan", "{a: 1}"})
    EXPECT_THROW(foreground_rule(config::parse_yaml(wrong, "test")), ConfigError) << wrong;
  EXPECT_FALSE(foreground_rule(config::Node()));
}

TEST_P(PredictorTest, ATensorIsTheSlidingWindowOfTheModel) {
  const Predictor predictor = Predictor::load(checkpoint_, options_);
  const at::Tensor image = at::randn(shape());
  const at::Tensor mask = predictor.predict(image);
  EXPECT_EQ(mask.scalar_type(), at::kByte);
  SlidingWindowOptions windows;
  windows.roi_size = {16};
  const at::InferenceMode inference_mode;
  const at::Tensor logits =
      sliding_window(image.unsqueeze(0),
                     Network([&](const at::Tensor& w) { return (*predictor.model().network)(w); }),
                     windows);
  EXPECT_TRUE(mask.equal(logits.argmax(1).to(at::kByte)));
  EXPECT_GT(std::get<0>(at::_unique(mask)).numel(), 1) << "a model that sees something";
  options_.form = "logits";
  const Predictor values = Predictor::load(checkpoint_, options_);
  EXPECT_TRUE(values.predict(image).allclose(logits[0], 1e-5, 1e-5));
  EXPECT_TRUE(values.predict(at::stack({image, image}))[1].allclose(logits[0], 1e-5, 1e-5));
}

TEST_P(PredictorTest, ALastLayerOfManyClassesComesAfterTheSums) {
  const at::Tensor image = at::randn(shape());
  for (const char* network :
       {kDynUNet, "{_target_: PlainConvUNet, n_stages: 2, features_per_stage: [4, 8]"}) {
    checkpoint_ = write_checkpoint(dir_ / "many.safetensors", GetParam(), 11, network);
    options_.form = "logits";
    options_.tta = {};
    const Predictor predictor = Predictor::load(checkpoint_, options_);
    EXPECT_EQ(predictor.windowed().finish.weight.size(1), 4) << network;
    options_.tta.average = "probabilities";  // of which a sum is not linear
    const Predictor plain = Predictor::load(checkpoint_, options_);
    EXPECT_FALSE(plain.windowed().finish.weight.defined());
    const at::Tensor logits = predictor.predict(image);
    SlidingWindowOptions windows;
    windows.roi_size = {16};
    const at::InferenceMode inference_mode;
    const at::Tensor expected =
        sliding_window(image.unsqueeze(0),
                       Network([&](const at::Tensor& w) { return (*plain.model().network)(w); }),
                       windows);
    EXPECT_EQ(logits.size(0), 11);
    EXPECT_TRUE(logits.allclose(expected[0], 1e-4, 1e-4)) << network;
    EXPECT_TRUE(predictor.predict(at::stack({image, image}))[1].allclose(logits, 1e-5, 1e-5));
    EXPECT_TRUE(predictor.with("probability", 0.5)
                    .predict(image)
                    .allclose(expected[0].softmax(0), 1e-4, 1e-4));
    EXPECT_TRUE(
        predictor.with("mask", 0.5).predict(image)[0].equal(logits.argmax(0).to(at::kByte)));
  }
}

TEST_P(PredictorTest, RowsAreThoseOfTheWholeImage) {
  options_.form = "logits";
  const Predictor predictor = Predictor::load(checkpoint_, options_);
  const at::Tensor image = at::randn(shape()), whole = predictor.predict(image);
  const ModelInput input(image);
  const at::InferenceMode inference_mode;
  const int64_t rows = shape()[1];
  for (const RowRange range : {RowRange{0, rows}, {7, rows}, {0, 5}, {13, 17}, {rows - 1, rows}}) {
    int64_t next = range.begin;
    predictor.windowed().run(
        input,
        predictor.windowed().windows("x", image.sizes().slice(1).vec()),
        [&](int64_t first, const std::vector<at::Tensor>& values) {
          EXPECT_EQ(first, next);
          EXPECT_TRUE(values[0].equal(whole.narrow(1, first, values[0].size(1)))) << first;
          next = first + values[0].size(1);
        },
        {},
        range);
    EXPECT_EQ(next, range.end);
  }
}

TEST_P(PredictorTest, ManyAtOnce) {
  const Predictor predictor = Predictor::load(checkpoint_, options_);
  const at::Tensor image = at::randn(shape()), expected = predictor.predict(image);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 3; ++n) EXPECT_TRUE(predictor.predict(image).equal(expected));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(PredictorTest, FromFileToFile) {
  const Predictor predictor = Predictor::load(checkpoint_, options_);
  const io::Image image = noise_image(GetParam() == 2 ? std::array<int64_t, 4>{1, 1, 45, 37}
                                                      : std::array<int64_t, 4>{1, 21, 18, 26});
  io::write_ome_tiff(dir_ / "image.ome.tif", image);
  const auto reader = io::open_image(dir_ / "image.ome.tif");
  const io::ImageInfo info = predictor.describe(reader->info());
  EXPECT_EQ(info.channel_names, std::vector<std::string>{"seg"});
  predictor.predict(*reader, *io::create_image(dir_ / "mask.ome.zarr", info));
  const io::Image mask = io::read_image(dir_ / "mask.ome.zarr");
  EXPECT_EQ(mask.shape, image.shape);
  EXPECT_EQ(mask.geometry.spacing_um, image.geometry.spacing_um);
  at::Tensor values =
      at::from_blob(const_cast<unsigned char*>(image.pixels.data()), shape(), at::kByte)
          .to(at::kFloat);
  values = (values - values.mean()) / values.std(false);
  const at::Tensor expected = predictor.predict(values);
  const at::Tensor written =
      at::from_blob(const_cast<unsigned char*>(mask.pixels.data()), shape(), at::kByte);
  EXPECT_LT(written.ne(expected).sum().item<int64_t>(), 3) << "but for ties";
}

TEST_P(PredictorTest, SaysWhatItTakes) {
  const Predictor predictor = Predictor::load(checkpoint_, options_);
  EXPECT_NE(message_of<DataError>([&] {
              predictor.predict(at::zeros({4, 4}));
            }).find("(C,"),
            std::string::npos);
  std::vector<int64_t> two = shape();
  two[0] = 2;
  EXPECT_EQ(message_of<DataError>([&] { predictor.predict(at::zeros(two)); }),
            "the image: 2 channels, the model expects 1");
  at::Tensor bad = at::randn(shape());
  bad.flatten()[100] = std::nan("");
  EXPECT_NE(message_of<DataError>([&] { predictor.predict(bad); }).find("NaN or infinite"),
            std::string::npos);
  options_.form = "probabilities";
  EXPECT_NE(message_of<ConfigError>([&] {
              Predictor::load(checkpoint_, options_);
            }).find("'probability'"),
            std::string::npos);
}
INSTANTIATE_TEST_SUITE_P(Dimensions, PredictorTest, ::testing::Values(2, 3));

TEST(AdaptiveBatch, HalvesUntilItFitsAndGoesOn) {
  AdaptiveBatch adaptive;
  std::vector<int64_t> passes;
  int64_t room = 3;
  const auto run = [&](const at::Tensor& windows) {
    passes.push_back(windows.size(0));
    if (windows.size(0) > room) throw std::bad_alloc();
    return std::vector<at::Tensor>{windows * 2};
  };
  const at::Tensor windows = at::arange(8).view({8, 1});
  EXPECT_TRUE(adaptive(run, windows).at(0).equal(windows * 2));
  EXPECT_EQ(passes, (std::vector<int64_t>{8, 4, 2, 2, 2, 2}));
  room = 8;
  for (int i = 0; i < 60; ++i) adaptive(run, windows);
  EXPECT_EQ(passes.back(), 8) << "it grows back";
  room = 0;
  EXPECT_THROW(adaptive(run, windows), std::bad_alloc);
}

TEST(OverlayRows, IsTheOverlayOfTheWholeImage) {
  at::manual_seed(5);
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{2, 23, 31}, std::vector<int64_t>{1, 7, 12, 9}}) {
    const at::Tensor image = at::rand(shape);
    std::vector<int64_t> one = shape;
    one[0] = 1;
    const at::Tensor labels = (at::rand(one) > 0.7).to(at::kByte) * 2;
    const ModelInput input(image);
    OverlayRows rows(input);
    for (int64_t first = 0; first < shape[1]; first += 5)
      rows.take(labels.narrow(1, first, std::min<int64_t>(5, shape[1] - first)));
    EXPECT_EQ(rows.picture().pixels, draw_overlay(image, labels[0]).pixels);
  }
  const at::Tensor large = at::rand({1, 5000, 40}), mask = (large > 0.5).to(at::kByte);
  const ModelInput input(large);
  OverlayRows rows(input);
  for (int64_t first = 0; first < 5000; first += 33)
    rows.take(mask.narrow(1, first, std::min<int64_t>(33, 5000 - first)));
  EXPECT_EQ(rows.picture().pixels, draw_overlay(large, mask[0]).pixels);
}

}  // namespace
}  // namespace cytra::inference
