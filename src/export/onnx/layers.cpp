// Part of export/onnx/graph.h: convolutions, norms, pooling and resizing. Source:
// https://onnx.ai/onnx/operators, version 17 and before; the arguments' places are those of ATen's
// native_functions.yaml, PyTorch 2.11.
#include <ATen/ATen.h>

#include "export/onnx/graph.h"

namespace cytra::exporting::onnx {
namespace {

using Sizes = std::vector<int64_t>;

/// The padding at the begin and the end of each dimension.
Sizes both_ends(const Sizes& padding) {
  Sizes pads = padding;
  pads.insert(pads.end(), padding.begin(), padding.end());
  return pads;
}

Sizes per_dimension(Sizes values, int64_t dims) {
  if (values.size() == 1) values.resize(static_cast<std::size_t>(dims), values[0]);
  return values;
}

struct ConvolutionArguments {
  Sizes stride, padding, dilation, output_padding;
  int64_t groups = 1;
  bool is_transposed = false;
};

std::string add_convolution(Graph& graph, const Node& node, const ConvolutionArguments& given) {
  const std::optional<c10::IValue> known = Graph::constant(node.input(1));
  if (!known || !known->isTensor()) throw Unsupported{"with weights that are computed"};
  const at::Tensor weight = known->toTensor();
  const int64_t dims = weight.dim() - 2;
  std::vector<std::string> inputs{graph.name(node.input(0)), graph.weight(weight)};
  if (!Graph::is_none(node, 2)) inputs.push_back(graph.name(node.input(2)));
  Attributes attributes;
  attributes.add("strides", per_dimension(given.stride, dims))
      .add("pads", both_ends(per_dimension(given.padding, dims)))
      .add("dilations", per_dimension(given.dilation, dims))
      .add("group", given.groups)
      .add("kernel_shape", weight.sizes().slice(2).vec());
  if (given.is_transposed && !given.output_padding.empty())
    attributes.add("output_padding", per_dimension(given.output_padding, dims));
  graph.set_channels(node.output(),
                     given.is_transposed ? weight.size(1) * given.groups : weight.size(0));
  return graph.add(given.is_transposed ? "ConvTranspose" : "Conv", inputs, attributes);
}

Sizes sizes_at(const Node& node, std::size_t input) {
  return Graph::get<Sizes>(node, input);
}

std::string conv(Graph& graph, const Node& node) {
  return add_convolution(
      graph,
      node,
      {sizes_at(node, 3), sizes_at(node, 4), sizes_at(node, 5), {}, Graph::get<int64_t>(node, 6)});
}
std::string conv_transpose(Graph& graph, const Node& node) {
  return add_convolution(graph,
                         node,
                         {sizes_at(node, 3),
                          sizes_at(node, 4),
                          sizes_at(node, 7),
                          sizes_at(node, 5),
                          Graph::get<int64_t>(node, 6),
                          true});
}
std::string convolution(Graph& graph, const Node& node) {
  return add_convolution(graph,
                         node,
                         {sizes_at(node, 3),
                          sizes_at(node, 4),
                          sizes_at(node, 5),
                          sizes_at(node, 7),
                          Graph::get<int64_t>(node, 8),
                          Graph::get<bool>(node, 6)});
}

/// A vector of one number per channel: the argument, or `otherwise` where it is None.
std::string per_channel(Graph& graph, const Node& node, std::size_t input, double otherwise) {
  if (!Graph::is_none(node, input)) return graph.name(node.input(input));
  const int64_t channels = graph.channels(node.input(0));
  if (channels == 0) throw Unsupported{"of an unknown number of channels"};
  return graph.weight(at::full({channels}, otherwise));
}

std::string instance_norm(Graph& graph, const Node& node) {
  if (!Graph::get<bool>(node, 5)) throw Unsupported{"with running statistics"};
  return graph.add(
      "InstanceNormalization",
      {graph.name(node.input(0)), per_channel(graph, node, 1, 1), per_channel(graph, node, 2, 0)},
      Attributes().add("epsilon", Graph::get<double>(node, 7)));
}

std::string batch_norm(Graph& graph, const Node& node) {
  if (Graph::get<bool>(node, 5) || Graph::is_none(node, 3))
    throw Unsupported{"with statistics of the batch"};
  return graph.add("BatchNormalization",
                   {graph.name(node.input(0)),
                    per_channel(graph, node, 1, 1),
                    per_channel(graph, node, 2, 0),
                    graph.name(node.input(3)),
                    graph.name(node.input(4))},
                   Attributes().add("epsilon", Graph::get<double>(node, 7)));
}

/// Converts a group norm, which opset 17 does not have: groups become the channels of an instance
/// norm.
std::string group_norm(Graph& graph, const Node& node) {
  const std::string image = graph.name(node.input(0));
  const auto groups = Graph::get<int64_t>(node, 1);
  std::string result = graph.add("InstanceNormalization",
                                 {graph.add("Reshape", {image, graph.integers({0, groups, -1})}),
                                  graph.weight(at::ones({groups})),
                                  graph.weight(at::zeros({groups}))},
                                 Attributes().add("epsilon", Graph::get<double>(node, 4)));
  result = graph.add("Reshape", {result, graph.add("Shape", {image})});
  Sizes broadcast(static_cast<std::size_t>(graph.spatial_dims) + 1, 1);
  broadcast[0] = -1;
  for (const std::size_t input : {std::size_t{2}, std::size_t{3}}) {
    if (Graph::is_none(node, input)) continue;
    result = graph.add(
        input == 2 ? "Mul" : "Add",
        {result, graph.add("Reshape", {graph.name(node.input(input)), graph.integers(broadcast)})});
  }
  return result;
}

std::string layer_norm(Graph& graph, const Node& node) {
  const Sizes shape = sizes_at(node, 1);
  const std::string scale =
      Graph::is_none(node, 2) ? graph.weight(at::ones(shape)) : graph.name(node.input(2));
  std::vector<std::string> inputs{graph.name(node.input(0)), scale};
  if (!Graph::is_none(node, 3)) inputs.push_back(graph.name(node.input(3)));
  return graph.add(
      "LayerNormalization",
      inputs,
      Attributes().add("axis", -std::ssize(shape)).add("epsilon", Graph::get<double>(node, 4)));
}

/// Converts pooling: (x, kernel, stride, padding, then arguments in which average and maximum
/// differ)
std::string pool(Graph& graph, const Node& node) {
  const bool is_max = node.kind().toUnqualString()[0] == 'm';
  const int64_t dims = graph.spatial_dims;
  const Sizes kernel = per_dimension(sizes_at(node, 1), dims);
  Sizes stride = per_dimension(sizes_at(node, 2), dims);
  if (stride.empty()) stride = kernel;
  Attributes attributes;
  attributes.add("kernel_shape", kernel)
      .add("strides", stride)
      .add("pads", both_ends(per_dimension(sizes_at(node, 3), dims)))
      .add("ceil_mode", int64_t{Graph::get<bool>(node, is_max ? 5 : 4)});
  if (is_max) {
    attributes.add("dilations", per_dimension(sizes_at(node, 4), dims));
  } else {
    if (!Graph::is_none(node, 6)) throw Unsupported{"with divisor_override"};
    attributes.add("count_include_pad", int64_t{Graph::get<bool>(node, 5)});
  }
  return graph.add(is_max ? "MaxPool" : "AveragePool", {graph.name(node.input(0))}, attributes);
}

std::string global_pool(Graph& graph, const Node& node) {
  const Sizes size = sizes_at(node, 1);
  for (const int64_t side : size)
    if (side != 1) throw Unsupported{"to more than one voxel"};
  const bool is_max =
      std::string_view(node.kind().toUnqualString()).find("max") != std::string_view::npos;
  return graph.add(is_max ? "GlobalMaxPool" : "GlobalAveragePool", {graph.name(node.input(0))});
}

/// Converts upsampling: (x, sizes, [align_corners], scales...); the overloads "vec" hold the
/// scales in one list.
std::string upsample(Graph& graph, const Node& node) {
  const bool is_nearest =
      std::string_view(node.kind().toUnqualString()).find("nearest") != std::string_view::npos;
  if (std::string_view(node.kind().toUnqualString()).find("exact") != std::string_view::npos ||
      std::string_view(node.kind().toUnqualString()).find("cubic") != std::string_view::npos)
    throw Unsupported{"of this kind"};
  const std::size_t scales_at = is_nearest ? 2 : 3;
  const bool corners = !is_nearest && Graph::get<bool>(node, 2);
  Attributes attributes;
  attributes.add("mode", is_nearest ? "nearest" : "linear")
      .add("coordinate_transformation_mode",
           is_nearest ? "asymmetric" : (corners ? "align_corners" : "pytorch_half_pixel"));
  if (is_nearest) attributes.add("nearest_mode", "floor");
  std::vector<double> scales;
  const auto known =
      node.inputs().size() > scales_at ? Graph::constant(node.input(scales_at)) : std::nullopt;
  if (known && known->isList()) {
    for (const c10::IValue& scale : known->toListRef()) scales.push_back(scale.toDouble());
  } else if (known && known->isDouble()) {
    for (std::size_t i = scales_at; i < node.inputs().size(); ++i)
      scales.push_back(Graph::get<double>(node, i));
  }
  std::vector<std::string> inputs{graph.name(node.input(0)), ""};
  if (!scales.empty()) {
    scales.insert(scales.begin(), {1, 1});
    inputs.push_back(graph.weight(at::tensor(scales, at::kFloat)));
  } else {
    const std::string front = graph.add(
        "Slice", {graph.add("Shape", {inputs[0]}), graph.integers({0}), graph.integers({2})});
    inputs.push_back("");
    inputs.push_back(graph.add(
        "Concat", {front, graph.shape(node.input(1))}, Attributes().add("axis", int64_t{0})));
  }
  return graph.add("Resize", inputs, attributes);
}

/// Converts padding: (x, pads, mode, value); constant_pad_nd has no mode. ATen's pads begin at the
/// last dimension.
std::string pad(Graph& graph, const Node& node) {
  const bool is_general = node.kind() == c10::aten::pad;
  std::string mode = is_general ? Graph::get<std::string>(node, 2) : "constant";
  if (mode == "replicate") mode = "edge";
  if (mode == "circular") throw Unsupported{"with circular padding"};
  const Sizes given = sizes_at(node, 1);
  const auto rank = graph.has_sizes() ? graph.sizes(node.input(0)).size()
                                      : static_cast<std::size_t>(graph.spatial_dims) + 2;
  Sizes pads(2 * rank, 0);
  for (std::size_t i = 0; i < given.size() / 2; ++i) {
    pads.at(rank - 1 - i) = given[2 * i];
    pads.at(2 * rank - 1 - i) = given[2 * i + 1];
  }
  const std::size_t value_at = is_general ? 3 : 2;
  const double value = Graph::is_none(node, value_at)
                           ? 0
                           : Graph::constant(node.input(value_at)).value().toScalar().toDouble();
  return graph.add("Pad",
                   {graph.name(node.input(0)),
                    graph.integers(pads),
                    graph.weight(at::scalar_tensor(value, at::kFloat))},
                   Attributes().add("mode", mode.c_str()));
}

}  // namespace

const Rules& layer_rules() {
  static const Rules rules = [] {
    Rules all{{"_convolution", convolution},
              {"convolution", convolution},
              {"instance_norm", instance_norm},
              {"batch_norm", batch_norm},
              {"group_norm", group_norm},
              {"layer_norm", layer_norm},
              {"constant_pad_nd", pad},
              {"pad", pad},
              {"conv1d", conv}};
    for (const std::string dims : {"2d", "3d"}) {
      all["conv" + dims] = conv;
      all["conv_transpose" + dims] = conv_transpose;
      for (const char* kind : {"max", "avg"}) {
        all[kind + ("_pool" + dims)] = pool;
        all["adaptive_" + (kind + ("_pool" + dims))] = global_pool;
      }
      all["upsample_nearest" + dims] = upsample;
    }
    for (const char* name : {"upsample_bilinear2d", "upsample_trilinear3d"}) all[name] = upsample;
    return all;
  }();
  return rules;
}

}  // namespace cytra::exporting::onnx
