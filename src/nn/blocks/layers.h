#pragma once
// The layers of torch.nn that networks of convolutions use, with the names of their parameters.
#include <optional>
#include <utility>

#include "config/node.h"
#include "nn/blocks/layer.h"
#include "ops/norm/norm.h"
#include "ops/norm/synced_batch_norm.h"

namespace cytra::nn {

struct ConvOptions {
  Sizes kernel, stride;  // one number per spatial dimension; the kernel's tell how many these are
  bool bias = true;
  bool transposed = false;
  Sizes padding = {};  // empty: (kernel - 1) / 2, so that an odd kernel divides sides by its stride
  int64_t groups = 1;
  /// Kaiming's normal distribution for a leaky ReLU of this slope, biases 0; else torch's.
  std::optional<double> he_slope = {};
  Sizes output_padding =
      {};               // of a transposed one; empty: so that it multiplies sides by its stride
  Sizes dilation = {};  // empty: 1
};

/// torch.nn.Conv2d, Conv3d, ConvTranspose2d and ConvTranspose3d.
struct Conv final : Layer {
  Conv(int64_t in, int64_t out, const ConvOptions& options);
  at::Tensor forward(const at::Tensor& x) override;
  /// Changes the weights so that outputs become output * scale + shift, (out) each.
  void rescale(const at::Tensor& scale, const at::Tensor& shift);
  at::Tensor weight, bias;

 private:
  ConvOptions options_;
};

/// A norm as MONAI's options write it: `batch`, `[group, {num_groups: 8}]`, or
/// `{name: group, num_groups: 8}`. Kinds: instance, batch, group, layer; empty: none.
struct NormOptions {
  std::string kind;
  std::optional<bool> affine;  // by default all but instance
  int64_t num_groups = 0;      // of group
  Sizes normalized_shape;      // of layer
  double eps = 1e-5, momentum = 0.1;
  bool track_running_stats = true;  // of batch; false: each batch is normalised by its own
  void visit(auto& v);
};
/// Throws: ConfigError that names the option and the allowed kinds.
NormOptions norm_options(const config::Node& node);

/// torch.nn.InstanceNorm, BatchNorm, GroupNorm and LayerNorm; with kind none it returns its input.
struct Norm final : Layer {
  Norm(const NormOptions& options, int64_t channels);
  at::Tensor forward(const at::Tensor& x) override { return forward(x, {}); }
  /// The norm with the activation after it.
  at::Tensor forward(at::Tensor x, const ops::Activation& activation);
  bool is_of_batch() const { return options_.kind == "batch"; }
  bool has_running_statistics() const { return running_.mean.defined(); }
  /// The map of a batch norm in evaluation mode, x * scale + shift: (C) double each.
  std::pair<at::Tensor, at::Tensor> scale_and_shift() const;
  bool is_folded = false;                    // the convolution before does its work: nn/fold.h
  at::Tensor weight, bias;                   // undefined without an affine map
  ops::SumOverProcesses sum_over_processes;  // of a batch norm; empty: each by itself

 private:
  NormOptions options_;
  ops::RunningStatistics running_;
  at::Tensor batches_;
};

/// An activation, written in the same way: relu, relu6, leakyrelu, prelu, elu, selu, gelu, swish
/// (silu), mish, sigmoid, tanh; empty: none.
struct ActivationOptions {
  std::string kind;
  double negative_slope = 0.01;  // of leakyrelu
  double alpha = 1;              // of elu, swish
  int64_t num_parameters = 1;    // of prelu
  double init = 0.25;            // of prelu
  void visit(auto& v);
};
ActivationOptions activation_options(const config::Node& node);

struct Activation final : Layer {
  explicit Activation(const ActivationOptions& options);
  at::Tensor forward(const at::Tensor& x) override;
  /// The activation of a tensor that nothing else uses: in its memory where the derivative allows
  /// it.
  at::Tensor of_result(at::Tensor x);
  /// The activation in a form that a norm can compute with; nothing when it has parameters or is a
  /// rare one.
  std::optional<ops::Activation> simple() const { return simple_; }
  at::Tensor weight;  // of prelu

 private:
  ActivationOptions options_;
  std::optional<ops::Activation> simple_;
};

/// The activation of the norm of x, in one operation where there is one. An x that is moved in may
/// be overwritten: ops/norm/norm.h.
at::Tensor norm_act(Norm& norm, Activation& activation, at::Tensor x);

/// Drops single values or, with `channels`, whole channels, in training.
struct Dropout final : Layer {
  explicit Dropout(double p, bool channels = false) : p_(p), channels_(channels) {}
  at::Tensor forward(const at::Tensor& x) override;
  bool is_dropping() const;  // now

 private:
  double p_;
  bool channels_;
};

}  // namespace cytra::nn
