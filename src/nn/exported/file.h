#pragma once
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/error.h"
#include "device/error.h"
#include "io/weights/exported_program.h"

namespace cytra::nn {

/// The graph and the tensors of a file of torch.export, or of a checkpoint that was trained of one.
struct ExportedFile {
  /// Throws: DataError for another file; as io::ExportedProgram and io::SafetensorsFile.
  explicit ExportedFile(const std::string& path);
  io::ExportedGraph graph;
  std::string text;       // the graph's, for checkpoints
  std::string reference;  // what Python gave for an image: scripts/export_network.py; or empty
  std::map<std::string, at::Tensor> tensors;
  at::Tensor tensor(const std::string& name) const;  // undefined: there is none
};

/// Calls `action`, whose errors about the file then name it; memory that runs out passes on.
template <class Action>
auto naming_file(const std::string& path, const Action& action) -> decltype(action()) {
  try {
    return action();
  } catch (const DataError& error) {
    if (std::string_view(error.what()).starts_with(path)) throw;
    throw DataError(path + ": " + error.what());
  } catch (const c10::Error& error) {
    if (device::is_out_of_memory(error)) throw;
    const std::string text = error.what_without_backtrace();
    throw DataError(path + ": " + text.substr(0, text.find('\n')));
  }
}

/// The shapes of forward()'s tensors. Throws: DataError where one is not given.
std::vector<io::ExportedShape> input_shapes(const io::ExportedGraph& graph);
/// The shapes of forward()'s results, which are the graph's; null: it is not given.
std::vector<const io::ExportedShape*> result_shapes(const io::ExportedGraph& graph);
/// The names of so many results, of torch's description of them: keys of a dict, else numbers.
std::vector<std::string> result_names(const io::ExportedGraph& graph, std::size_t count);

}  // namespace cytra::nn
