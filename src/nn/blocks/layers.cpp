// Source: torch.nn, and monai.networks.layers.factories for the names of options.
#include "nn/blocks/layers.h"

#include <cmath>
#include <utility>

#include <ATen/ATen.h>
#include <torch/nn/init.h>

#include "base/error.h"
#include "base/strings.h"
#include "config/options.h"
#include "nn/dropout.h"
#include "ops/conv/conv.h"

namespace cytra::nn {

Conv::Conv(int64_t in, int64_t out, const ConvOptions& options) : options_(options) {
  const bool transposed = options.transposed;
  Sizes& padding = options_.padding;
  if (padding.empty()) {
    for (const int64_t side : options.kernel) padding.push_back((side - 1) / 2);
  }
  if (options.output_padding.empty()) {
    for (std::size_t d = 0; d < options.kernel.size(); ++d)
      options_.output_padding.push_back(
          transposed ? options.stride[d] + 2 * padding[d] - options.kernel[d] : 0);
  }
  if (options.dilation.empty()) options_.dilation = Sizes(options.stride.size(), 1);
  Sizes shape{transposed ? in : out, (transposed ? out : in) / options.groups};
  shape.insert(shape.end(), options.kernel.begin(), options.kernel.end());
  weight = register_parameter("weight", torch::empty(shape));
  if (options.bias) bias = register_parameter("bias", torch::zeros(out));
  if (options.he_slope) {
    torch::nn::init::kaiming_normal_(weight, *options.he_slope);
  } else {
    torch::nn::init::kaiming_uniform_(weight, std::sqrt(5.0));
    const double bound =
        1 / std::sqrt(static_cast<double>(weight.numel()) / static_cast<double>(weight.size(0)));
    if (options.bias) torch::nn::init::uniform_(bias, -bound, bound);
  }
}

at::Tensor Conv::forward(const at::Tensor& x) {
  const auto& o = options_;
  return ops::convolution(
      x,
      weight,
      bias,
      {o.stride, o.padding, o.dilation, o.transposed, o.output_padding, o.groups, true});
}

void Conv::rescale(const at::Tensor& scale, const at::Tensor& shift) {
  const at::NoGradGuard no_grad;
  Sizes shape(static_cast<std::size_t>(weight.dim()), 1);
  at::Tensor factor = scale;
  if (options_.transposed) {  // (in, out / groups, ...): each group has outputs of its own
    shape[0] = weight.size(0);
    shape[1] = weight.size(1);
    factor = scale.view({options_.groups, -1}).repeat_interleave(shape[0] / options_.groups, 0);
  } else {
    shape[0] = weight.size(0);
  }
  weight.copy_(weight.to(at::kDouble) * factor.view(shape));
  if (!bias.defined()) {
    bias = register_parameter(
        "bias", at::zeros(scale.sizes(), weight.options()), /*requires_grad=*/false);
  }
  bias.copy_(bias.to(at::kDouble) * scale + shift);
}

namespace {

/// The options of the layer that `node` names in one of MONAI's forms.
template <class Options>
Options layer_options(const config::Node& node,
                      const char* what,
                      const std::vector<std::string>& kinds) {
  using config::Kind;
  if (node.is_null()) return {};
  config::Node name = node, arguments = config::Node::make_map();
  if (node.kind == Kind::list && node.list.size() == 2 && node.list[1].is_map()) {
    name = node.list[0];
    arguments = node.list[1];
  } else if (node.is_map()) {
    name = node.at("name");
    arguments.origin = node.origin;
    for (const auto& [key, value] : node.map) {
      if (key != "name") arguments.set(key, value);
    }
  }
  if (name.kind != Kind::string) {
    throw ConfigError("{}: expected {}: a name, [name, {{arguments}}] or {{name: ..., arguments}}",
                      node.where(),
                      what);
  }
  std::string kind = in_small_letters(name.string);
  if (!kind.empty() && !contains(kinds, kind)) {
    throw ConfigError("{}: '{}' is not a known {}; expected one of {}.{}",
                      node.where(),
                      printable(name.string),
                      what,
                      join(kinds, ", "),
                      suggestion(kind, kinds));
  }
  auto options = config::parse<Options>(arguments);
  options.kind = std::move(kind);
  return options;
}

}  // namespace

void NormOptions::visit(auto& v) {
  v("affine", affine, "scale and shift each channel; null: all but instance do");
  v("num_groups", num_groups, "of group", 1, 1e5);
  v("normalized_shape", normalized_shape, "of layer: the last sides", 1, 1e6);
  v("eps", eps, "added to the variance", 0, 1);
  v("momentum", momentum, "for batch: weight of the new values in the running statistics", 0, 1);
  v("track_running_stats", track_running_stats, "for batch; false: evaluation uses the batch, too");
}

NormOptions norm_options(const config::Node& node) {
  auto options = layer_options<NormOptions>(node, "norm", {"instance", "batch", "group", "layer"});
  if (options.kind == "group" && options.num_groups == 0)
    throw ConfigError(node.where() + ": group needs num_groups: [group, {num_groups: 8}]");
  if (options.kind == "layer" && options.normalized_shape.empty())
    throw ConfigError(node.where() +
                      ": layer needs normalized_shape: [layer, {normalized_shape: [8, 32, 32]}]");
  return options;
}

Norm::Norm(const NormOptions& options, int64_t channels) : options_(options) {
  if (options.kind.empty()) return;
  if (options.kind == "group" && channels % options.num_groups != 0) {
    throw ConfigError(
        "num_groups {} of the norm does not divide {} features", options.num_groups, channels);
  }
  if (options.affine.value_or(options.kind != "instance")) {
    const Sizes shape = options.kind == "layer" ? options.normalized_shape : Sizes{channels};
    weight = register_parameter("weight", torch::ones(shape));
    bias = register_parameter("bias", torch::zeros(shape));
  }
  if (options.kind == "batch" && options.track_running_stats) {
    running_.mean = register_buffer("running_mean", torch::zeros(channels));
    running_.variance = register_buffer("running_var", torch::ones(channels));
    running_.momentum = options.momentum;
    batches_ = register_buffer("num_batches_tracked", torch::zeros({}, at::kLong));
  }
}

at::Tensor Norm::forward(at::Tensor x, const ops::Activation& activation) {
  const auto& [kind, eps] = std::tie(options_.kind, options_.eps);
  if (kind == "instance") return ops::instance_norm(std::move(x), weight, bias, eps, activation);
  if (kind == "group")
    return ops::group_norm(std::move(x), options_.num_groups, weight, bias, eps, activation);
  if (kind == "layer")
    return ops::layer_norm(x, options_.normalized_shape, weight, bias, eps, activation);
  if (kind.empty() || is_folded) return ops::activate(x, activation);
  if (is_training() && batches_.defined()) batches_.add_(1);
  if (is_training() && sum_over_processes)
    return ops::synced_batch_norm(x, weight, bias, running_, eps, sum_over_processes, activation);
  const bool by_batch = is_training() || !has_running_statistics();
  return ops::batch_norm(std::move(x), weight, bias, running_, by_batch, eps, activation);
}

std::pair<at::Tensor, at::Tensor> Norm::scale_and_shift() const {
  at::Tensor scale = (running_.variance.to(at::kDouble) + options_.eps).rsqrt();
  if (weight.defined()) scale = scale * weight;
  at::Tensor shift = -running_.mean * scale;
  if (bias.defined()) shift = shift + bias;
  return {scale, shift};
}

void ActivationOptions::visit(auto& v) {
  v("negative_slope", negative_slope, "of leakyrelu");
  v("alpha", alpha, "of elu and swish");
  v("num_parameters", num_parameters, "of prelu: 1, or one for each channel", 1, 1e5);
  v("init", init, "of prelu");
  v("inplace",
    config::Unused{},
    "an option of torch, where it saves memory; there is none to save here");
}

ActivationOptions activation_options(const config::Node& node) {
  return layer_options<ActivationOptions>(node,
                                          "activation",
                                          {"relu",
                                           "relu6",
                                           "leakyrelu",
                                           "prelu",
                                           "elu",
                                           "selu",
                                           "gelu",
                                           "swish",
                                           "silu",
                                           "mish",
                                           "sigmoid",
                                           "tanh"});
}

Activation::Activation(const ActivationOptions& options) : options_(options) {
  using Simple = ops::Activation;
  const std::string& kind = options_.kind;
  if (kind == "prelu") {
    weight = register_parameter("weight",
                                torch::full({options.num_parameters}, options.init, at::kFloat));
  } else if (kind.empty()) {
    simple_ = Simple{};
  } else if (kind == "relu") {
    simple_ = Simple{Simple::kRelu};
  } else if (kind == "leakyrelu") {
    simple_ = Simple{Simple::kLeakyRelu, options.negative_slope};
  } else if (kind == "gelu") {
    simple_ = Simple{Simple::kGelu};
  } else if (kind == "elu") {
    simple_ = Simple{Simple::kElu, options.alpha};
  } else if (kind == "silu" || (kind == "swish" && options.alpha == 1)) {
    simple_ = Simple{Simple::kSilu};
  }
}

at::Tensor Activation::forward(const at::Tensor& x) {
  const std::string& kind = options_.kind;
  if (simple_) return ops::activate(x, *simple_);
  if (kind == "prelu") return at::prelu(x, weight);
  if (kind == "relu6") return at::relu6(x);
  if (kind == "selu") return at::selu(x);
  if (kind == "swish") return x * at::sigmoid(options_.alpha * x);
  if (kind == "mish") return at::mish(x);
  if (kind == "sigmoid") return at::sigmoid(x);
  return at::tanh(x);
}

at::Tensor Activation::of_result(at::Tensor x) {
  using Simple = ops::Activation;
  if (simple_ && simple_->kind == Simple::kRelu) return at::relu_(x);
  if (simple_ && simple_->kind == Simple::kLeakyRelu && simple_->slope >= 0)
    return at::leaky_relu_(x, simple_->slope);
  return call(*this, x);
}

at::Tensor norm_act(Norm& norm, Activation& activation, at::Tensor x) {
  if (norm.is_folded) return activation.of_result(std::move(x));
  if (const auto simple = activation.simple()) return call(norm, std::move(x), *simple);
  return call(activation, call(norm, std::move(x), ops::Activation{}));
}

bool Dropout::is_dropping() const {
  return drops(p_, is_training());
}

at::Tensor Dropout::forward(const at::Tensor& x) {
  return dropout(x, p_, is_training(), channels_);
}

}  // namespace cytra::nn
