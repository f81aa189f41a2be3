#include "nn/weights.h"

#include <cstring>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"

namespace cytra::nn {
namespace {

struct TypeName {
  const char* name;
  at::ScalarType type;
};
constexpr TypeName kTypes[] = {{"F32", at::kFloat},
                               {"F16", at::kHalf},
                               {"BF16", at::kBFloat16},
                               {"F64", at::kDouble},
                               {"I64", at::kLong},
                               {"I32", at::kInt},
                               {"U32", at::kUInt32},
                               {"I16", at::kShort},
                               {"U16", at::kUInt16},
                               {"I8", at::kChar},
                               {"U8", at::kByte},
                               {"BOOL", at::kBool}};

std::string list_some(const std::vector<std::string>& names) {
  const std::size_t shown = std::min<std::size_t>(names.size(), 5);
  return join({names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown)}, ", ") +
         (shown < names.size() ? fmt::format(" and {} more", names.size() - shown) : "");
}

}  // namespace

std::map<std::string, at::Tensor> state_of(const torch::nn::Module& module) {
  std::map<std::string, at::Tensor> state;
  for (const auto& item : module.named_parameters()) state[item.key()] = item.value();
  for (const auto& item : module.named_buffers()) state[item.key()] = item.value();
  return state;
}

void load_state(torch::nn::Module& module,
                const io::SafetensorsFile& file,
                const std::string& path,
                const std::string& prefix,
                bool strict) {
  const at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> state = state_of(module);
  std::vector<std::string> missing, unexpected;
  for (auto& [name, tensor] : state) {
    const auto stored = file.tensors().find(prefix + name);
    if (stored == file.tensors().end()) {
      missing.push_back(name);
    } else if (stored->second.shape != tensor.sizes().vec()) {
      throw DataError(
          fmt::format("{}: {} is ({}), the model's is ({}); the checkpoint belongs to another "
                      "model configuration",
                      path,
                      name,
                      fmt::join(stored->second.shape, ","),
                      fmt::join(tensor.sizes(), ",")));
    } else {
      tensor.copy_(tensor_of(stored->second, name));
    }
  }
  for (const auto& [name, view] : file.tensors()) {
    if (!starts_with(name, prefix)) continue;
    const std::string own = name.substr(prefix.size());
    if (state.count(own) == 0 && !starts_with(own, "skip_layers.")) unexpected.push_back(own);
  }
  if (missing.empty() && unexpected.empty()) return;
  const std::string message =
      fmt::format("{}: weights do not match the model: missing {} ({}), unexpected {} ({})",
                  path,
                  missing.size(),
                  list_some(missing),
                  unexpected.size(),
                  list_some(unexpected));
  if (strict || missing.size() == state.size())
    throw DataError(message + "; checkpoint.strict=false loads what fits");
  log::warn("{}", message);
}

io::TensorView view_of(const at::Tensor& tensor) {
  for (const TypeName& entry : kTypes) {
    if (entry.type == tensor.scalar_type())
      return {entry.name, tensor.sizes().vec(), tensor.const_data_ptr(), tensor.nbytes()};
  }
  throw std::logic_error(
      fmt::format("no safetensors type for {}", c10::toString(tensor.scalar_type())));
}

at::Tensor tensor_of(const io::TensorView& view, const std::string& name) {
  at::Tensor tensor = at::empty(view.shape, at::TensorOptions(scalar_type_of(view, name)));
  if (view.bytes > 0) std::memcpy(tensor.data_ptr(), view.data, view.bytes);
  return tensor;
}

at::ScalarType scalar_type_of(const io::TensorView& view, const std::string& name) {
  for (const TypeName& entry : kTypes) {
    if (view.dtype == entry.name) return entry.type;
  }
  throw DataError(fmt::format("tensor {} has type {}, which is not supported", name, view.dtype));
}

}  // namespace cytra::nn
