#include "nn/exported/file.h"

#include <algorithm>

#include "io/input_file.h"
#include "io/weights/torch_file.h"
#include "nn/weights.h"

namespace cytra::nn {
namespace {

[[noreturn]] void refuse_file(const std::string& path) {
  throw DataError(path +
                  ": expected a file of torch.export.save ('net.pt2'), or a checkpoint that "
                  "was trained of one");
}

/// Whether the file begins as safetensors do: the length of a header, and the header.
bool is_safetensors(const std::string& path) {
  char first[9] = {};
  return io::InputFile(path).read_at(0, first, sizeof first) == sizeof first && first[8] == '{';
}

}  // namespace

ExportedFile::ExportedFile(const std::string& path) {
  if (io::is_torch_file(path)) {
    const io::ExportedProgram program(path);
    const auto reading = program.reading();
    graph = program.graph();
    text = program.graph_text();
    reference = program.extra("cytra_reference.json");
    for (const auto& [name, view] : program.tensors()) tensors[name] = tensor_of(view, name);
    reading.check();
    return;
  }
  if (!is_safetensors(path)) refuse_file(path);
  const io::SafetensorsFile file(path);
  const auto reading = file.reading();
  const std::string graph_name = std::string(kGraphModule) + "graph";
  const std::string front = file.tensors().count("model." + graph_name) > 0 ? "model." : "";
  const auto saved = file.tensors().find(front + graph_name);  // without: export_model's
  if (saved == file.tensors().end()) refuse_file(path);
  text.assign(static_cast<const char*>(saved->second.data), saved->second.bytes);
  graph = io::read_exported_graph(path, text);
  for (const auto& [name, view] : file.tensors()) {
    if (name.starts_with(front)) tensors[name.substr(front.size())] = tensor_of(view, name);
  }
  reading.check();
}

at::Tensor ExportedFile::tensor(const std::string& name) const {
  const auto found = tensors.find(name);
  return found == tensors.end() ? at::Tensor() : found->second;
}

std::vector<io::ExportedShape> input_shapes(const io::ExportedGraph& graph) {
  std::vector<io::ExportedShape> shapes;
  for (const io::ExportedInput& input : graph.inputs) {
    if (input.kind != io::ExportedInput::Kind::user) continue;
    const auto shape = graph.shapes.find(input.value);
    if (shape == graph.shapes.end())
      throw DataError("it does not say which shapes the tensors of forward() have");
    shapes.push_back(shape->second);
  }
  return shapes;
}

std::vector<const io::ExportedShape*> result_shapes(const io::ExportedGraph& graph) {
  std::vector<const io::ExportedShape*> shapes;
  for (const io::ExportedOutput& output : graph.outputs) {
    if (!output.buffer.empty() || output.argument.kind == io::ExportedArgument::Kind::none)
      continue;
    const auto shape = graph.shapes.find(output.argument.text);
    shapes.push_back(shape == graph.shapes.end() ? nullptr : &shape->second);
  }
  return shapes;
}

std::vector<std::string> result_names(const io::ExportedGraph& graph, std::size_t count) {
  std::vector<std::string> names;
  const std::size_t begin = graph.output_tree.find("\"context\": \"[");
  const bool is_dict = graph.output_tree.find("builtins.dict") != std::string::npos ||
                       graph.output_tree.find("collections.OrderedDict") != std::string::npos;
  if (is_dict && begin != std::string::npos) {
    const std::size_t end = graph.output_tree.find("]\"", begin);
    std::string keys = graph.output_tree.substr(begin + 13, end - begin - 13);
    std::erase(keys, '\\');
    for (std::size_t at = keys.find('"'); at != std::string::npos; at = keys.find('"', at)) {
      const std::size_t close = keys.find('"', at + 1);
      if (close == std::string::npos) break;
      names.push_back(keys.substr(at + 1, close - at - 1));
      at = close + 1;
    }
  }
  if (names.size() != count) {
    names.clear();
    for (std::size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  }
  return names;
}

}  // namespace cytra::nn
