// Part of nn/weights.h: tensors as safetensors hold them.
#include <cstring>
#include <stdexcept>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "nn/weights.h"

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

}  // namespace

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
  throw DataError("tensor {} has type {}, which is not supported", name, view.dtype);
}

}  // namespace cytra::nn
