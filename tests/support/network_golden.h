#pragma once
// What tests/golden/network_golden.py wrote of a peer's network, and the weights that it has.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <ATen/ATen.h>

#include "config/options.h"
#include "nn/model.h"
#include "nn/weights.h"

namespace cytra::test {

/// Numbers in [-1, 1) that look random: as network_golden.py's.
inline at::Tensor pattern(at::IntArrayRef shape, uint64_t seed) {
  at::Tensor values = at::empty(shape, at::kDouble);
  double* const data = values.mutable_data_ptr<double>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    uint64_t x = (static_cast<uint64_t>(i) * 2654435761U + seed * 40503U + 12345U) & 0xFFFFFFFFU;
    x = ((x ^ (x >> 16U)) * 0x45D9F3BU) & 0xFFFFFFFFU;
    x ^= x >> 16U;
    data[i] = static_cast<double>(x) / 2147483648.0 - 1;
  }
  return values;
}

/// Gives all parameters and float buffers the values of network_golden.py's fill().
inline void fill(const std::map<std::string, at::Tensor>& state) {
  const at::NoGradGuard no_grad;
  uint64_t seed = 0;
  for (const auto& [name, tensor] : state) {
    at::Tensor p = pattern(tensor.sizes(), seed++);
    if (!tensor.is_floating_point()) continue;
    if (name.ends_with("running_mean")) {
      p = 0.1 * p;
    } else if (name.ends_with("running_var")) {
      p = 1 + 0.5 * p.abs();
    } else if (tensor.dim() >= 2) {
      p = p * std::sqrt(3.0 * static_cast<double>(tensor.size(0)) /
                        static_cast<double>(tensor.numel()));
    } else {
      p = name.ends_with("weight") ? 1 + 0.2 * p : 0.1 * p;
    }
    at::Tensor(tensor).copy_(p);
  }
}

struct NetworkCase {
  config::Node node;
  std::string name() const { return node.get<std::string>("name"); }
};

inline NetworkCase network_case(const std::string& name) {
  const std::string path =
      std::string(CYTRA_SOURCE_DIR) + "/tests/golden/networks/" + name + ".json";
  std::ifstream file(path);
  return {config::parse_yaml(
      std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()), path)};
}

/// Of all cases.
inline std::vector<std::string> network_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(CYTRA_SOURCE_DIR) +
                                                               "/tests/golden/networks"))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace cytra::test
