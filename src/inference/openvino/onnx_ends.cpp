// Part of inference/openvino/read_model.h: brings a network's input and output to (N,C,[D,]H,W).
#include <algorithm>

#include <fmt/format.h>
#include <openvino/op/constant.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/parameter.hpp>
#include <openvino/op/reshape.hpp>
#include <openvino/op/result.hpp>
#include <openvino/op/sigmoid.hpp>
#include <openvino/op/transpose.hpp>

#include "base/error.h"
#include "base/strings.h"
#include "inference/openvino/read_model.h"

namespace cytra::inference {
namespace {

using Source = ov::Output<ov::Node>;
using Texts = std::vector<std::string>;

/// Channels first, which is ours, and channels last; nothing for what is no batch of images.
Texts layouts_of(const ov::PartialShape& shape) {
  if (shape.rank().is_dynamic() || shape.size() < 4 || shape.size() > 5) return {};
  return shape.size() == 4 ? Texts{"NCHW", "NHWC"} : Texts{"NCDHW", "NDHWC"};
}

const ov::Dimension& side_of(const ov::PartialShape& shape, const std::string& layout, char axis) {
  return shape[static_cast<std::ptrdiff_t>(layout.find(axis))];
}

/// Whether an input may be an image of this layout: its channels are known, and each side has more
/// voxels than it has channels.
bool may_be_image(const ov::PartialShape& shape, const std::string& layout) {
  const ov::Dimension& channels = side_of(shape, layout, 'C');
  constexpr int64_t kLeast = 3;
  return channels.is_static() && std::ranges::all_of(layout.substr(1), [&](char axis) {
           const ov::Dimension& side = side_of(shape, layout, axis);
           return axis == 'C' || side.is_dynamic() ||
                  side.get_length() > std::max(kLeast, channels.get_length());
         });
}

/// The layout of the input. Throws: ConfigError where nothing tells it.
std::string input_layout(const ov::PartialShape& shape,
                         const std::string& path,
                         const std::string& asked,
                         bool is_ours) {
  const Texts all = layouts_of(shape);
  Texts found;
  for (const std::string& layout : all)
    if (asked.empty() ? may_be_image(shape, layout) : layout == asked) found.push_back(layout);
  if (is_ours && asked.empty() && !all.empty()) return all[0];
  if (found.size() == 1) return found[0];
  if (shape.rank().is_dynamic() && !asked.empty()) return asked;
  throw ConfigError("{}: its input is {}, {}",
                    path,
                    shape.to_string(),
                    !asked.empty() ? "which model.layout=" + asked + " does not fit"
                    : all.empty() ? "expected a batch of images, of 4 or 5 axes; model.layout=NHWC "
                                    "tells what they are"
                                  : "which does not tell what its axes are: set model.layout=" +
                                        join(all, " or model.layout="));
}

/// The layout in which an output has the image's sides; `of`: the image's, which it has where
/// several do; "": none.
std::string output_layout(const ov::PartialShape& shape,
                          const ov::PartialShape& image,
                          const std::string& of) {
  if (image.rank().is_dynamic()) return "";
  Texts layouts = layouts_of(shape);
  std::ranges::stable_partition(layouts, [&](const auto& layout) { return layout == of; });
  for (const std::string& layout : layouts) {
    const bool fits =
        layout.size() == of.size() && std::ranges::all_of(layout, [&](char axis) {
          const ov::Dimension& own = side_of(shape, layout, axis);
          return axis == 'N' || axis == 'C' || own.is_dynamic() || own == side_of(image, of, axis);
        });
    if (fits) return layout;
  }
  return "";
}

Source turned(const Source& value, const std::string& from, const std::string& to) {
  if (from == to) return value;
  std::vector<int64_t> order;
  for (const char axis : to) order.push_back(static_cast<int64_t>(from.find(axis)));
  return std::make_shared<ov::op::v1::Transpose>(
      value, ov::op::v0::Constant::create(ov::element::i64, {order.size()}, order));
}

bool ends_with_sigmoid(const Source& value) {
  const ov::Node* node = value.get_node();
  while (ov::is_type<ov::op::v1::Transpose>(node) || ov::is_type<ov::op::v1::Reshape>(node) ||
         ov::is_type<ov::op::v0::Convert>(node))
    node = node->get_input_node_ptr(0);
  return ov::is_type<ov::op::v0::Sigmoid>(node);
}

/// The numbers of the outputs that are wanted. Throws: ConfigError where nothing tells them.
std::vector<std::size_t> wanted_outputs(const std::vector<Source>& outputs,
                                        const Texts& layouts,
                                        const std::string& path,
                                        const std::string& asked,
                                        OnnxFacts& facts) {
  Texts names, texts;
  std::vector<std::size_t> all, images;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto own = outputs[i].get_names();
    names.push_back(own.empty() ? fmt::to_string(i) : printable(*std::ranges::min_element(own)));
    texts.push_back(names[i] + " " + outputs[i].get_partial_shape().to_string());
    if (asked == fmt::to_string(i) || own.count(asked) > 0) return {i};
    all.push_back(i);
    if (!layouts[i].empty()) images.push_back(i);
  }
  if (asked == OnnxEnds::kAll || (asked.empty() && all.size() == 1)) return all;
  if (!asked.empty() || images.size() != 1) {
    throw ConfigError("{}: its outputs are {}; expected one of them as model.output={}{}",
                      path,
                      join(texts, ", "),
                      names[images.empty() ? 0 : images[0]],
                      asked.empty() ? "" : ", not " + printable(asked));
  }
  facts.remarks.push_back(
      fmt::format("of its outputs {}, {} is predicted", join(texts, ", "), names[images[0]]));
  return images;
}

}  // namespace

