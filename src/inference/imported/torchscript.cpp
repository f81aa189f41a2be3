// TorchScript: what torch.jit.save wrote, and `export_model format=torchscript`.
#include "inference/imported/torchscript.h"

#include <sstream>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <caffe2/serialize/file_adapter.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/print_handler.h>
#include <torch/csrc/jit/serialization/import.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/foreign_call.h"
#include "base/log.h"
#include "base/strings.h"
#include "device/error.h"
#include "inference/imported/archive.h"
#include "inference/imported/complete.h"
#include "inference/imported/script_check.h"
#include "io/fingerprint.h"
#include "io/input_file.h"

namespace cytra::inference {
namespace {

namespace jit = torch::jit;

[[noreturn]] void refuse_torchscript(const std::string& path, const std::string& what) {
  throw DataError(fmt::format("{}: {}", path, what));
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

/// Calls `action` with every node of a graph and the blocks in it.
template <class Action>
void for_each_node(const jit::Block* block, const Action& action) {
  for (const jit::Node* node : block->nodes()) {
    action(*node);
    for (const jit::Block* inner : node->blocks()) for_each_node(inner, action);
  }
}

/// The weight of the first convolution, of a module or of a frozen one, whose weights are
/// constants.
at::Tensor first_kernel(const jit::Module& module, const jit::Graph& graph) {
  const auto is_kernel = [](const at::Tensor& tensor) {
    return tensor.dim() >= 3 && tensor.dim() <= 5 && tensor.is_floating_point();
  };
  for (const at::Tensor& parameter : module.parameters()) {
    if (is_kernel(parameter)) return parameter;
  }
  at::Tensor found;
  for_each_node(graph.block(), [&](const jit::Node& node) {
    if (found.defined() || !starts_with(node.kind().toQualString(), "aten::") ||
        std::string_view(node.kind().toUnqualString()).find("conv") == std::string_view::npos)
      return;
    const auto value = jit::toIValue(node.input(1));
    if (value && value->isTensor() && is_kernel(value->toTensor())) found = value->toTensor();
  });
  return found;
}

void add_outputs(const std::string& path, const c10::IValue& value, std::vector<at::Tensor>& all) {
  if (value.isTensor()) {
    all.push_back(value.toTensor());
  } else if (value.isTuple()) {
    for (const c10::IValue& part : value.toTupleRef().elements()) add_outputs(path, part, all);
  } else if (value.isList()) {
    for (const c10::IValue& part : value.toListRef()) add_outputs(path, part, all);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) add_outputs(path, entry.value(), all);
  } else {
    refuse_torchscript(path,
                       fmt::format("its forward() returns a {}, expected tensors, alone or in "
                                   "tuples, lists and dicts",
                                   value.tagKind()));
  }
}

/// Sends warnings of a script (torch.warn()) and of PyTorch to the log, without control
/// characters.
struct LoggedWarnings final : c10::WarningHandler {
  void process(const c10::Warning& warning) override {
    log::debug("model: {}", escaped(warning.msg()));
  }
};

}  // namespace

bool is_torchscript(const std::string& path) {
  return kind_of(path) == ModelKind::torchscript;
}

jit::Module load_any_torchscript(const std::string& path,
                                 std::unordered_map<std::string, std::string>& files,
                                 c10::Device device) {
  const ForeignCall call;
  LoggedWarnings logged;
  const c10::WarningUtils::WarningHandlerGuard guard(&logged);
  jit::setPrintHandler([](const std::string& text) { log::debug("model: {}", escaped(text)); });
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

jit::Module load_torchscript(const std::string& path,
                             std::unordered_map<std::string, std::string>& files,
                             c10::Device device) {
  jit::Module module = load_any_torchscript(path, files, device);
  const auto method = module.find_method("forward");
  if (!method) refuse_torchscript(path, "TorchScript without forward()");
  expect_one_input(path, method->function().getSchema());
  return module;
}

std::string fingerprint_of_file(const std::string& path) {
  io::InputFile file(path);
  file.map();
  return file.read_mapped([&](const unsigned char* first) {
    return io::fingerprint(first, static_cast<std::size_t>(file.bytes()));
  });
}

ImportedModel open_torchscript(const std::string& path) {
  std::unordered_map<std::string, std::string> files{{"config", ""}};
  jit::Module module = load_torchscript(path, files);
  const std::shared_ptr<jit::Graph> graph = module.get_method("forward").graph();

  ImportedModel imported;
  if (const at::Tensor kernel = first_kernel(module, *graph); kernel.defined()) {
    imported.in_channels = kernel.size(1);
    imported.spatial_dims = kernel.dim() - 2;
  }
  if (!files.at("config").empty())  // export_model's
    imported.config = config::parse_yaml(files.at("config"), path + " (config)");
  imported.fingerprint = fingerprint_of_file(path);
  struct Placed {
    jit::Module module;
    c10::Device device;
  };
  const auto placed = std::make_shared<Placed>(Placed{module, c10::kCPU});
  imported.forward = [path, placed](const at::Tensor& windows) {
    const ForeignCall call;
    LoggedWarnings logged;
    const c10::WarningUtils::WarningHandlerGuard guard(&logged);
    std::vector<at::Tensor> outputs;
    add_outputs(path, placed->module.forward({windows}), outputs);
    return outputs;
  };
  imported.torchscript = [placed] {
    std::ostringstream bytes;
    placed->module.save(bytes);
    return bytes.str();
  };
  imported.place = [path, placed](c10::Device device, bool /*on_tensor_cores*/) {
    if (device == placed->device) return;
    std::unordered_map<std::string, std::string> none;
    *placed = {load_torchscript(path, none, device), device};
  };
  return imported;
}

}  // namespace cytra::inference
