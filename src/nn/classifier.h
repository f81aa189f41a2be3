#pragma once
// Networks that tell the class of an image. Include this only from .cpp files, as nn/model.h.
#include "nn/model.h"

namespace cytra::nn {

/// A model from an image of any sides that divisor() divides to a number for each of its
/// out_channels() classes: forward() gives logits (N,K,[1,]1,1), which losses, metrics and decoders
/// take as an image of one voxel.
struct Classifier : Model {
  using Model::Model;
};

}  // namespace cytra::nn
