#include "nn/script/file.h"

#include <sstream>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/ir.h>

#include "base/error.h"
#include "base/strings.h"
#include "io/weights/archive.h"
#include "io/weights/torch_file.h"
#include "nn/script/load.h"
#include "nn/script/modes.h"
#include "nn/weights.h"

namespace cytra::nn {
namespace {

namespace jit = torch::jit;

[[noreturn]] void refuse_network(const std::string& path, const std::string& what) {
  throw DataError(path + ": " + what);
}

/// Calls `action` with each node of the methods of each class.
template <class Action>
void for_each_call(const jit::Module& module, const Action& action) {
  for (jit::Function* function : module._ivalue()->compilation_unit()->get_functions()) {
    if (jit::GraphFunction* code = jit::tryToGraphFunction(*function))
      for_each_node(code->graph()->block(), action);
  }
}

void expect_trainable(const std::string& path, const jit::Module& module) {
  for_each_call(module, [&](const jit::Node& node) {
    const std::string name = node.kind().toQualString();
    if (starts_with(name, "quantized::") || starts_with(name, "aten::quantize_per")) {
      refuse_network(path,
                     fmt::format("its layers compute with integers ({}) and can't be trained; "
                                 "expected the network that was quantized",
                                 name));
    }
  });
  const auto parameters = module.named_parameters();
  if (parameters.size() == 0) {
    refuse_network(path,
                   "a module without parameters: its weights are constants of its code "
                   "(torch.jit.freeze, optimize_for_inference), so it can't be trained; save it "
                   "without that (predict takes it as it is)");
  }
  for (const auto& parameter : parameters) {
    if (parameter.value.scalar_type() == at::kFloat) continue;
    refuse_network(
        path,
        fmt::format("{} is {}, expected Float (32 bits): save the module after .float(), before "
                    "torch.jit; trainer.precision chooses what it is trained in",
                    printable(parameter.name),
                    c10::toString(parameter.value.scalar_type())));
  }
}

/// The attributes that a script changes and a checkpoint does not have.
std::string lost_attributes(const jit::Module& module) {
  std::vector<std::string> names;
  for_each_call(module, [&](const jit::Node& node) {
    if (node.kind() != c10::prim::SetAttr) return;
    const auto type = node.input(0)->type()->cast<c10::ClassType>();
    const std::string& name = node.s(c10::attr::name);
    const auto number = type ? type->findAttributeSlot(name) : std::nullopt;
    if (!number || (type->is_module() && !type->is_parameter(*number) && !type->is_buffer(*number)))
      names.push_back(printable(name));
  });
  return join(names, ", ");
}

}  // namespace

TensorPlace place_of(const at::Tensor& tensor) {
  return {tensor.storage().unsafeGetStorageImpl(), tensor.storage_offset(), tensor.sizes().vec()};
}

void replace_in_lists(const jit::Module& module,
                      const std::map<TensorPlace, at::Tensor>& replacements) {
  for (const jit::Module& part : module.modules()) {
    for (const c10::IValue& value : part._ivalue()->slots()) {
      if (!value.isTensorList()) continue;
      c10::List<at::Tensor> list = value.toTensorList();
      for (std::size_t i = 0; i < list.size(); ++i) {
        const auto found = replacements.find(place_of(list.get(i)));
        if (found != replacements.end()) list.set(i, found->second);
      }
    }
  }
}

ScriptFile::ScriptFile(const std::string& path) : path_(path) {
  switch (io::kind_of(path)) {
    case io::ModelKind::torchscript:
      open_script();
      return;
    case io::ModelKind::aoti:
      refuse_network(path, "a compiled model, which can't be trained; expected TorchScript");
    case io::ModelKind::onnx:
      refuse_network(path, "ONNX, which predict runs and nothing trains; expected TorchScript");
    case io::ModelKind::bioimageio:
      refuse_network(path, "a package of bioimage.io; expected the TorchScript in it");
    case io::ModelKind::bundle:
      refuse_network(path, "a MONAI bundle; expected TorchScript, as its models/model.ts");
    case io::ModelKind::nnunet:
      refuse_network(
          path,
          "a model of nnU-Net, which model=plain_conv_unet or residual_encoder_unet trains "
          "on (model.plans)");
    case io::ModelKind::weights:
      break;
  }
  if (io::is_torch_file(path)) {
    refuse_network(path,
                   "weights without a network, expected TorchScript (torch.jit.save); weights "
                   "start a network of the same names: checkpoint.ckpt_path=" +
                       path + " checkpoint.weights_only=true");
  }
  open_checkpoint();
}

void ScriptFile::open_script() {
  ExtraFiles none;
  module = load_torchscript(path_, none);
  expect_trainable(path_, module);
  remarks = turn_modes(module);
  if (const std::string names = lost_attributes(module); !names.empty())
    remarks.push_back("it changes attributes that a checkpoint does not hold: " + names);
}

void ScriptFile::open_checkpoint() {
  const std::string own = kGraphModule;
  const io::SafetensorsFile file(path_);
  const std::string front =  // none in what export_model writes
      file.tensors().count(own + "torchscript") > 0 ? "" : "model.";
  const auto reading = file.reading();
  const auto code = file.tensors().find(front + own + "torchscript");
  if (code == file.tensors().end()) {
    refuse_network(path_,
                   file.tensors().count(front + own + "graph") > 0
                       ? "a checkpoint of a network of torch.export: model=exported takes it"
                       : "expected TorchScript (torch.jit.save), or a checkpoint that was trained "
                         "of it with model=torchscript");
  }
  code_.assign(static_cast<const char*>(code->second.data), code->second.bytes);
  for (const auto& [name, view] : file.tensors()) {
    if (starts_with(name, front)) trained_[name.substr(front.size())] = tensor_of(view, name);
  }
  reading.check();
  module = load_kept_torchscript(path_, code_, c10::kCPU);
}

at::Tensor ScriptFile::tensor(const std::string& name, const at::Tensor& own) const {
  if (code_.empty()) return own.is_non_overlapping_and_dense() ? own : own.contiguous();
  const auto found = trained_.find(name);
  if (found == trained_.end() || found->second.sizes() != own.sizes())
    refuse_network(path_, "its script has a tensor that the checkpoint lacks: " + printable(name));
  return found->second;
}

std::string ScriptFile::without_weights() {
  if (!code_.empty()) return code_;
  std::map<TensorPlace, at::Tensor> stand_ins;
  for (const jit::Module& part : module.modules()) {
    const jit::ObjectPtr object = part._ivalue();
    for (std::size_t i = 0; i < object->type()->numAttributes(); ++i) {
      if ((!object->type()->is_parameter(i) && !object->type()->is_buffer(i)) ||
          !object->getSlot(i).isTensor())
        continue;
      const at::Tensor tensor = object->getSlot(i).toTensor();
      at::Tensor& stand_in = stand_ins[place_of(tensor)];
      if (!stand_in.defined()) stand_in = at::zeros({}, tensor.options()).expand(tensor.sizes());
      object->setSlot(i, stand_in);
    }
  }
  replace_in_lists(module, stand_ins);
  std::ostringstream bytes;
  module.save(bytes);
  return bytes.str();
}

}  // namespace cytra::nn
