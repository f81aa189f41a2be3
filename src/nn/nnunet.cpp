#include "nn/nnunet.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"

namespace cytra::nn {
namespace {

using config::Node;
using Weights = std::map<std::string, at::Tensor>;

Node text(const std::string& value) {
  return Node::make_string(value);
}

Node rows_of(const std::vector<Sizes>& sizes) {
  return Node::make_list(mapped(sizes, [](const Sizes& row) { return Node::make_list(row); }));
}

/// torch.nn's class of the activation, and its arguments.
std::pair<std::string, Node> nonlin_of(const ActivationOptions& act) {
  Node arguments = Node::make_map();
  if (act.kind == "gelu") return {"torch.nn.GELU", arguments};
  arguments.set("inplace", Node::make_boolean(true));
  if (act.kind == "relu") return {"torch.nn.ReLU", arguments};
  if (act.kind == "leakyrelu") {
    arguments.set("negative_slope", Node::make_real(act.negative_slope));
    return {"torch.nn.LeakyReLU", arguments};
  }
  if (act.kind == "elu") {
    arguments.set("alpha", Node::make_real(act.alpha));
    return {"torch.nn.ELU", arguments};
  }
  throw ConfigError("format=nnunet: the activation '{}', expected leakyrelu, relu, elu or gelu",
                    act.kind);
}

/// Adds the second names: each unit of a convolution lists its parts again as `all_modules`, and
/// the decoder lists the encoder again.
void add_second_names(Weights& weights, bool has_dropout) {
  Weights more;
  for (const auto& [name, tensor] : weights) {
    // A residual block drops nothing in its second convolution and in its skip.
    const bool has_own_dropout = has_dropout && name.find(".conv2.") == std::string::npos &&
                                 name.find(".skip.") == std::string::npos;
    for (const auto& [part, place] :
         {std::pair(".conv.", 0), std::pair(".norm.", has_own_dropout ? 2 : 1)}) {
      const std::size_t at = name.rfind(part);
      if (at == std::string::npos) continue;
      const std::string leaf = name.substr(at + std::string(part).size());
      more[fmt::format("{}.all_modules.{}.{}", name.substr(0, at), place, leaf)] = tensor;
    }
  }
  weights.merge(more);
  Weights again;
  for (const auto& [name, tensor] : weights) {
    if (name.starts_with("encoder.")) again["decoder." + name] = tensor;
  }
  weights.merge(again);
}

/// "torch.nn.modules.instancenorm.InstanceNorm3d" with its arguments -> {name: instance, ...}.
Node layer_of_plans(const Node& arguments, const std::string& key) {
  const Node* const name = arguments.find_direct(key);
  if (name == nullptr || name->is_null()) return {};
  auto kind = name->as<std::string>();
  kind.erase(0, kind.rfind('.') + 1);
  if (const std::size_t norm = kind.find("Norm"); norm != std::string::npos) kind.erase(norm);
  Node layer = Node::make_map();
  if (const Node* given = arguments.find_direct(key + "_kwargs"); given && given->is_map())
    layer = *given;
  layer.origin = name->origin;
  layer.set("name", text(kind));
  return layer;
}

/// The architecture that plans before nnU-Net 2.5 describe by other keys.
Node architecture_of_old(const Node& configuration) {
  const auto name = configuration.get<std::string>("UNet_class_name");
  const Node& blocks = configuration.at("n_conv_per_stage_encoder");
  const auto dims = configuration.at("patch_size").list.size();
  const auto most = std::min<int64_t>(configuration.get<int64_t>("unet_max_num_features"), 1 << 20);
  Sizes features;
  auto wide = configuration.get<int64_t>("UNet_base_num_features");
  for (std::size_t stage = 0; stage < blocks.list.size(); ++stage) {
    features.push_back(wide = std::min(wide, most));
    if (wide > 0 && wide < most) wide *= 2;
  }
  Node affine = Node::make_map(), arguments = Node::make_map(), architecture = Node::make_map();
  affine.set("eps", Node::make_real(1e-5));
  affine.set("affine", Node::make_boolean(true));
  arguments.set("n_stages", Node::make_integer(std::ssize(features)));
  arguments.set("features_per_stage", Node::make_list(features));
  arguments.set("conv_op", text(fmt::format("torch.nn.modules.conv.Conv{}d", dims)));
  arguments.set("kernel_sizes", configuration.at("conv_kernel_sizes"));
  arguments.set("strides", configuration.at("pool_op_kernel_sizes"));
  arguments.set(name == "ResidualEncoderUNet" ? "n_blocks_per_stage" : "n_conv_per_stage", blocks);
  arguments.set("n_conv_per_stage_decoder", configuration.at("n_conv_per_stage_decoder"));
  arguments.set("conv_bias", Node::make_boolean(true));
  arguments.set("norm_op",
                text(fmt::format("torch.nn.modules.instancenorm.InstanceNorm{}d", dims)));
  arguments.set("norm_op_kwargs", std::move(affine));
  arguments.set("nonlin", text("torch.nn.LeakyReLU"));
  architecture.set("network_class_name", text(name));
  architecture.set("arch_kwargs", std::move(arguments));
  return architecture;
}

}  // namespace

Node nnunet_configuration(const Node& plans, const std::string& path, const std::string& name) {
  const Node& all = plans.at("configurations");
  std::vector<const Node*> line;  // the configuration, then what it inherits from
  for (std::string next = name;;) {
    const Node* found = all.find_direct(next);
    if (found == nullptr) {
      throw ConfigError("{}: no configuration '{}'; there are {}.{}",
                        path,
                        printable(next),
                        join(all.keys(), ", "),
                        suggestion(next, all.keys()));
    }
    line.push_back(found);
    const Node* parent = found->find_direct("inherits_from");
    if (parent == nullptr) break;
    next = parent->as<std::string>();
    if (line.size() > all.map.size())
      throw ConfigError(path + ": '" + printable(name) + "' inherits from itself");
  }
  Node configuration = Node::make_map();
  configuration.origin = line.front()->origin;
  for (auto level = line.rbegin(); level != line.rend(); ++level)
    for (const auto& [key, value] : (*level)->map) configuration.set(key, value);
  if (configuration.find_direct("architecture") == nullptr) {
    if (configuration.find_direct("UNet_class_name") == nullptr)
      throw ConfigError(path + ": no architecture in '" + printable(name) + "'");
    configuration.set("architecture", architecture_of_old(configuration));
  }
  return configuration;
}

Node nnunet_model(const Node& configuration, const std::string& path) {
  const Node& architecture = configuration.at("architecture");
  auto name = architecture.get<std::string>("network_class_name");
  name.erase(0, name.rfind('.') + 1);
  if (name != "PlainConvUNet" && name != "ResidualEncoderUNet") {
    throw ConfigError(
        "{}: a network '{}', expected PlainConvUNet or ResidualEncoderUNet", path, printable(name));
  }
  const Node& arguments = architecture.at("arch_kwargs");
  const std::vector<std::string> known{"n_stages",
                                       "features_per_stage",
                                       "conv_op",
                                       "kernel_sizes",
                                       "strides",
                                       "n_conv_per_stage",
                                       "n_blocks_per_stage",
                                       "n_conv_per_stage_decoder",
                                       "conv_bias",
                                       "norm_op",
                                       "norm_op_kwargs",
                                       "dropout_op",
                                       "dropout_op_kwargs",
                                       "nonlin",
                                       "nonlin_kwargs",
                                       "deep_supervision"};
  for (const auto& [key, value] : arguments.map) {
    const bool is_off =
        value.is_null() || (value.kind == config::Kind::boolean && !value.as<bool>());
    if (is_off || contains(known, key)) continue;
    throw ConfigError("{}: a network with arch_kwargs.{}, which is not known here; expected {}",
                      path,
                      printable(key),
                      join(known, ", "));
  }
  const auto conv = arguments.get<std::string>("conv_op");
  const auto rows = [&](const char* key) {
    std::vector<Sizes> sizes;
    if (!arguments.at(key).is_container()) sizes.push_back({arguments.get<int64_t>(key)});
    for (const Node& row : arguments.at(key).list)
      sizes.push_back(row.is_container() ? row.as<Sizes>() : Sizes{row.as<int64_t>()});
    return rows_of(sizes);
  };
  Node model = Node::make_map();
  model.set("_target_", text(name));
  model.set("spatial_dims", Node::make_integer(conv.find("3d") != std::string::npos ? 3 : 2));
  const char* blocks = name == "PlainConvUNet" ? "n_conv_per_stage" : "n_blocks_per_stage";
  for (const char* key : {"n_stages", "features_per_stage", blocks, "n_conv_per_stage_decoder"})
    model.set(key, arguments.at(key));
  model.set("kernel_sizes", rows("kernel_sizes"));
  model.set("strides", rows("strides"));
  model.set("conv_bias", Node::make_boolean(arguments.get<bool>("conv_bias", false)));
  model.set("norm_op", layer_of_plans(arguments, "norm_op"));
  model.set("nonlin", layer_of_plans(arguments, "nonlin"));
  const Node* drop = arguments.find_direct("dropout_op_kwargs");
  const Node* op = arguments.find_direct("dropout_op");
  const bool has_dropout = op != nullptr && !op->is_null();
  model.set("dropout",
            Node::make_real(!has_dropout                        ? 0
                            : drop != nullptr && drop->is_map() ? drop->get<double>("p", 0.5)
                                                                : 0.5));
  return model;
}

NnunetNetwork nnunet_network(const NnunetArchitecture& architecture, Weights weights) {
  const NormOptions& norm = architecture.norm;
  if (norm.kind != "instance" && norm.kind != "batch")
    throw ConfigError("format=nnunet: the norm '{}', expected instance or batch", norm.kind);
  const std::string dims = fmt::format("{}d", architecture.spatial_dims);
  const auto& [nonlin, nonlin_arguments] = nonlin_of(architecture.act);
  Node norm_arguments = Node::make_map();
  norm_arguments.set("eps", Node::make_real(norm.eps));
  norm_arguments.set("affine", Node::make_boolean(norm.affine.value_or(norm.kind == "batch")));
  Node arguments = Node::make_map();
  arguments.set("n_stages", Node::make_integer(std::ssize(architecture.features)));
  arguments.set("features_per_stage", Node::make_list(architecture.features));
  arguments.set("conv_op", text("torch.nn.modules.conv.Conv" + dims));
  arguments.set("kernel_sizes", rows_of(architecture.kernels));
  arguments.set("strides", rows_of(architecture.strides));
  arguments.set(architecture.is_residual ? "n_blocks_per_stage" : "n_conv_per_stage",
                Node::make_list(architecture.blocks));
  arguments.set("n_conv_per_stage_decoder", Node::make_list(architecture.decoder_convs));
  arguments.set("conv_bias", Node::make_boolean(architecture.conv_bias));
  arguments.set("norm_op",
                text(norm.kind == "batch" ? "torch.nn.modules.batchnorm.BatchNorm" + dims
                                          : "torch.nn.modules.instancenorm.InstanceNorm" + dims));
  arguments.set("norm_op_kwargs", norm_arguments);
  Node dropout, dropout_arguments;
  if (architecture.dropout > 0) {
    dropout = text("torch.nn.modules.dropout.Dropout" + dims);
    dropout_arguments = Node::make_map();
    dropout_arguments.set("p", Node::make_real(architecture.dropout));
  }
  arguments.set("dropout_op", dropout);
  arguments.set("dropout_op_kwargs", dropout_arguments);
  arguments.set("nonlin", text(nonlin));
  arguments.set("nonlin_kwargs", nonlin_arguments);

  NnunetNetwork network;
  network.architecture = Node::make_map();
  network.architecture.set(
      "network_class_name",
      text(std::string("dynamic_network_architectures.architectures.unet.") +
           (architecture.is_residual ? "ResidualEncoderUNet" : "PlainConvUNet")));
  network.architecture.set("arch_kwargs", arguments);
  network.architecture.set(
      "_kw_requires_import",
      Node::make_list(std::vector<std::string>{"conv_op", "norm_op", "dropout_op", "nonlin"}));
  add_second_names(weights, architecture.dropout > 0);
  network.weights = std::move(weights);
  return network;
}

}  // namespace cytra::nn
