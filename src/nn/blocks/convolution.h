#pragma once
// The blocks that MONAI's networks share, with the names of their parameters.
#include "nn/blocks/layers.h"

namespace cytra::nn {

/// What follows a convolution, and in which order: N norm, D dropout, A activation.
struct AdnOptions {
  NormOptions norm;
  ActivationOptions act;
  double dropout = 0;
  std::string ordering = "NDA";
};

/// The modules "N", "D" and "A" that the options name, in their order. Throws: ConfigError for
/// another letter.
std::shared_ptr<Sequence> make_adn(int64_t channels, const AdnOptions& options);

/// monai.networks.blocks.Convolution: "conv", and "adn" unless it is a convolution alone.
struct Convolution : Sequence {
  Convolution(int64_t in, int64_t out, const ConvOptions& options);
  Convolution(int64_t in, int64_t out, const ConvOptions& options, const AdnOptions& adn);
};

struct UpSampleOptions {
  std::string mode;   // one of kUpSampleModes
  Sizes scale;        // one number per spatial dimension
  Sizes kernel = {};  // of the transposed convolutions; empty: the scale, without padding
  bool bias = true;
  bool align_corners = true;  // of nontrainable, which is linear
};
inline const std::vector<std::string> kUpSampleModes{
    "deconv", "deconvgroup", "nontrainable", "pixelshuffle"};

/// monai.networks.blocks.UpSample.
struct UpSample : Sequence {
  UpSample(int64_t in, int64_t out, const UpSampleOptions& options);
};

}  // namespace cytra::nn
