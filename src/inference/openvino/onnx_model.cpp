// Part of inference/openvino/read_model.h: ONNX files and OpenVINO's own, which OpenVINO reads
// itself.
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <openvino/core/preprocess/pre_post_process.hpp>
#include <openvino/pass/serialize.hpp>

#include "base/files.h"
#include "base/strings.h"
#include "inference/engines/entry.h"
#include "inference/openvino/read_model.h"

namespace cytra::inference {
namespace {

/// The files in which tensors' values lie: TensorProto.external_data (field 13) has an entry of the
/// key `location`.
std::vector<std::string> external_files(std::string_view onnx) {
  constexpr std::string_view kEntry = "\x0A\x08location\x12";
  constexpr char kField = 13 << 3 | 2;  // then the entry's length, in one byte or two
  std::vector<std::string> files;
  for (std::size_t at = onnx.find(kEntry); at != std::string_view::npos;
       at = onnx.find(kEntry, at + 1)) {
    if (at < 3 || (onnx[at - 2] != kField && onnx[at - 3] != kField)) continue;
    const std::string_view value = onnx.substr(at + kEntry.size());
    if (value.empty()) continue;
    const auto first = static_cast<unsigned char>(value[0]);
    files.emplace_back(value.substr(1, first));
    if (first > 127)  // a length of more bytes, of a name that is longer than any of a file here
      throw EngineUnfit("the name of a file with its weights is too long", false);
  }
  return files;
}

/// Reads a network with weights in other files, which must lie beside it: OpenVINO by itself would
/// look in other folders, too.
std::shared_ptr<ov::Model> read_with_files(ov::Core& core,
                                           const std::string& path,
                                           const std::vector<std::string>& files) {
  namespace fs = std::filesystem;
  for (const std::string& name : files) {
    const fs::path file(name);
    const bool leads_out = file.is_absolute() || contains(file, "..");
    if (!leads_out && file_exists(fs::path(path).parent_path() / file)) continue;
    throw EngineUnfit(
        fmt::format("it has weights in another file, {}, expected it {}; "
                    "onnx.save(onnx.load(\"model.onnx\"), \"whole.onnx\") puts all into one",
                    printable(name),
                    leads_out ? "in the network's folder" : "beside the network"),
        false);
  }
  return core.read_model(path);
}

/// Reads ONNX, or OpenVINO's own form: the graph's text, a zero byte, the weights.
std::shared_ptr<ov::Model> read_whole(ov::Core& core, const std::string& bytes) {
  const std::size_t end = bytes.find('\0');
  if (bytes[0] != '<' || end == std::string::npos) return core.read_model(bytes, ov::Tensor());
  ov::Tensor weights(ov::element::u8, {bytes.size() - end - 1});
  std::memcpy(weights.data(), bytes.data() + end + 1, weights.get_byte_size());
  return core.read_model(bytes.substr(0, end), weights);
}

std::shared_ptr<ov::Model> read_any(ov::Core& core,
                                    const std::string& bytes,
                                    const std::string& path = "") {
  std::shared_ptr<ov::Model> model;
  try {
    const std::vector<std::string> files =
        path.empty() ? std::vector<std::string>() : external_files(bytes);
    model = files.empty() ? read_whole(core, bytes) : read_with_files(core, path, files);
  } catch (const EngineUnfit&) {
    throw;
  } catch (const std::exception& error) {
    throw EngineUnfit("it can't be read: " + brief_openvino(error.what()), false);
  }
  if (model->inputs().size() == 1) return model;
  std::vector<std::string> names;
  for (const auto& input : model->inputs()) names.push_back(printable(input.get_any_name()));
  throw EngineUnfit(
      fmt::format(
          "it takes {} inputs ({}), expected one: the image", names.size(), join(names, ", ")),
      false);
}

}  // namespace

std::shared_ptr<ov::Model> read_onnx(ov::Core& core,
                                     const std::string& onnx,
                                     const std::vector<int64_t>& shape) {
  std::shared_ptr<ov::Model> model = read_any(core, onnx);
  ov::PartialShape own = model->input().get_partial_shape();
  if (own.rank().is_dynamic()) own = ov::PartialShape::dynamic(std::ssize(shape));
  if (own.size() != shape.size()) {
    throw EngineUnfit(fmt::format("it takes {} axes, not {}", own.size(), shape.size()), false);
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (own[d].is_static() && (d == 0 || own[d].get_length() == shape[d])) continue;
    if (own[d].is_static())
      throw EngineUnfit(
          fmt::format("it takes {} along axis {}, not {}", own[d].get_length(), d, shape[d]),
          false);
    own[d] = shape[d];
  }
  try {
    model->reshape(own);
    model->input().add_names({kInputType + model->input().get_element_type().get_type_name()});
    ov::preprocess::PrePostProcessor ends(model);
    ends.input().tensor().set_element_type(ov::element::f32);
    for (std::size_t i = 0; i < model->outputs().size(); ++i)
      ends.output(i).tensor().set_element_type(ov::element::f32);
    return ends.build();
  } catch (const std::exception& error) {
    throw EngineUnfit("OpenVINO: " + brief_openvino(error.what()), false);
  }
}

OnnxFacts describe_onnx(ov::Core& core,
                        const std::string& onnx,
                        const std::string& path,
                        const std::optional<OnnxEnds>& ends) {
  const std::shared_ptr<ov::Model> read = read_any(core, onnx, path);
  OnnxFacts facts;
  if (read->has_rt_info("framework", "config"))
    facts.config = read->get_rt_info<std::string>("framework", "config");
  const std::shared_ptr<ov::Model> model = ends ? with_usual_ends(read, path, *ends, facts) : read;
  if (model != read || (onnx[0] != '<' && !external_files(onnx).empty())) {
    std::ostringstream xml, bin;
    ov::pass::Serialize(xml, bin).run_on_model(model);
    facts.whole = xml.str() + '\0' + bin.str();
  }
  const ov::PartialShape shape = model->input().get_partial_shape();
  if (shape.rank().is_static()) {
    for (const ov::Dimension& side : shape)
      facts.shape.push_back(side.is_static() ? side.get_length() : -1);
  }
  return facts;
}

std::string brief_openvino(const std::string& what) {
  std::istringstream lines(what);
  std::string brief;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with("Exception from ")) continue;
    brief += (brief.empty() ? "" : " ") + line;
  }
  return brief.substr(0, 300);
}

}  // namespace cytra::inference
