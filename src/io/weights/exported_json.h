#pragma once
// The JSON of torch.export's archives; for the sources of this folder that read them.
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/weights/exported_program.h"

namespace cytra::io {

/// Throws: DataError that says what is wrong with the file.
[[noreturn]] void refuse_program(const std::string& path, const std::string& what);

/// A type of values: its numbers in torch/_export/serde/schema.py and in c10/core/ScalarType.h, and
/// TensorView's name; null where no tensor of a file may have it.
struct ExportedScalarType {
  int64_t exported, torch;
  const char* ours;
};
/// Throws: DataError for a type that is not known.
const ExportedScalarType& exported_scalar_type(int64_t number);

/// A whole number of 64 bits. Throws: DataError for anything else.
int64_t exported_whole(const nlohmann::json& json);

/// The graph's JSON without what is not used: the lines of Python that each call comes from, and
/// strides. Throws: DataError where it is too large or nested too deep; nlohmann::json::exception.
nlohmann::json parse_exported_graph(std::string_view text);
/// Drops the shapes of all values but inputs and results.
void keep_only_named_shapes(nlohmann::json& graph);
/// These throw DataError, nlohmann::json::exception.
ExportedArgument exported_argument_of(const nlohmann::json& json);
ExportedCall exported_call_of(const nlohmann::json& json);
/// Adds the calls of a graph whose inputs `to` has. Returns the new names of values that the graphs
/// within it give.
std::map<std::string, std::string> add_exported_calls(const nlohmann::json& nodes,
                                                      ExportedGraph& to);
ExportedGraph exported_graph_of(const nlohmann::json& json);

/// Calls `action`, and tells which part of the archive an error is about.
auto in_part(const std::string& path, const std::string& part, const auto& action) {
  try {
    return action();
  } catch (const nlohmann::json::exception& error) {
    refuse_program(path,
                   fmt::format("{} is not as torch.export writes it ({})", part, error.what()));
  } catch (const DataError& error) {
    if (std::string_view(error.what()).starts_with(path)) throw;
    refuse_program(path, fmt::format("{}: {}", part, error.what()));
  }
}

}  // namespace cytra::io
