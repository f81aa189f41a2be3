// Part of inference/openvino/read_model.h: models out of TorchScript.
#include <sstream>

#include <ATen/ATen.h>
#include <openvino/core/preprocess/pre_post_process.hpp>
#include <openvino/frontend/manager.hpp>
#include <openvino/frontend/pytorch/decoder.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/parameter.hpp>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/serialization/import.h>

#include "base/strings.h"
#include "inference/engines/entry.h"
#include "inference/openvino/read_model.h"

namespace cytra::inference {

namespace jit = torch::jit;
namespace type = ov::frontend::type;
namespace {

ov::element::Type element_of(at::ScalarType scalar) {
  switch (scalar) {
    case at::kFloat:
      return ov::element::f32;
    case at::kDouble:
      return ov::element::f64;
    case at::kHalf:
      return ov::element::f16;
    case at::kBFloat16:
      return ov::element::bf16;
    case at::kLong:
      return ov::element::i64;
    case at::kInt:
      return ov::element::i32;
    case at::kShort:
      return ov::element::i16;
    case at::kChar:
      return ov::element::i8;
    case at::kByte:
      return ov::element::u8;
    case at::kBool:
      return ov::element::boolean;
    default:
      return ov::element::dynamic;
  }
}

ov::Any type_of(const c10::TypePtr& given) {
  switch (given->kind()) {
    case c10::TypeKind::IntType:
      return type::PyScalar(ov::element::i64);
    case c10::TypeKind::FloatType:
      return type::PyScalar(ov::element::f32);
    case c10::TypeKind::BoolType:
      return type::PyScalar(ov::element::boolean);
    case c10::TypeKind::TensorType: {
      const auto scalar = given->expectRef<c10::TensorType>().scalarType();
      return type::Tensor(scalar ? element_of(*scalar) : ov::element::dynamic);
    }
    case c10::TypeKind::ListType:
      return type::List(type_of(given->expectRef<c10::ListType>().getElementType()));
    case c10::TypeKind::StringType:
    case c10::TypeKind::DeviceObjType:
      return type::Str();
    case c10::TypeKind::NoneType:
      return type::PyNone();
    default:
      return ov::element::dynamic;
  }
}

ov::OutputVector constant_of(const c10::IValue& value) {
  const auto make = [](ov::element::Type element, const ov::Shape& shape, const auto& values) {
    return ov::op::v0::Constant::create(element, shape, values)->outputs();
  };
  if (value.isTensor() && value.toTensor().defined()) {
    const at::Tensor tensor = value.toTensor().cpu().contiguous();
    const ov::Shape shape(tensor.sizes().begin(), tensor.sizes().end());
    return std::make_shared<ov::op::v0::Constant>(
               element_of(tensor.scalar_type()), shape, tensor.const_data_ptr())
        ->outputs();
  }
  if (value.isInt()) return make(ov::element::i64, {}, std::vector<int64_t>{value.toInt()});
  if (value.isDouble()) return make(ov::element::f32, {}, std::vector<double>{value.toDouble()});
  if (value.isBool()) return make(ov::element::boolean, {}, std::vector<char>{value.toBool()});
  if (value.isIntList()) {
    const std::vector<int64_t> list = value.toIntVector();
    return make(ov::element::i64, {list.size()}, list);
  }
  if (value.isDoubleList()) {
    const std::vector<double> list = value.toDoubleVector();
    return make(ov::element::f32, {list.size()}, list);
  }
  if (value.isBoolList()) {
    std::vector<char> list;
    for (const bool element : value.toBoolList()) list.push_back(static_cast<char>(element));
    return make(ov::element::boolean, {list.size()}, list);
  }
  return {};
}

/// Answers the queries of OpenVINO's front end about a TorchScript graph; there is one for each
/// block and each node. Source: openvino/frontend/pytorch/ts_decoder.py.
class Decoder final : public ov::frontend::pytorch::TorchDecoder {
 public:
  using Values = at::ArrayRef<jit::Value*>;
  Decoder(std::shared_ptr<jit::AliasDb> aliases, Values inputs, Values outputs)
      : aliases_(std::move(aliases)),
        inputs_(inputs.vec()),
        outputs_(outputs.vec()),
        input_ids_(ids_of(inputs_)),
        output_ids_(ids_of(outputs_)) {
    for (const jit::Value* value : inputs_) input_names_.push_back(value->debugName());
    for (const jit::Value* value : outputs_) output_names_.push_back(value->debugName());
  }
  Decoder(jit::Block& block, const std::shared_ptr<jit::AliasDb>& aliases, bool is_whole)
      : Decoder(aliases, block.inputs().slice(is_whole ? 1 : 0), block.outputs()) {
    block_ = &block;
  }
  Decoder(jit::Node& node, const std::shared_ptr<jit::AliasDb>& aliases)
      : Decoder(aliases, node.inputs(), node.outputs()) {
    node_ = &node;
    kind_ = node.kind().toQualString();
    if (node.maybeSchema() != nullptr) schema_ = c10::toString(node.schema());
    if (node.kind() != c10::prim::Constant) return;
    const auto value = jit::toIValue(node.output());
    if (value && value->isString()) text_ = value->toStringRef();
    if (value && value->isDevice()) text_ = c10::DeviceTypeName(value->toDevice().type(), true);
  }

