// ONNX files: what is told here; that ONNX Runtime computes the same, by read_back.sh
// (check_onnx.py), which has this program write them.
#include "export/onnx.h"

#include <cstdlib>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/files.h"
#include "config/registry.h"
#include "export/compile.h"
#include "nn/model.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"

namespace cytra {
namespace {

/// A network of one output.
using Network = std::function<at::Tensor(const at::Tensor&)>;

std::string onnx_of(const Network& forward, const at::Tensor& example) {
  const at::NoGradGuard no_grad;
  const exporting::OnnxShapes shapes{example.size(1), example.dim() - 2, {}};
  return exporting::to_onnx(
      exporting::to_torchscript(
          [&](const at::Tensor& x) { return std::vector<at::Tensor>{forward(x)}; }, example, {}),
      shapes,
      {{"config", "a: 1"}, {"name", "é"}});
}

/// The file, and images with what becomes of them, for check_onnx.py; nothing where nobody asks.
void keep_onnx(const std::string& name,
               const Network& forward,
               const std::string& onnx,
               const std::vector<at::Tensor>& images) {
  const char* folder = std::getenv("CYTRA_WRITE_SAMPLES");
  if (folder == nullptr) return;
  const at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> kept;
  io::TensorViews views;
  for (std::size_t i = 0; i < images.size(); ++i) {
    kept["in" + std::to_string(i)] = images[i].contiguous();
    kept["out" + std::to_string(i)] = forward(images[i]).contiguous();
  }
  for (const auto& [key, tensor] : kept) views[key] = nn::view_of(tensor);
  write_file(std::string(folder) + "/" + name + ".onnx", onnx);
  io::write_safetensors(std::string(folder) + "/" + name + ".safetensors", views, {});
}

TEST(Onnx, HoldsOurModels) {
  for (const auto& [name, text] : std::vector<std::pair<std::string, std::string>>{
           {"dynunet_2d", "{_target_: DynUNet, filters: [4, 8, 16], out_channels: 3}"},
           {"dynunet_3d", "{_target_: DynUNet, filters: [4, 8, 16], spatial_dims: 3}"},
           {"dynunet_res",
            "{_target_: DynUNet, filters: [4, 8, 16], in_channels: 2, res_block: true, dropout: "
            "0.5, trans_bias: true}"}}) {
    const auto model = make<nn::Model>(text);
    model->eval();
    for (at::Tensor& parameter : model->parameters()) parameter.requires_grad_(false);
    std::vector<int64_t> small{2, model->in_channels(), 16, 16},
        other{1, model->in_channels(), 24, 8};
    if (model->spatial_dims() == 3) {
      small.push_back(16);
      other.push_back(12);
    }
    const auto forward = [&](const at::Tensor& x) { return model->forward(x); };
    const std::string onnx = onnx_of(forward, at::rand(small));
    EXPECT_NE(onnx.find("InstanceNormalization"), std::string::npos);
    keep_onnx(name, forward, onnx, {at::rand(small), at::rand(other)});
  }
}

struct LayerCase {
  std::string name;
  std::function<at::Tensor(const at::Tensor&)> forward;
  std::vector<int64_t> shape{2, 4, 12, 16};
};

std::vector<LayerCase> layer_cases() {
  const at::Tensor w = at::randn({6, 4, 3, 3}) / 6, b = at::randn({6}), four = at::rand({4}) + 0.5,
                   other = at::randn({4}), w1 = at::randn({4, 4, 1, 1}) / 2,
                   grouped = at::randn({8, 2, 3, 3}) / 4, up = at::randn({4, 3, 2, 2}),
                   w3 = at::randn({5, 4, 3, 1, 3}) / 6, line = at::randn({16, 7}).t();
  return {
      {"conv", [=](const auto& x) { return at::conv2d(x, w, b, 2, 1).relu(); }},
      {"grouped", [=](const auto& x) { return at::conv2d(x, grouped, {}, 1, 2, 2, 2); }},
      {"conv3d",
       [=](const auto& x) {
         return at::conv3d(x, w3, {}, {1, 2, 1}, {1, 0, 1}).sigmoid();
       },
       {1, 4, 6, 8, 10}},
      {"transposed", [=](const auto& x) { return at::conv_transpose2d(x, up, {}, 2).tanh(); }},
      {"batch_norm",
       [=](const auto& x) {
         return at::leaky_relu(
             at::batch_norm(at::conv2d(x, w1), four, other, other, four, false, 0.1, 1e-3, false),
             0.2);
       }},
      {"norms",
       [=](const auto& x) {
         const at::Tensor y = at::instance_norm(x, {}, {}, {}, {}, true, 0.1, 1e-4, false);
         return at::group_norm(at::prelu(y, four - 1), 2, four, other, 1e-4, false);
       }},
      {"group_norm_3d",
       [=](const auto& x) { return at::group_norm(x, 4, four, other, 1e-5, false); },
       {2, 4, 4, 6, 5}},
      {"pools",
       [=](const auto& x) {
         return at::cat({at::max_pool2d(x, 2),
                         at::avg_pool2d(x, 2),
                         at::avg_pool2d(x, {3, 3}, {2, 2}, {1, 1}, false, false)},
                        1);
       }},
      {"attention",
       [=](const auto& x) {
         return x * at::adaptive_avg_pool2d(x, {1, 1}).sigmoid() + 0.5;
       }},
      {"nearest",
       [=](const auto& x) {
         return at::upsample_nearest2d(x, {}, std::vector<double>{2, 2});
       }},
      {"bilinear",
       [=](const auto& x) {
         return at::upsample_bilinear2d(x, {}, true, std::vector<double>{2, 2});
       }},
      {"trilinear",
       [=](const auto& x) {
         return at::upsample_trilinear3d(x, {}, false, std::vector<double>{2, 2, 2});
       },
       {1, 4, 3, 4, 5}},
      {"pads",
       [=](const auto& x) {
         return at::pad(at::constant_pad_nd(x, {1, 0, 2, 1}, 0.5), {0, 1, 1, 2}, "reflect");
       }},
      {"activations",
       [=](const auto& x) {
         return at::cat({at::elu(x),
                         at::silu(x),
                         at::gelu(x),
                         at::clamp(x, -0.5, 0.5),
                         at::softmax(x, 1),
                         at::hardtanh(x, 0, 6),
                         at::log_softmax(x, -1)},
                        1);
       }},
      {"arithmetic",
       [=](const auto& x) {
         at::Tensor y = 2 * x - at::add(x, four.reshape({1, 4, 1, 1}), 0.5);
         y.mul_(0.25).add_(x);
         return y / (x.abs() + 1).sqrt() + y.pow(2) - 1;
       }},
      {"shapes",
       [=](const auto& x) {
         const at::Tensor y = at::linear(x, line).permute({0, 2, 3, 1});
         return at::layer_norm(y, {4}, four, other).permute({0, 2, 1, 3}).flatten(2).unsqueeze(1);
       }},
      {"slices",
       [=](const auto& x) {
         return at::cat({x.slice(1, 1, 3), x.slice(1, 0, 1).neg()}, 1).mean({2}, true);
       }},
  };
}

TEST(Onnx, HoldsTheLayersOfUsualModels) {
  at::manual_seed(3);
  for (const LayerCase& one : layer_cases()) {
    SCOPED_TRACE(one.name);
    const at::Tensor example = at::randn(one.shape);
    const std::string onnx = onnx_of(one.forward, example);
    EXPECT_GT(onnx.size(), 100U);
    keep_onnx(one.name, one.forward, onnx, {at::randn(one.shape)});
  }
}

TEST(Onnx, WhatHasNoFormIsNamed) {
  const auto forward = [](const at::Tensor& x) { return at::fft_rfft(at::cumsum(x, 1)).abs(); };
  EXPECT_EQ(message_of<DataError>([&] {
              onnx_of(forward, at::rand({1, 2, 8, 8}));
            }),
            "this model can't be written as ONNX: aten::cumsum, aten::fft_rfft; format=torchscript "
            "holds every model");
  const at::Tensor half = at::rand({2, 2, 1, 1}).to(at::kHalf);
  EXPECT_NE(message_of<DataError>([&] {
              onnx_of([&](const at::Tensor& x) { return at::conv2d(x.to(at::kHalf), half); },
                      at::rand({1, 2, 8, 8}));
            }).find("float32 weights only"),
            std::string::npos);
}

}  // namespace
}  // namespace cytra
