#pragma once
// Converts a TorchScript graph to ONNX nodes, by the names of ATen's operators.
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/ir/ir.h>

#include "export/onnx/proto.h"

namespace cytra::exporting::onnx {

using torch::jit::Node;
using torch::jit::Value;

/// Thrown for what has no ONNX form here; to_onnx() collects the names.
struct Unsupported {
  std::string what;
};

/// An ONNX graph that is being made.
class Graph {
 public:
  explicit Graph(int64_t spatial_dims) : spatial_dims(spatial_dims) {}

  /// Adds a node; returns the name of its output.
  std::string add(const std::string& type,
                  const std::vector<std::string>& inputs,
                  const Attributes& attributes = {});
  /// Adds a weight or constant; returns its name.
  std::string weight(const at::Tensor& tensor);
  std::string integers(const std::vector<int64_t>& values);

  /// The ONNX name of a tensor, or of a number as a tensor.
  std::string name(const Value* value);
  void set(const Value* value, std::string name) { names_[value] = std::move(name); }
  /// The value, where it is known without an image; nullopt where it depends on the image.
  static std::optional<c10::IValue> constant(const Value* value);
  template <class T>
  static T get(const Node& node, std::size_t input) {
    const std::optional<c10::IValue> value = constant(node.input(input));
    if (!value) throw Unsupported{"with an argument that depends on the image"};
    return value->to<T>();
  }
  static bool is_none(const Node& node, std::size_t input) {
    const std::optional<c10::IValue> value = constant(node.input(input));
    return value && value->isNone();
  }
  /// A list of whole numbers as a tensor of one dimension, known or not.
  std::string shape(const Value* list);
  /// The channels of a tensor; 0: unknown.
  int64_t channels(const Value* value) const;
  void set_channels(const Value* value, int64_t count) { channels_[value] = count; }
  /// Runs the source on an image of the only size that the network takes, for sizes().
  void run(const torch::jit::Graph& source, const at::Tensor& image);
  bool has_sizes() const { return !sizes_.empty(); }
  /// Throws: Unsupported for what run() has not seen.
  const std::vector<int64_t>& sizes(const Value* value) const {
    const auto found = sizes_.find(value);
    if (found == sizes_.end()) throw Unsupported{"of an unknown size"};
    return found->second;
  }

  const int64_t spatial_dims;
  std::vector<Message> nodes, initializers;

 private:
  std::unordered_map<const Value*, std::string> names_;
  std::unordered_map<const Value*, int64_t> channels_;
  std::unordered_map<const Value*, std::vector<int64_t>> sizes_;
  int64_t count_ = 0;
};

/// Adds nodes for an operator; returns the name of its result.
using Rule = std::string (*)(Graph& graph, const Node& node);
using Rules = std::unordered_map<std::string, Rule>;

const Rules& layer_rules();
const Rules& value_rules();
const Rules& token_rules();  // for known sizes
/// Names the outputs of prim::ListUnpack, the parts of a tensor that chunk and split make.
void unpack(Graph& graph, const Node& node);

/// Adds nodes for an operator of ATen; returns false when there is no rule for it. Throws:
/// Unsupported.
bool translate(Graph& graph, const Node& node);

/// The operator's name: "relu" of aten::relu, and of aten::relu_, which works in place.
std::string own_name_of(const Node& node);

}  // namespace cytra::exporting::onnx