  ov::Any const_input(size_t) const override { return {}; }
  const std::vector<size_t>& inputs() const override { return input_ids_; }
  const std::string& get_input_debug_name(size_t i) const override { return input_names_.at(i); }
  const std::string& get_input_signature_name(size_t i) const override {
    return input_names_.at(i);
  }
  ov::PartialShape get_input_shape(size_t i) const override { return shape_of(*inputs_.at(i)); }
  const std::vector<size_t>& get_input_strides(size_t) const override { return no_strides_; }
  ov::Any get_input_type(size_t i) const override { return type_of(inputs_.at(i)->type()); }
  const std::string& get_output_debug_name(size_t i) const override { return output_names_.at(i); }
  ov::PartialShape get_output_shape(size_t i) const override { return shape_of(*outputs_.at(i)); }
  ov::Any get_output_type(size_t i) const override { return type_of(outputs_.at(i)->type()); }
  bool input_is_none(size_t i) const override {
    return i >= inputs_.size() || inputs_[i]->type()->kind() == c10::TypeKind::NoneType;
  }
  ov::OutputVector try_decode_get_attr() const override { return {}; }
  ov::OutputVector as_constant() const override {
    if (node_ == nullptr || node_->kind() != c10::prim::Constant) return {};
    const auto value = jit::toIValue(node_->output());
    return value ? constant_of(*value) : ov::OutputVector();
  }
  const std::string& as_string() const override { return text_; }
  const std::string& get_op_type() const override { return kind_; }
  const std::string& get_schema() const override { return schema_; }
  size_t num_of_outputs() const override { return outputs_.size(); }
  size_t output_list_size() const override { return 0; }
  const std::vector<size_t>& outputs() const override { return output_ids_; }
  size_t output(size_t i) const override { return output_ids_.at(i); }
  std::shared_ptr<ov::Node> mark_node(std::shared_ptr<ov::Node> node) const override {
    node->set_friendly_name(kind_);
    return node;
  }
  size_t get_subgraph_size() const override {
    return node_ == nullptr ? 1 : node_->blocks().size();
  }
  void visit_subgraph(std::function<void(std::shared_ptr<ov::frontend::pytorch::TorchDecoder>)>
                          visit) const override {
    for (jit::Node* node : block_->nodes()) visit(std::make_shared<Decoder>(*node, aliases_));
  }
  std::shared_ptr<TorchDecoder> get_subgraph_decoder(size_t i) const override {
    return std::make_shared<Decoder>(*node_->blocks().at(i), aliases_, false);
  }
  bool may_produce_alias(size_t in, size_t out) const override {
    // The data base says yes for some of these
    static const std::vector<std::string> kNever = {"aten::conv1d",
                                                    "aten::conv2d",
                                                    "aten::conv3d",
                                                    "aten::_convolution",
                                                    "aten::matmul",
                                                    "aten::clone"};
    if (contains(kNever, kind_)) return false;
    return in < inputs_.size() && out < outputs_.size() &&
           aliases_->mayContainAlias(inputs_[in], outputs_[out]);
  }
  bool is_input_inlined(size_t) const override { return false; }
  std::shared_ptr<TorchDecoder> get_inlined_input_decoder(size_t) const override { return nullptr; }
  ov::Any get_attribute(const std::string&) const override { return {}; }
  size_t get_named_input(const std::string&) const override { return 0; }
  const std::string& decoder_type_name() const override { return kind_of_decoder_; }
  ov::frontend::pytorch::DecoderRTInfo get_rt_info() const override { return {}; }
  bool has_converter() const override { return false; }
  ov::OutputVector convert(const ov::frontend::NodeContext*) const override { return {}; }

