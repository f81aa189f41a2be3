// What the module of OpenVINO does of networks of torch, which are not here.
#include <stdexcept>

#include "inference/engines/entry.h"
#include "inference/openvino/quantize.h"
#include "inference/openvino/read_model.h"

namespace cytra::inference {

std::shared_ptr<ov::Model> read_torchscript(const std::string&, const std::vector<int64_t>&) {
  throw std::logic_error("TorchScript without torch");
}

void quantize(const std::shared_ptr<ov::Model>&, ov::Core&, const std::vector<Tensor>&) {
  throw EngineUnfit("8 bits need `predict` of the whole package", false);
}

}  // namespace cytra::inference