std::shared_ptr<ov::Model> with_usual_ends(const std::shared_ptr<ov::Model>& model,
                                           const std::string& path,
                                           const OnnxEnds& ends,
                                           OnnxFacts& facts) {
  const bool is_ours = !facts.config.empty();
  const auto image = model->get_parameters().at(0);
  const ov::PartialShape shape = image->get_partial_shape();
  const std::string layout = input_layout(shape, path, ends.layout, is_ours),
                    own = layout.size() == 4 ? "NCHW" : "NCDHW";
  const std::vector<Source> outputs = model->outputs();
  Texts layouts;
  for (const Source& output : outputs)
    layouts.push_back(output_layout(output.get_partial_shape(), shape, layout));
  const std::vector<std::size_t> wanted = wanted_outputs(
      outputs, layouts, path, is_ours && ends.output.empty() ? "0" : ends.output, facts);
  if (layout != own && ends.layout.empty())
    facts.remarks.push_back(fmt::format("its input {} is {}; where that is wrong: model.layout={}",
                                        shape.to_string(),
                                        layout,
                                        own));
  bool is_changed = layout != own || wanted.size() < outputs.size();
  ov::ResultVector results;
  for (const std::size_t i : wanted) {
    const Source value = model->get_results()[i]->input_value(0);
    const ov::PartialShape& its = value.get_partial_shape();
    const bool is_image = its.rank().is_dynamic() || its.size() == own.size();
    const std::string from = !is_image ? own : layouts[i].empty() ? layout : layouts[i];
    if (from != layout && is_image)
      facts.remarks.push_back(fmt::format("its output {} is {}", its.to_string(), from));
    facts.ends_with_sigmoid = ends_with_sigmoid(value);
    is_changed = is_changed || from != own;
    results.push_back(std::make_shared<ov::op::v0::Result>(turned(value, from, own)));
  }
  if (!is_changed) return model;
  ov::PartialShape usual = ov::PartialShape::dynamic(std::ssize(own));
  for (std::size_t d = 0; shape.rank().is_static() && d < own.size(); ++d)
    usual[static_cast<std::ptrdiff_t>(d)] = side_of(shape, layout, own[d]);
  const auto turned_image =
      std::make_shared<ov::op::v0::Parameter>(image->get_element_type(), usual);
  turned_image->output(0).set_names({"image"});
  image->output(0).replace(turned(turned_image, own, layout));
  return std::make_shared<ov::Model>(results, ov::ParameterVector{turned_image});
}

}  // namespace cytra::inference
