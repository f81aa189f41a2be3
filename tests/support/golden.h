#pragma once
// Golden values that a peer computed: tests/golden/NAME.safetensors, written by
// tests/golden/make_golden.py. In a bundle they lie beside the program.
#include <filesystem>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "config/options.h"
#include "io/safetensors.h"
#include "nn/weights.h"
#include "tests/support/at_least.h"

namespace cytra::test {

struct GoldenCase {
  std::string name;
  config::Node node;  // name, options, tensors, and what the topic adds
  const io::SafetensorsFile* file;
  bool has(const std::string& role) const {
    return node.at("tensors").find_direct(role) != nullptr;
  }
  at::Tensor tensor(const std::string& role) const {
    return stored(node.at("tensors").find_direct(role)->string);
  }
  at::Tensor stored(const std::string& key) const {
    return nn::tensor_of(file->tensors().at(key), key);
  }
  const config::Node& options() const { return node.at("options"); }
};

inline std::string golden_folder() {
  const auto beside = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "golden";
  return std::filesystem::exists(beside) ? beside.string()
                                         : std::string(CYTRA_SOURCE_DIR) + "/tests/golden";
}

class Golden {
 public:
  explicit Golden(const std::string& topic)
      : path(golden_folder() + "/" + topic + ".safetensors"), file(path) {
    const config::Node list = config::parse_yaml(file.metadata().at("cases"), path);
    for (const config::Node& node : list.list)
      cases_.push_back({node.get<std::string>("name"), node, &file});
  }
  Golden(const Golden&) = delete;  // its cases point into it
  Golden& operator=(const Golden&) = delete;
  /// To go through. Throws where they are fewer.
  const std::vector<GoldenCase>& cases(std::size_t least) const { return at_least(least, cases_); }
  const GoldenCase& at(const std::string& name) const {
    for (const GoldenCase& entry : cases_) {
      if (entry.name == name) return entry;
    }
    throw std::out_of_range(path + ": no case " + name);
  }
  std::string path;
  io::SafetensorsFile file;

 private:
  std::vector<GoldenCase> cases_;
};

inline double max_difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return INFINITY;
  return a.numel() == 0 ? 0 : (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

/// max_difference() as a share of the largest expected value; of 1 where that is smaller.
inline double relative_difference(const at::Tensor& a, const at::Tensor& expected) {
  const double scale = expected.numel() == 0
                           ? 1
                           : std::max(1.0, expected.to(at::kDouble).abs().max().item<double>());
  return max_difference(a, expected) / scale;
}

/// A config node with `_target_` and the case's options.
inline config::Node component(const std::string& target, const config::Node& options) {
  config::Node node = config::Node::make_map();
  node.set("_target_", config::Node::make_string(target));
  for (const auto& [key, value] : options.map) node.set(key, value);
  return node;
}

}  // namespace cytra::test
