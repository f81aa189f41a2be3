#include "nn/fingerprint.h"

#include <ATen/core/Tensor.h>

#include "io/fingerprint.h"
#include "nn/model.h"
#include "nn/weights.h"

namespace cytra::nn {

std::string fingerprint_of(const Model& network, const config::Node& model) {
  std::string text = config::to_json(model);
  for (const auto& [name, tensor] : state_of(network)) {
    const at::Tensor values = tensor.contiguous();
    text += name + io::fingerprint(values.const_data_ptr(), values.nbytes());
  }
  return io::fingerprint(text);
}

}  // namespace cytra::nn
