// Cellpose-SAM's own files: tests/golden/make_cellpose.py wrote a small one and what Cellpose
// makes.
#include "inference/imported/cellpose.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "config/json.h"
#include "config/registry.h"
#include "data/sample/sample.h"
#include "inference/predictor/predictor.h"
#include "io/safetensors.h"
#include "nn/weights.h"
#include "ops/labels/flow_labels.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra::inference {
namespace {

std::string cellpose_folder() {
  return test::golden_folder() + "/cellpose/";
}

/// The bytes of make_cellpose.py's image().
at::Tensor cellpose_image(int64_t channels, int64_t height, int64_t width) {
  const auto axis = [](int64_t size, at::IntArrayRef shape) {
    return at::arange(size, at::kLong).view(shape);
  };
  const at::Tensor c = axis(channels, {-1, 1, 1}), y = axis(height, {-1, 1}), x = axis(width, {-1});
  at::Tensor pixels = y * (3 + c) + x * (5 + 2 * c) + (x * y).floor_divide(16 + c);
  pixels = pixels.remainder(251).to(at::kFloat);
  if (channels == 4) pixels[1].fill_(7);
  return pixels;
}

/// As the transforms of the file's configuration prepare it.
at::Tensor prepared_for_cellpose(const at::Tensor& image) {
  const config::Node config = *cellpose_config(cellpose_folder() + "cpsam");
  data::Sample sample;
  sample.tensors["raw"] = image;
  Rng rng(0);
  make<data::Transform>(config.at("data.transforms.valid").list.at(1))->apply(sample, rng);
  return sample.at("raw");
}

TEST(Cellpose, FlowsOfItsFileAreItsOwn) {
  const std::string path = test::golden_folder() + "/cellpose.json";
  const config::Node golden = config::parse_json(read_file(path), path);
  PredictorOptions options;
  options.form = "raw";
  const Predictor predictor = Predictor::load(cellpose_folder() + "cpsam", options);
  for (const config::Node& one : golden.at("cases").list) {
    const auto size = one.get<std::vector<int64_t>>("size");
    const at::Tensor raw =
        predictor.predict(prepared_for_cellpose(cellpose_image(size[0], size[1], size[2])));
    ASSERT_EQ(raw.sizes().vec(), one.get<std::vector<int64_t>>("raw.shape"));
    const at::Tensor flat = raw.contiguous().flatten();
    const auto expected = one.get<std::vector<double>>("raw.values");
    const int64_t step = std::max<int64_t>(1, flat.numel() / 256);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(flat[static_cast<int64_t>(i) * step].item<double>(),
                  expected[i],
                  1e-4 * one.get<double>("raw.largest"))
          << size[1] << ", value " << i;
    }
  }
}

TEST(Cellpose, LabelsOfManyObjectsAreItsOwn) {
  const io::SafetensorsFile file(cellpose_folder() + "labels.safetensors");
  const auto image = [&](const std::string& name) {
    return nn::tensor_of(file.tensors().at(name), name).to(at::kInt);
  };
  const at::Tensor labels = image("labels"), flows = 5 * ops::masks_to_flows(labels);
  const auto noisy = [](const at::Tensor& field, double scale, double phase) {
    const at::Tensor wave = (at::arange(field.numel(), at::kDouble) * 0.7 + phase).sin();
    return (field.to(at::kDouble) + scale * wave.view(field.sizes())).to(at::kFloat);
  };
  for (const auto& [name, scale] :
       {std::pair("found_0.2", 0.2), std::pair("found_1.0", 1.0), std::pair("found_1.5", 1.5)}) {
    const at::Tensor expected = image(name);
    const at::Tensor object = labels.ne(0).to(at::kFloat) * 4 - 2;
    const at::Tensor found = ops::FlowsToLabels{}(
        at::cat({noisy(flows, scale, 0), noisy(object, scale, 1).unsqueeze(0)}));
    const auto objects = expected.max().item<int64_t>();
    ASSERT_GE(objects, 50);
    ASSERT_EQ(found.max().item<int64_t>(), objects);
    double iou = 0;
    for (int64_t label = 1; label <= objects; ++label) {
      const at::Tensor a = found.eq(label), b = expected.eq(label);
      iou += a.logical_and(b).sum().item<double>() / a.logical_or(b).sum().item<double>();
    }
    EXPECT_GT(iou / static_cast<double>(objects), 0.999) << name;
  }
}

TEST(Cellpose, ChannelsThatAreMissingOrEmptyAreZero) {
  const at::Tensor grey = prepared_for_cellpose(cellpose_image(1, 40, 50));
  ASSERT_EQ(grey.sizes(), (at::IntArrayRef{3, 40, 50}));
  EXPECT_EQ(grey.slice(0, 1).abs().max().item<float>(), 0);
  const at::Tensor four = prepared_for_cellpose(cellpose_image(4, 40, 50));
  ASSERT_EQ(four.size(0), 3);
  EXPECT_EQ(four[1].abs().max().item<float>(), 0);
  at::Tensor sparse = at::zeros({1, 40, 50});
  sparse[0][3][4] = 200;  // its percentiles are equal
  EXPECT_EQ(prepared_for_cellpose(sparse).abs().max().item<float>(), 0);
}

TEST(Cellpose, OtherNetworksAreNamed) {
  const test::TmpDir dir;
  const at::Tensor one = at::zeros({1});
  const auto message = [&](const std::vector<std::string>& names) {
    io::TensorViews tensors;
    for (const std::string& name : names) tensors[name] = nn::view_of(one);
    io::write_safetensors(dir / "weights", tensors, {});
    return message_of<DataError>([&] { Predictor::load(dir / "weights"); });
  };
  const std::string patches = "encoder.patch_embed.proj.weight";
  EXPECT_NE(message({patches, "W2", "encoder.cls_token"}).find("cpdino"), std::string::npos);
  EXPECT_NE(message({"downsample.down.res_down_0.conv.conv_0.0.weight"}).find("Cellpose 3"),
            std::string::npos);
  EXPECT_NE(message({patches, "W2"}).find("'encoder.patch_embed.proj.weight' is of another shape"),
            std::string::npos);
  EXPECT_NE(message({patches}).find("not a checkpoint of Cytra"), std::string::npos);
}

}  // namespace
}  // namespace cytra::inference
