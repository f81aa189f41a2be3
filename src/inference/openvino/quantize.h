#pragma once
#include <memory>
#include <vector>

#include <openvino/core/model.hpp>
#include <openvino/runtime/core.hpp>

#include "base/tensor_fwd.h"

namespace cytra::inference {

/// Quantizes convolutions and matrix products of `model` to int8: weights symmetrically per output
/// channel; images by their ranges in `windows` (of the model's size, any number). The first and
/// the last layer stay float.
void quantize(const std::shared_ptr<ov::Model>& model,
              ov::Core& core,
              const std::vector<Tensor>& windows);

}  // namespace cytra::inference
