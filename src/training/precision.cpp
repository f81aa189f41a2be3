#include "training/precision.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "data/loader/batch.h"

namespace cytra::training {

void cast(data::Batch& batch, c10::ScalarType type) {
  if (type == at::kFloat) return;
  const auto change = [type](at::Tensor& tensor) {
    if (tensor.is_floating_point()) tensor = tensor.to(type);
  };
  for (auto& [key, tensor] : batch.tensors) change(tensor);
  for (auto& [key, list] : batch.lists) std::ranges::for_each(list, change);
}

}  // namespace cytra::training
