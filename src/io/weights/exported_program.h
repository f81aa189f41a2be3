#pragma once
// Reads what torch.export.save writes: a network as a graph of calls, without Python, torch or
// running anything. Source: torch/_export/serde/schema.py (major version 8) and
// torch/export/pt2_archive of PyTorch 2.7 to 2.15.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"

namespace cytra::io {

/// An argument or a result of a call.
struct ExportedArgument {
  enum class Kind : uint8_t {
    none,
    value,  // of a name: a tensor, or a number that is computed in the graph
    integer,
    real,
    boolean,
    text,
    scalar_type,    // its number in torch's c10::ScalarType
    memory_format,  // its number in torch's c10::MemoryFormat
    layout,         // its number in torch's c10::Layout
    device,
    list,
    other  // which no network of images needs: a graph, an object, an operator, a complex number
  };
  Kind kind = Kind::none;
  std::string parameter;  // the name of the operator's parameter
  std::string text;       // of a value: its name; of a text; of another: its kind
  int64_t integer = 0;
  double real = 0;
  std::vector<ExportedArgument> items;
};

/// A call of an operator.
struct ExportedCall {
  std::string target;  // "torch.ops.aten.conv2d.default", "_operator.add"
  std::string place;   // the module that makes it, as Python names it: "encoder.0"; may be empty
  std::vector<ExportedArgument> inputs, outputs;
  bool is_outside_autocast = false;  // within `with torch.autocast(..., enabled=False)`
};

/// A side of an image: a number, or a symbol with its range.
struct ExportedSide {
  std::optional<int64_t> fixed;
  std::string expression;  // as torch prints it: "Symbol('s77', ...)"
};
struct ExportedShape {
  std::string dtype;  // as TensorView's
  std::vector<ExportedSide> sides;
};

/// What the graph's input `value` stands for.
struct ExportedInput {
  enum class Kind : uint8_t { parameter, buffer, constant, user } kind = Kind::user;
  std::string value;
  std::string target;  // of all but `user`: the name of the tensor
  bool is_persistent = true;
};
/// What the graph's output stands for: a result, or the new content of a buffer.
struct ExportedOutput {
  ExportedArgument argument;
  std::string buffer;  // empty: a result
};

struct ExportedRange {
  std::optional<int64_t> least, most;
};

struct ExportedGraph {
  std::vector<ExportedInput> inputs;
  std::vector<ExportedOutput> outputs;
  std::vector<ExportedCall> calls;
  std::map<std::string, ExportedShape> shapes;  // of the user's inputs and of the results
  std::map<std::string, ExportedRange> ranges;  // of symbols
  std::vector<std::string> guards;              // conditions on the inputs, as Python writes them
  std::string output_tree;                      // torch's description of the results, as JSON
  std::map<std::string, std::string> aliases;   // other names of a tensor, with its first name
};

/// A file of torch.export.save, mapped into memory; views stay valid as long as this lives.
class ExportedProgram {
 public:
  /// Throws: DataError for anything else: other versions, compressed or pickled parts, tensors
  /// outside of their storages, more than 128 MB of graph or 200,000 calls; as InputFile when it
  /// can't be opened.
  explicit ExportedProgram(const std::string& path);
  ~ExportedProgram();
  ExportedProgram& operator=(ExportedProgram&&) = delete;
  const ExportedGraph& graph() const;
  /// Parameters, buffers and constants by their names, row-major.
  const TensorViews& tensors() const;
  /// The graph as a text that read_exported_graph() reads again, for checkpoints.
  const std::string& graph_text() const;
  /// The content of an extra file; empty: there is none.
  std::string extra(const std::string& name) const;
  /// Must live while the tensors are read, and be checked after that.
  MappedFile::Reading reading() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Throws: DataError, as ExportedProgram.
ExportedGraph read_exported_graph(const std::string& path, std::string_view text);

}  // namespace cytra::io
