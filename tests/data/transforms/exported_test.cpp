#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "config/registry.h"
#include "data/sample/sample.h"
#include "nn/weights.h"
#include "tests/support/golden.h"

namespace cytra::data {
namespace {

TEST(ExportedTransform, EqualsPythons) {
  const std::string stem = test::golden_folder() + "/exported/functions/edges";
  const config::Node node = config::parse_yaml(
      "{_target_: ExportedTransformd, keys: image, file: '" + stem + ".pt2'}", "test");
  const auto transform = make<Transform>(node);
  EXPECT_EQ(transform->text.size(), 32U);  // the file's fingerprint: caches tell files apart
  const io::SafetensorsFile golden(stem + ".safetensors");
  Sample sample;
  sample.tensors["image"] = nn::tensor_of(golden.tensors().at("image"), "image");
  Rng rng(1);
  transform->apply(sample, rng);
  EXPECT_LE((sample.at("image") - nn::tensor_of(golden.tensors().at("result"), "result"))
                .abs()
                .max()
                .item<double>(),
            1e-5);
}

}  // namespace
}  // namespace cytra::data