 private:
  static std::vector<size_t> ids_of(const std::vector<jit::Value*>& values) {
    return mapped(values, [](const jit::Value* value) { return value->unique(); });
  }
  /// The shape of a value with open sizes: those of the trace would become constants.
  static ov::PartialShape shape_of(const jit::Value& value) {
    const auto tensor = value.type()->cast<c10::TensorType>();
    if (tensor == nullptr || !tensor->sizes().size()) return ov::PartialShape::dynamic();
    return ov::PartialShape(std::vector<ov::Dimension>(*tensor->sizes().size(), -1));
  }

  jit::Block* block_ = nullptr;
  jit::Node* node_ = nullptr;
  std::shared_ptr<jit::AliasDb> aliases_;
  std::vector<jit::Value*> inputs_, outputs_;
  std::vector<size_t> input_ids_, output_ids_, no_strides_;
  std::vector<std::string> input_names_, output_names_;
  std::string kind_ = "prim::Graph", schema_, text_, kind_of_decoder_ = "ts";
};

/// Shortens OpenVINO's message, which has lines with places in its sources, of which the last one
/// gives the cause, to one line of whole words.
std::string last_words(const std::string& what) {
  std::string last;
  for (const std::string& line : split(what, '\n')) {
    const std::string text = trim(line);
    if (!text.empty()) last = text;
  }
  constexpr std::size_t kMost = 200;
  if (last.size() <= kMost) return last;
  return last.substr(0, last.rfind(' ', kMost)) + " ...";
}

/// Throws EngineUnfit with the operations "aten::foo, aten::bar" in the front end's message "No
/// conversion rule found for operations: aten::foo, ..."; else with its first lines.
[[noreturn]] void throw_unfit(const std::string& what) {
  constexpr std::string_view kMissing = "No conversion rule found for operations: ";
  const std::size_t at = what.find(kMissing);
  if (at == std::string::npos)
    throw EngineUnfit("OpenVINO can't convert the model: " + last_words(what), false);
  const std::size_t begin = at + kMissing.size();
  throw EngineUnfit("OpenVINO has no " + what.substr(begin, what.find('\n', begin) - begin), false);
}

}  // namespace

std::shared_ptr<ov::Model> read_torchscript(const std::string& archive,
                                            const std::vector<int64_t>& shape) {
  std::istringstream bytes(archive);
  jit::Module module = jit::load(bytes);
  module.eval();
  module = jit::freeze(module);
  const std::shared_ptr<jit::Graph> graph = module.get_method("forward").graph();
  jit::Inline(*graph);
  const auto aliases = std::make_shared<jit::AliasDb>(graph);
  // load() knows no pointer to a derived type
  const std::shared_ptr<ov::frontend::IDecoder> decoder =
      std::make_shared<Decoder>(*graph->block(), aliases, true);
  std::shared_ptr<ov::Model> model;
  try {
    const auto front_end = ov::frontend::FrontEndManager().load_by_framework("pytorch");
    model = front_end->convert(front_end->load(decoder));
  } catch (const std::exception& error) {
    throw_unfit(error.what());
  }
  if (model->inputs().size() != 1) throw EngineUnfit("the model takes more than one input", false);
  const auto& input = model->get_parameters()[0];
  if (input->get_element_type().is_dynamic()) input->set_element_type(ov::element::f32);
  input->set_partial_shape(std::vector<ov::Dimension>(shape.begin(), shape.end()));
  model->validate_nodes_and_infer_types();
  ov::preprocess::PrePostProcessor ends(model);
  ends.input().tensor().set_element_type(ov::element::f32);
  for (std::size_t i = 0; i < model->outputs().size(); ++i)
    ends.output(i).tensor().set_element_type(ov::element::f32);
  model = ends.build();
  return model;
}

}  // namespace cytra::inference
