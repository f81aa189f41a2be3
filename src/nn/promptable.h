#pragma once
// Networks that are given the object to segment, as a prompt. Include this only from .cpp files,
// as nn/model.h.
#include "nn/model.h"
#include "nn/square_image.h"

namespace cytra::nn {

/// The prompts for B objects, in pixels of the network's square. Undefined: not given; at least
/// one of them is given.
struct Prompts {
  at::Tensor boxes = {};   // (B,4) x0 y0 x1 y1
  at::Tensor points = {};  // (B,P,2) x y
  at::Tensor labels = {};  // (B,P) of the points: 1 inside, 0 outside, -1 none
  at::Tensor masks = {};   // (B,1,4s,4s) logits of a guess
};

struct PromptedMasks {
  at::Tensor logits;   // (B,K,4s,4s), > 0 inside
  at::Tensor quality;  // (B,K): the intersection over union that each mask is believed to have
};

/// forward() is encode(); forward_all() also gives the masks and qualities of one box around all.
struct PromptableModel : Model {
  using Model::Model;
  /// images: (N,3,S,S) -> (N,C,s,s) embeddings.
  virtual at::Tensor encode(const at::Tensor& images) = 0;
  /// embeddings: (B,C,s,s), one for each object. The mask for unambiguous prompts, K = 1; with
  /// `all` the masks of the whole, a part and a smaller part follow.
  virtual PromptedMasks decode(const at::Tensor& embeddings,
                               const Prompts& prompts,
                               bool all = false) = 0;
  /// How images are brought to fixed_size().
  virtual PixelScale pixels() const = 0;
};

}  // namespace cytra::nn
