#pragma once
#include <string>

#include <ATen/core/ivalue.h>

namespace cytra::exporting {

/// The bytes of a file that torch.load(weights_only=False) reads: dicts, lists, tensors, texts,
/// numbers. Tensors that share memory share it there.
std::string to_torch_file(const c10::IValue& value);

}  // namespace cytra::exporting
