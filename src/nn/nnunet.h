#pragma once
// The form in which nnU-Net builds a U-Net and keeps its weights.
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "config/node.h"
#include "nn/blocks/layers.h"

namespace cytra::nn {

/// A network of dynamic_network_architectures.architectures.unet.
struct NnunetNetwork {
  /// A configuration's `architecture` of plans.json: network_class_name, arch_kwargs,
  /// _kw_requires_import.
  config::Node architecture;
  /// The state dict, with the second names under which nnU-Net lists a tensor again.
  std::map<std::string, at::Tensor> weights;
};

/// A model that nnU-Net can build by itself.
struct NnunetModel {
  virtual ~NnunetModel() = default;
  /// The tensors share the model's memory where they are its own. Throws: ConfigError naming what
  /// nnU-Net's network does not have.
  virtual NnunetNetwork nnunet() const = 0;
};

/// What nnU-Net's network is made with; vectors have an entry per stage.
struct NnunetArchitecture {
  bool is_residual = false;  // ResidualEncoderUNet, else PlainConvUNet
  int64_t spatial_dims = 2;
  Sizes features, blocks, decoder_convs;  // decoder_convs: from below, one less
  std::vector<Sizes> kernels, strides;
  bool conv_bias = true;
  NormOptions norm;
  ActivationOptions act;
  double dropout = 0;
};

/// Completes the state dict `weights`, by nnU-Net's first names, with the second ones. Throws:
/// ConfigError for a norm or an activation that nnU-Net can't build.
NnunetNetwork nnunet_network(const NnunetArchitecture& architecture,
                             std::map<std::string, at::Tensor> weights);

/// A configuration of plans.json (2d, 3d_fullres ...) with all that it inherits and, of plans older
/// than nnU-Net 2.5, their network as an `architecture`. `plans`: as read from the file `path`.
/// Throws: ConfigError naming the configurations there are. Source: nnunetv2's PlansManager and
/// ConfigurationManager.
config::Node nnunet_configuration(const config::Node& plans,
                                  const std::string& path,
                                  const std::string& name);

/// The model of such a configuration, by the options of PlainConvUNet and ResidualEncoderUNet, but
/// for in_channels and out_channels. Throws: ConfigError naming another network.
config::Node nnunet_model(const config::Node& configuration, const std::string& path);

}  // namespace cytra::nn
