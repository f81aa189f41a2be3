#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "inference/engines/engine.h"
#include "nn/model.h"
#include "tests/support/golden.h"

namespace cytra::test {

/// A small DynUNet with weights of its own, and how often PyTorch's operations ran it.
struct SmallModel {
  explicit SmallModel(const std::string& text)
      : model((at::manual_seed(7), make<nn::Model>(text))) {
    model->eval();
    for (at::Tensor& parameter : model->parameters()) parameter.requires_grad_(false);
    nn::place(*model, c10::kCPU);
  }
  inference::EngineModel engine_model() {
    return {[this](const at::Tensor& windows) {
      ++passes;
      return std::vector<at::Tensor>{(*model)(windows)};
    }};
  }
  at::Tensor windows(int64_t count, int64_t side = 32) const {
    std::vector<int64_t> shape{count, model->in_channels(), side, side};
    if (model->spatial_dims() == 3) shape.push_back(side);
    return at::randn(shape);
  }
  at::Tensor eager(const at::Tensor& windows) {
    const at::NoGradGuard no_grad;
    return (*model)(windows);
  }
  std::shared_ptr<nn::Model> model;
  std::atomic<int> passes{0};
};

inline constexpr const char* kModels[] = {
    "{_target_: DynUNet, filters: [4, 8, 16], out_channels: 2}",
    "{_target_: DynUNet, filters: [4, 8, 16], spatial_dims: 3, res_block: true, dropout: 0.5}"};

inline inference::EngineOptions options_of(const std::string& backend,
                                           const std::string& precision = "32") {
  inference::EngineOptions options;
  options.backend = backend;
  options.precision = precision;
  return options;
}

}  // namespace cytra::test
