// A model that StarDist trained, as scripts/convert_stardist.py converts it:
// tests/golden/make_stardist_model.py.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "data/sample/image_tensor.h"
#include "inference/predictor/predictor.h"
#include "io/reader.h"
#include "tests/support/object_iou.h"

namespace cytra::inference {
namespace {

const std::string kFolder = CYTRA_SOURCE_DIR "/tests/golden/stardist/";

at::Tensor bytes_of(const std::string& name) {
  const io::Image image = io::read_image(kFolder + name);
  return at::tensor(at::ArrayRef<unsigned char>(image.pixels.data(), image.pixels.size()))
      .view({image.shape[2], image.shape[3]});
}

/// The normalization of the checkpoint, csbdeep's normalize(1, 99.8).
at::Tensor normalized(const at::Tensor& image) {
  const at::Tensor values = image.to(at::kDouble);
  const at::Tensor ends = at::quantile(values.flatten(), at::tensor({0.01, 0.998}, at::kDouble));
  return ((values - ends[0]) / (ends[1] - ends[0])).to(at::kFloat).unsqueeze(0);
}

TEST(StarDistModel, GivesTheLabelsOfStarDist) {
  PredictorOptions options;
  options.accelerator = "cpu";
  options.engine.backend = "eager";
  const at::Tensor image = normalized(bytes_of("image.npy")), expected = bytes_of("labels.npy");
  ASSERT_GT(expected.max().item<int64_t>(), 30);
  const at::Tensor found = Predictor::load(kFolder + "model.ckpt", options).predict(image);
  EXPECT_GT(test::least_iou(found[0], expected), 0.999);
}

TEST(StarDistModel, WindowsOnItsGridGiveTheSameObjects) {
  PredictorOptions options;
  options.accelerator = "cpu";
  options.engine.backend = "eager";
  options.inference_args = config::parse_yaml("{roi_size: 64, overlap: 0.5}", "test");
  const at::Tensor image = normalized(bytes_of("image.npy")), expected = bytes_of("labels.npy");
  const at::Tensor found = Predictor::load(kFolder + "model.ckpt", options).predict(image);
  EXPECT_GT(test::least_iou(found[0], expected), 0.7);
}

}  // namespace
}  // namespace cytra::inference
