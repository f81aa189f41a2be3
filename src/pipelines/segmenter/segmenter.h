#pragma once
// Masks of objects whose boxes are known: an image is encoded once, then each box is a prompt.
// Source: segment_anything/predictor.py, modeling/sam.py (Kirillov et al. 2023, arXiv:2304.02643).
#include <cstdint>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "inference/engines/engine.h"
#include "nn/square_image.h"

namespace cytra::pipelines {

/// A network that makes masks of boxes. Thread: one at a time calls encode() and masks(); the rest
/// at any time.
class PromptedSegmenter {
 public:
  /// `side`: S, the square's pixels.
  PromptedSegmenter(int64_t side, nn::PixelScale pixels);
  virtual ~PromptedSegmenter() = default;
  PromptedSegmenter& operator=(PromptedSegmenter&&) = delete;

  int64_t side() const { return side_; }
  /// image: (C,H,W) of any size and number type -> its `image`, (3,S,S) float32 on the CPU, and its
  /// `placement`, which turns boxes of the image into those of the square. Throws: DataError, as
  /// nn::square_image().
  nn::SquareImage prepare(const at::Tensor& image) const;
  /// images: (N,3,S,S) as prepare() made them, any device -> (N,C,s,s) embeddings, on the device.
  /// An image's embedding does not depend on the others.
  virtual at::Tensor encode(const at::Tensor& images) = 0;
  /// embeddings: (B,C,s,s), one for each box: of one image or several (index_select). boxes: (B,4)
  /// x0 y0 x1 y1 in the square's pixels (nn::Placement::boxes) -> (B,h,w) float32 logits, > 0
  /// inside, on the device. A mask does not depend on the other boxes.
  virtual at::Tensor masks(const at::Tensor& embeddings, const at::Tensor& boxes) = 0;
  /// (B,h,w) logits of masks(), of the whole square -> (B,H,W) of the image, linear.
  at::Tensor upscale(const at::Tensor& logits, const nn::Placement& placement) const;
  /// The fingerprint of weights and options: it differs where results differ. Embeddings in a
  /// cache belong to one fingerprint.
  virtual std::string fingerprint() const = 0;

 private:
  const int64_t side_;
  const nn::PixelScale pixels_;
};

/// `path`: a checkpoint of `train experiment=promptable/...`; weights of Segment Anything with a
/// ViT (sam_vit_b_01ec64.pth, or the same as safetensors): their shapes tell its size; or
/// TorchScript, a module with methods encode((N,3,S,S)) -> (N,C,s,s) and masks((B,C,s,s), (B,4)) ->
/// (B,h,w), an int attribute image_size, and, where they are not Segment Anything's, pixel_mean and
/// pixel_std, lists of 3 numbers for bytes. `engine`: what runs the encoder, and in which
/// precision; on a CPU the mask decoder is run by eager; TorchScript is run as it is. Throws:
/// ConfigError, DataError naming what was found.
std::unique_ptr<PromptedSegmenter> load_segmenter(const std::string& path,
                                                  c10::Device device,
                                                  const inference::EngineOptions& engine = {
                                                      "eager"});

}  // namespace cytra::pipelines
