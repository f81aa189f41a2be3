#pragma once
// A network whose outputs are known: output k is (k + 1) times the image plus a bias, so that what
// tasks make of outputs can be told by hand.
#include <ATen/ATen.h>

#include "config/registry.h"
#include "nn/model.h"

namespace cytra::test {

struct AffineModel : nn::Model {
  struct Options : nn::ModelOptions {
    int64_t out_channels = 1, levels = 1;
    std::vector<std::string> names;
    void visit(auto& v) {
      v("out_channels", out_channels, "channels, all the same");
      v("levels", levels, "of deep supervision: each half as large");
      v("names", names, "of its outputs");
      ModelOptions::visit(v);
    }
  };
  explicit AffineModel(const Options& given)
      : Model(given), options(given), bias(register_parameter("bias", at::full({1}, 0.25))) {}
  at::Tensor forward(const at::Tensor& image) override {
    return (image + bias).repeat_interleave(options.out_channels, 1);
  }
  std::vector<at::Tensor> forward_all(const at::Tensor& image) override {
    std::vector<at::Tensor> outputs{forward(image)};
    for (std::size_t k = 1; k < options.names.size(); ++k)
      outputs.push_back(outputs[0] * static_cast<double>(k + 1));
    for (int64_t level = 1; is_training() && level < options.levels; ++level)
      outputs.push_back(at::avg_pool2d(outputs.back(), 2));
    return outputs;
  }
  std::vector<std::string> output_names() const override { return options.names; }
  std::vector<int64_t> divisor() const override { return {1, 1}; }
  int64_t in_channels() const override { return 1; }
  int64_t out_channels() const override { return options.out_channels; }
  int64_t spatial_dims() const override { return 2; }
  Options options;
  at::Tensor bias;
};

}  // namespace cytra::test
