// ONNX files, which OpenVINO reads itself.
#include "inference/openvino/onnx_model.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <openvino/core/preprocess/pre_post_process.hpp>

#include "base/strings.h"
#include "inference/engines/entry.h"
#include "inference/openvino/brief.h"

namespace cytra::inference {
namespace {

/// Whether a tensor's values lie in another file, which OpenVINO would look for in the working
/// folder: TensorProto.external_data (field 13) has an entry of the key `location`.
bool has_external_data(std::string_view onnx) {
  constexpr std::string_view kEntry = "\x0A\x08location\x12";
  constexpr char kField = 13 << 3 | 2;  // then the entry's length, in one byte or two
  for (std::size_t at = onnx.find(kEntry); at != std::string_view::npos;
       at = onnx.find(kEntry, at + 1))
    if (at > 2 && (onnx[at - 2] == kField || onnx[at - 3] == kField)) return true;
  return false;
}

std::shared_ptr<ov::Model> read_any_onnx(ov::Core& core, const std::string& onnx) {
  if (has_external_data(onnx)) {
    throw EngineUnfit(
        "it has weights in other files (external data), expected all in one: "
        "onnx.save(onnx.load(\"model.onnx\"), \"whole.onnx\")",
        false);
  }
  std::shared_ptr<ov::Model> model;
  try {
    model = core.read_model(onnx, ov::Tensor());
  } catch (const std::exception& error) {
    throw EngineUnfit("OpenVINO can't read it: " + brief_openvino(error.what()), false);
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
  std::shared_ptr<ov::Model> model = read_any_onnx(core, onnx);
  ov::PartialShape own = model->input().get_partial_shape();
  if (own.rank().is_dynamic()) own = ov::PartialShape::dynamic(static_cast<int64_t>(shape.size()));
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

OnnxFacts describe_onnx(ov::Core& core, const std::string& onnx) {
  const std::shared_ptr<ov::Model> model = read_any_onnx(core, onnx);
  OnnxFacts facts;
  const ov::PartialShape shape = model->input().get_partial_shape();
  if (shape.rank().is_static()) {
    for (const ov::Dimension& side : shape)
      facts.shape.push_back(side.is_static() ? side.get_length() : -1);
  }
  if (model->has_rt_info("framework", "config"))
    facts.config = model->get_rt_info<std::string>("framework", "config");
  return facts;
}

}  // namespace cytra::inference
