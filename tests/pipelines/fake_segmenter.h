#pragma once
// A segmenter without a network: an embedding is the image, coarser; a mask is what is bright in
// its box.
#include <ATen/ATen.h>

#include "pipelines/segmenter/segmenter.h"

namespace cytra::test {

struct FakeSegmenter final : pipelines::PromptedSegmenter {
  explicit FakeSegmenter(int64_t side = 64) : PromptedSegmenter(side, nn::PixelScale{}) {}
  at::Tensor encode(const at::Tensor& images) override {
    encoded += images.size(0);
    return at::avg_pool2d(images, 2);
  }
  at::Tensor masks(const at::Tensor& embeddings, const at::Tensor& boxes) override {
    batches.push_back(boxes.size(0));
    const auto along = [&](int64_t begin, int64_t end, int64_t length) {
      const at::Tensor centres = (at::arange(length, at::kFloat) + 0.5).unsqueeze(0) * 2;
      return centres.gt(boxes.slice(1, begin, begin + 1))
          .logical_and(centres.lt(boxes.slice(1, end, end + 1)));
    };
    const at::Tensor inside = along(1, 3, embeddings.size(2))
                                  .unsqueeze(2)
                                  .logical_and(along(0, 2, embeddings.size(3)).unsqueeze(1));
    return at::where(inside, embeddings.mean(1), at::full({}, -1.0F));
  }
  std::string fingerprint() const override { return "fake"; }
  int64_t encoded = 0;
  std::vector<int64_t> batches;  // boxes of each call
};

}  // namespace cytra::test
