#pragma once
// The parts of transformers. Tokens are (N,T,E): images, tokens, features. Names and first values
// of parameters are those of torch.nn, MONAI's TransformerBlock and timm's Block.
#include "nn/blocks/layers.h"
#include "nn/recompute.h"

namespace cytra::nn {

struct Linear : torch::nn::Module {
  Linear(int64_t in, int64_t out, bool has_bias = true);
  at::Tensor forward(const at::Tensor& x) const;
  at::Tensor weight, bias;
};

struct LayerNorm : torch::nn::Module {
  explicit LayerNorm(int64_t features, double epsilon = 1e-5);
  at::Tensor forward(const at::Tensor& x) const;
  double epsilon() const { return epsilon_; }
  at::Tensor weight, bias;

 private:
  double epsilon_;
};

/// A convolution by windows that lie side by side, patches: (N,C,[D,]H,W) -> (N,E,...). They may
/// reach over their neighbours by `context`.
std::shared_ptr<Conv> patch_convolution(
    int64_t in, int64_t out, const Sizes& patch, const Sizes& context, bool has_bias = true);

/// How a library calls a block's parts, and the epsilon of its norms.
struct BlockStyle {
  const char *attention_output, *mlp_first, *mlp_second;
  double epsilon;
};
inline constexpr BlockStyle kMonaiBlock{"out_proj", "linear1", "linear2", 1e-5};
inline constexpr BlockStyle kTimmBlock{"proj", "fc1", "fc2", 1e-6};

/// (N,T,E) -> (N,heads,T,E / heads)
at::Tensor split_heads(const at::Tensor& tokens, int64_t heads);
/// softmax(query key^T / sqrt(features) + bias) value of (N,heads,T,features) -> (N,T,E).
at::Tensor attend(const at::Tensor& query,
                  const at::Tensor& key,
                  const at::Tensor& value,
                  double dropout = 0,
                  const at::Tensor& bias = {});

struct SelfAttention : torch::nn::Module {
  SelfAttention(
      const BlockStyle& style, int64_t features, int64_t heads, bool qkv_bias, double dropout);
  at::Tensor forward(const at::Tensor& x);
  std::shared_ptr<Linear> output, qkv;

 private:
  int64_t heads_;
  double dropout_;
};

/// Linear, GELU, linear, with dropout after each.
struct Mlp : torch::nn::Module {
  Mlp(const BlockStyle& style, int64_t features, int64_t hidden, double dropout = 0);
  at::Tensor forward(const at::Tensor& x);
  std::shared_ptr<Linear> first, second;

 private:
  double dropout_;
};

/// x + attention(norm(x)), then x + mlp(norm(x)).
struct TransformerBlock : torch::nn::Module {
  TransformerBlock(const BlockStyle& style,
                   int64_t features,
                   int64_t heads,
                   int64_t mlp_features,
                   bool qkv_bias = false,
                   double dropout = 0);
  at::Tensor forward(const at::Tensor& x);
  std::shared_ptr<Mlp> mlp;
  std::shared_ptr<LayerNorm> norm1, norm2;
  std::shared_ptr<SelfAttention> attn;
};

/// `count` modules named 0, 1, ... of make(i) in a module `name` of `owner`.
auto register_list(torch::nn::Module& owner, const char* name, int64_t count, const auto& make) {
  const auto list = put<torch::nn::Module>(owner, name);
  std::vector<decltype(make(0))> modules;
  for (int64_t i = 0; i < count; ++i)
    modules.push_back(list->register_module(std::to_string(i), make(i)));
  return modules;
}

/// A parameter whose values begin normal, with deviation 0.02.
at::Tensor register_embedding(torch::nn::Module& owner, const char* name, const Sizes& shape);

}  // namespace cytra::nn
