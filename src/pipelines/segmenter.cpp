#include "pipelines/segmenter.h"

namespace cytra::pipelines {

PromptedSegmenter::PromptedSegmenter(int64_t side, nn::PixelScale pixels)
    : side_(side), pixels_(std::move(pixels)) {}

nn::SquareImage PromptedSegmenter::prepare(const at::Tensor& image) const {
  return nn::square_image(image, side_, pixels_);
}

at::Tensor PromptedSegmenter::upscale(const at::Tensor& logits,
                                      const nn::Placement& placement) const {
  return nn::upscale_masks(logits, placement, side_);
}

}  // namespace cytra::pipelines
