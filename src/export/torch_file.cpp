#include "export/torch_file.h"

#include <vector>

#include <torch/csrc/jit/serialization/pickle.h>

namespace cytra::exporting {

std::string to_torch_file(const c10::IValue& value) {
  const std::vector<char> bytes = torch::jit::pickle_save(value);
  return {bytes.begin(), bytes.end()};
}

}  // namespace cytra::exporting
