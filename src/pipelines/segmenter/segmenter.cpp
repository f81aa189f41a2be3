#include "pipelines/segmenter/segmenter.h"

#include <c10/core/InferenceMode.h>

#include "inference/imported/imported_model.h"
#include "pipelines/segmenter/segmenters.h"

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

std::unique_ptr<PromptedSegmenter> load_segmenter(const std::string& path,
                                                  c10::Device device,
                                                  const inference::EngineOptions& engine) {
  const c10::InferenceMode no_inference_mode(false);  // an engine may trace it
  if (!inference::is_torchscript(path)) return open_sam(path, device, engine);
  engine.say_is_unread(path);
  return open_script(path, device);
}

}  // namespace cytra::pipelines
