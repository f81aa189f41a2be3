#pragma once
// Networks that tell a class, or numbers, of a whole image. Include this only from .cpp files, as
// nn/model.h.
#include "nn/model.h"

namespace cytra::nn {

/// A model from an image of any sides that divisor() divides to out_channels() numbers: forward()
/// gives (N,K,[1,]1,1), which losses, metrics and decoders take as an image of one voxel.
struct Classifier : Model {
  using Model::Model;
  at::Tensor forward(const at::Tensor& image) final { return numbers(features(image)); }
  /// The numbers and, in evaluation, their saliency().
  std::vector<at::Tensor> forward_all(const at::Tensor& image) final {
    const at::Tensor deepest = features(image);
    if (is_training()) return {numbers(deepest)};
    return {numbers(deepest), saliency(deepest)};
  }
  /// The deepest features of an image, (N,E,[d,]h,w).
  virtual at::Tensor features(const at::Tensor& image) = 0;
  /// The logits or values of features, (N,K,[1,]1,1).
  virtual at::Tensor numbers(const at::Tensor& features) = 0;
  /// Grad-CAM of each of the K numbers, (N,K,[d,]h,w), 0 and more: how much the features at a place
  /// raise it. Source: arXiv:1610.02391.
  virtual at::Tensor saliency(const at::Tensor& features) = 0;
};

}  // namespace cytra::nn
