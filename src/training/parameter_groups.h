#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::training {

/// Parameters by name, in the order in which the model registers them:
/// `model.named_parameters().pairs()`.
using NamedParameters = std::vector<std::pair<std::string, at::Tensor>>;

/// What some parameters are trained with.
struct ParameterGroup {
  std::string params;
  double lr_scale = 1;
  std::optional<double> weight_decay;
  bool freeze = false;
  void visit(auto& v) {
    v("params", params, "regular expression, searched for in the parameters' names");
    v("lr_scale", lr_scale, "factor of the learning rate", 0, 1e9);
    v("weight_decay",
      weight_decay,
      "used instead of the optimizer's; null: the optimizer's",
      0,
      1e9);
    v("freeze", freeze, "leave these parameters as they are");
  }
  void check() const;
};

struct GroupOptions {
  std::vector<ParameterGroup> param_groups;
  bool no_decay_norm_and_bias = false;
  std::optional<double> layer_decay;
  void visit(auto& v) {
    v("param_groups",
      param_groups,
      "other settings for some parameters; the first group that matches");
    v("no_decay_norm_and_bias",
      no_decay_norm_and_bias,
      "no weight decay for biases and parameters of one dimension or none");
    v("layer_decay",
      layer_decay,
      "factor of the learning rate from each block of the model to the one before; null: 1",
      0,
      1);
  }
};

/// The settings of one parameter.
struct ParameterSettings {
  double lr_scale = 1, weight_decay = 0;
  bool freeze = false;
};

/// The settings of each parameter; `weight_decay` where no group sets it.
///
/// Layer decay: the last block has the full learning rate, each block before it `layer_decay` times
/// that of its successor, as in fine-tuning BEiT and MAE (Bao et al. 2022, He et al. 2022). A block
/// is what shares a name up to the first number among the first three parts (`blocks.3`,
/// `layer1.0`, `vit.blocks.3`), or where there is none, the first part (`input_block`); blocks
/// count in the order in which their first parameters are registered. A group's lr_scale comes on
/// top.
/// Throws: ConfigError when a group matches no parameter.
std::vector<ParameterSettings> settings_of(const GroupOptions& options,
                                           double weight_decay,
                                           const NamedParameters& parameters);

}  // namespace cytra::training
