#include "io/weights/exported_program.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/strings.h"
#include "io/input_file.h"
#include "io/weights/exported_json.h"
#include "io/weights/stored_tensor.h"
#include "io/weights/torch_file.h"
#include "io/weights/zip_directory.h"

namespace cytra::io {
namespace {

using Json = nlohmann::json;
using Files = std::map<std::string, std::string_view>;

/// The archive's parts, whose names differ by version.
struct ProgramParts {
  std::string graph;
  std::vector<std::string> tables;  // weights_config.json: since torch 2.9
  std::vector<std::string> states;  // of torch.save, before
};

std::optional<ProgramParts> parts_of(const Files& files) {
  ProgramParts parts;
  for (const auto& [name, content] : files) {
    if (name.ends_with("/models/model.json") || name == "serialized_exported_program.json")
      parts.graph = name;
    if (name.ends_with("_weights_config.json") || name.ends_with("_constants_config.json"))
      parts.tables.push_back(name);
    if (name.ends_with("/data/weights/model.pt") || name.ends_with("/data/constants/model.pt") ||
        name == "serialized_state_dict.pt" || name == "serialized_constants.pt")
      parts.states.push_back(name);
  }
  if (parts.graph.empty()) return {};
  return parts;
}

std::string_view content_of(const std::string& path, const Files& files, const std::string& name) {
  const auto found = files.find(name);
  if (found == files.end()) refuse_program(path, "no " + name);
  if (found->second.data() == nullptr) refuse_program(path, name + " is compressed");
  return found->second;
}

}  // namespace

struct ExportedProgram::Impl {
  explicit Impl(const std::string& file_path) : path(file_path), file(file_path) {
    file.map();
    const MappedFile::Reading reading(file.mapped());
    files =
        zip_directory(path, {reinterpret_cast<const char*>(file.mapped().data()), file.bytes()});
    const std::optional<ProgramParts> parts = parts_of(files);
    if (!parts) {
      const bool is_script = std::ranges::any_of(
          files, [](const auto& entry) { return entry.first.ends_with("/constants.pkl"); });
      refuse_program(path,
                     is_script ? "TorchScript, which predict runs and nothing trains"
                               : "an archive without models/model.json");
    }
    Json json = in_part(path, parts->graph, [&] {
      return parse_exported_graph(content_of(path, files, parts->graph));
    });
    graph = in_part(path, parts->graph, [&] { return exported_graph_of(json); });
    StoredTensors stored(4 * file.bytes(),
                         [this](const std::string& name, const std::string& what) {
                           refuse_program(path, fmt::format("'{}' {}", printable(name), what));
                         });
    for (const std::string& table : parts->tables)
      in_part(path, table, [&] { read_table(table, stored); });
    for (const std::string& state : parts->states) {
      nested.push_back(std::make_unique<TorchFile>(path, content_of(path, files, state)));
      for (const auto& [name, view] : nested.back()->tensors()) tensors[name] = view;
    }
    copies = stored.take_copies();
    find_aliases();
    in_part(path, parts->graph, [&] {
      keep_only_named_shapes(json);
      json["aliases"] = graph.aliases;
      text = json.dump();
    });
    reading.check();
  }

  void read_table(const std::string& table, StoredTensors& stored) {
    const Json config = Json::parse(content_of(path, files, table));
    const std::string folder = table.substr(0, table.rfind('/') + 1);
    for (const auto& item : config.at("config").items()) {
      const Json& entry = item.value();
      if (!entry.at("tensor_meta").is_object())
        throw DataError("'{}' is an object of Python", printable(item.key()));
      if (entry.at("use_pickle").get<bool>())
        throw DataError("'{}' is a tensor of a class of its own", printable(item.key()));
      const Json& meta = entry.at("tensor_meta");
      const auto numbers = [&](const char* key) {
        return mapped(meta.at(key),
                      [&](const Json& value) { return exported_whole(value.at("as_int")); });
      };
      const char* const dtype = exported_scalar_type(exported_whole(meta.at("dtype"))).ours;
      if (dtype == nullptr || exported_whole(meta.at("layout")) != 7)
        throw DataError("'{}' is complex or not strided", printable(item.key()));
      const auto storage = entry.at("path_name").get<std::string>();
      if (storage.find('/') != std::string::npos)
        throw DataError("'{}' lies in another folder", printable(item.key()));
      const StoredLayout layout{dtype,
                                numbers("sizes"),
                                numbers("strides"),
                                exported_whole(meta.at("storage_offset").at("as_int"))};
      tensors[item.key()] =
          stored.read(item.key(), layout, content_of(path, files, folder + storage));
    }
  }

  /// Finds the tensors that have several names; the first is that of the first input.
  void find_aliases() {
    std::map<std::pair<const void*, std::vector<int64_t>>, std::string> names;
    for (const ExportedInput& input : graph.inputs) {
      const auto tensor = tensors.find(input.target);
      if (tensor == tensors.end() || tensor->second.bytes == 0) continue;
      const auto first =
          names.emplace(std::pair(tensor->second.data, tensor->second.shape), input.target);
      if (first.first->second != input.target) graph.aliases[input.target] = first.first->second;
    }
  }

  std::string path;
  InputFile file;
  Files files;
  ExportedGraph graph;
  TensorViews tensors;
  std::string text;
  std::list<std::vector<unsigned char>> copies;
  std::vector<std::unique_ptr<TorchFile>> nested;
};

ExportedProgram::ExportedProgram(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
ExportedProgram::~ExportedProgram() = default;
const ExportedGraph& ExportedProgram::graph() const {
  return impl_->graph;
}
const TensorViews& ExportedProgram::tensors() const {
  return impl_->tensors;
}
std::string ExportedProgram::extra(const std::string& name) const {
  const MappedFile::Reading reading(impl_->file.mapped());
  for (const auto& [entry, content] : impl_->files)
    if (entry.ends_with("extra/" + name) || entry == "extra_files/" + name)
      return std::string(content);
  return "";
}
const std::string& ExportedProgram::graph_text() const {
  return impl_->text;
}
MappedFile::Reading ExportedProgram::reading() const {
  return MappedFile::Reading(impl_->file.mapped());
}

ExportedGraph read_exported_graph(const std::string& path, std::string_view text) {
  return in_part(path, "its graph", [&] { return exported_graph_of(parse_exported_graph(text)); });
}

}  // namespace cytra::io
