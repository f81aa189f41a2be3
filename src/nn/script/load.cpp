#include "nn/script/load.h"

#include <ATen/ATen.h>
#include <caffe2/serialize/file_adapter.h>
#include <fmt/format.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/print_handler.h>
#include <torch/csrc/jit/serialization/import.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/log.h"
#include "base/strings.h"
#include "device/error.h"
#include "io/input_file.h"
#include "nn/exported/message.h"
#include "nn/script/check.h"

namespace cytra::nn {
namespace {

namespace jit = torch::jit;

[[noreturn]] void refuse_torchscript(const std::string& path, const std::string& what) {
  throw DataError("{}: {}", path, what);
}

/// Checks the inputs. Throws: DataError unless a single image suffices.
void expect_one_input(const std::string& path, const c10::FunctionSchema& schema) {
  std::vector<std::string> needed;
  for (std::size_t i = 1; i < schema.arguments().size(); ++i) {  // after `self`
    const c10::Argument& argument = schema.arguments()[i];
    if (!argument.default_value()) needed.push_back(printable(argument.name()));
  }
  if (needed.size() == 1) return;
  refuse_torchscript(path,
                     fmt::format("its forward() takes {} inputs ({}), expected one: the image",
                                 needed.size(),
                                 join(needed, ", ")));
}

void add_results(const std::string& path,
                 const std::string& name,
                 const c10::IValue& value,
                 std::vector<ScriptResult>& all) {
  if (value.isNone()) return;  // a result that training alone has
  if (value.isTensor()) {
    all.push_back({name, value.toTensor()});
  } else if (value.isTuple()) {
    for (const c10::IValue& part : value.toTupleRef().elements())
      add_results(path, std::to_string(all.size()), part, all);
  } else if (value.isList()) {
    for (const c10::IValue& part : value.toListRef())
      add_results(path, std::to_string(all.size()), part, all);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict())
      add_results(path,
                  entry.key().isString() ? entry.key().toStringRef() : std::to_string(all.size()),
                  entry.value(),
                  all);
  } else {
    refuse_torchscript(path,
                       fmt::format("its forward() returns a {}, expected tensors, alone or in "
                                   "tuples, lists and dicts",
                                   value.tagKind()));
  }
}

}  // namespace

ScriptCall::ScriptCall() : guard_(&logged_) {
  jit::setPrintHandler([](const std::string& text) { log::debug("model: {}", escaped(text)); });
}

void ScriptCall::Logged::process(const c10::Warning& warning) {
  log::debug("model: {}", escaped(warning.msg()));
}

jit::Module load_any_torchscript(const std::string& path, ExtraFiles& files, c10::Device device) {
  const ScriptCall call;
  jit::Module module;
  try {
    const io::InputFile regular(path);  // no pipe, which would wait forever
    const auto file = std::make_shared<caffe2::serialize::FileAdapter>(path);
    caffe2::serialize::PyTorchStreamReader archive(file);
    expect_harmless_archive(path, archive);
    module = jit::load(file, device, files, /*load_debug_files=*/false);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    if (device::is_out_of_memory(error)) throw;
    refuse_torchscript(path, "TorchScript that can't be loaded: " + brief(error));
  }
  expect_harmless_graphs(path, module);
  module.eval();
  for (at::Tensor parameter : module.parameters()) parameter.requires_grad_(false);
  return module;
}

jit::Module load_torchscript(const std::string& path, ExtraFiles& files, c10::Device device) {
  jit::Module module = load_any_torchscript(path, files, device);
  const auto method = module.find_method("forward");
  if (!method) refuse_torchscript(path, "TorchScript without forward()");
  expect_one_input(path, method->function().getSchema());
  return module;
}

std::vector<ScriptResult> script_results(const std::string& path, const c10::IValue& value) {
  std::vector<ScriptResult> all;
  add_results(path, "0", value, all);
  return all;
}

at::Tensor first_kernel(const jit::Module& module) {
  const auto is_kernel = [](const at::Tensor& tensor) {
    return tensor.dim() >= 3 && tensor.dim() <= 5 && tensor.is_floating_point();
  };
  for (const at::Tensor& parameter : module.parameters()) {
    if (is_kernel(parameter)) return parameter;
  }
  at::Tensor found;
  for_each_node(module.get_method("forward").graph()->block(), [&](const jit::Node& node) {
    if (found.defined() || !std::string_view(node.kind().toQualString()).starts_with("aten::") ||
        std::string_view(node.kind().toUnqualString()).find("conv") == std::string_view::npos)
      return;
    const auto value = jit::toIValue(node.input(1));
    if (value && value->isTensor() && is_kernel(value->toTensor())) found = value->toTensor();
  });
  return found;
}

}  // namespace cytra::nn
