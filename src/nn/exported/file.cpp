#include "nn/exported/file.h"

#include "base/error.h"
#include "base/strings.h"
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
    if (starts_with(name, front)) tensors[name.substr(front.size())] = tensor_of(view, name);
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

}  // namespace cytra::nn
