// Source: segment_anything/modeling/image_encoder.py; relative positions: arXiv:2112.01526.
#include "nn/blocks/sam_encoder.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/error.h"
#include "nn/dropout.h"
#include "ops/tokens/tokens.h"

namespace cytra::nn {
namespace {

constexpr BlockStyle kSamBlock{"proj", "lin1", "lin2", 1e-6};

/// positions (2m-1,E) -> (n,n,E): of each query place the one of each key. Of another side, m, they
/// are resampled.
at::Tensor positions_of_keys(const at::Tensor& positions, int64_t n) {
  const int64_t distances = 2 * n - 1;
  const at::Tensor places = at::arange(n, positions.options().dtype(at::kLong));
  const at::Tensor fitting =
      positions.size(0) == distances
          ? positions
          : at::upsample_linear1d(positions.t().unsqueeze(0), {distances}, false)[0].t();
  return fitting.index({places.unsqueeze(1) - places.unsqueeze(0) + (n - 1)});
}

/// (N,H,W,E) -> (M,window,window,E), with 0 behind the right and lower edge.
at::Tensor square_windows(const at::Tensor& x, int64_t window) {
  const auto behind = [&](int64_t length) { return (window - length % window) % window; };
  const at::Tensor padded =
      at::constant_pad_nd(x, {0, 0, 0, behind(x.size(2)), 0, behind(x.size(1))});
  return padded.unflatten(1, {-1, window}).unflatten(3, {-1, window}).transpose(2, 3).flatten(0, 2);
}

at::Tensor image_of_square_windows(const at::Tensor& windows, int64_t height, int64_t width) {
  const int64_t window = windows.size(1);
  const int64_t across = (width + window - 1) / window, down = (height + window - 1) / window;
  return windows.unflatten(0, {-1, down, across})
      .transpose(2, 3)
      .flatten(3, 4)
      .flatten(1, 2)
      .slice(1, 0, height)
      .slice(2, 0, width);
}

}  // namespace

ChannelNorm::ChannelNorm(int64_t channels)
    : weight(register_parameter("weight", at::ones({channels}))),
      bias(register_parameter("bias", at::zeros({channels}))) {}

at::Tensor ChannelNorm::forward(const at::Tensor& x) {
  return at::layer_norm(x.movedim(1, -1), weight.sizes(), weight, bias, kEpsilon).movedim(-1, 1);
}

void SamEncoderOptions::check() const {
  const auto expect_multiple = [](const char* name, int64_t value, const char* of, int64_t part) {
    if (value % part != 0)
      throw ConfigError("Sam: {}={}: expected a multiple of {}={}", name, value, of, part);
  };
  expect_multiple("img_size", img_size, "patch_size", patch_size);
  expect_multiple("embed_dim", embed_dim, "num_heads", num_heads);
  for (const int64_t block : global_attn_indexes) {
    if (block >= depth)
      throw ConfigError("Sam: global_attn_indexes: {}, expected blocks from 0 to {} (depth={})",
                        block,
                        depth - 1,
                        depth);
  }
}

struct SamEncoder::Attention final : torch::nn::Module {
  /// `side`: of the squares of tokens that it has learned.
  Attention(int64_t features, int64_t heads, int64_t side)
      : heads_(heads),
        qkv_(put<Linear>(*this, "qkv", features, 3 * features)),
        output_(put<Linear>(*this, "proj", features, features)),
        down_(register_parameter("rel_pos_h", at::zeros({2 * side - 1, features / heads}))),
        across_(register_parameter("rel_pos_w", at::zeros({2 * side - 1, features / heads}))) {}
  /// (N,s,s,E) -> the same
  at::Tensor forward(const at::Tensor& x) {
    const int64_t side = x.size(1);
    const at::Tensor qkv = call(*qkv_, x.flatten(1, 2));
    return call(*output_, attended(qkv, side)).unflatten(1, {side, side});
  }

 private:
  at::Tensor attended(const at::Tensor& qkv, int64_t side) const {
    const auto parts = qkv.chunk(3, -1);
    const at::Tensor query = split_heads(parts[0], heads_);
    // The terms that the distance along each axis adds to a query's product with a key.
    const at::Tensor places = query.unflatten(2, {side, side});  // (N,heads,H,W,e)
    const at::Tensor down =
        at::matmul(places, positions_of_keys(down_, side).transpose(1, 2));  // (N,heads,H,W,H)
    const at::Tensor across =
        at::matmul(places.transpose(2, 3), positions_of_keys(across_, side).transpose(1, 2))
            .transpose(2, 3);
    if (watcher == nullptr && ops::has_token_kernels(qkv))
      return ops::attend_square(qkv, down.flatten(2, 3), across.flatten(2, 3));
    const at::Tensor bias = (down.unsqueeze(-1) + across.unsqueeze(-2)).flatten(4, 5).flatten(2, 3);
    return attend(query, split_heads(parts[1], heads_), split_heads(parts[2], heads_), 0, bias);
  }
  int64_t heads_;
  std::shared_ptr<Linear> qkv_, output_;
  at::Tensor down_, across_;
};

struct SamEncoder::Block final : torch::nn::Module {
  /// `window`: tokens of a side; 0: the whole image. `learned`: of the sides that it has learned.
  Block(const SamEncoderOptions& options, int64_t window, int64_t learned)
      : window_(window),
        norm1_(put<LayerNorm>(*this, "norm1", options.embed_dim, kSamBlock.epsilon)),
        attn_(put<Attention>(*this, "attn", options.embed_dim, options.num_heads, learned)),
        norm2_(put<LayerNorm>(*this, "norm2", options.embed_dim, kSamBlock.epsilon)),
        mlp_(put<Mlp>(
            *this,
            "mlp",
            kSamBlock,
            options.embed_dim,
            static_cast<int64_t>(static_cast<double>(options.embed_dim) * options.mlp_ratio))) {}
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor normed = call(*norm1_, x);
    const at::Tensor y =
        x + (window_ == 0
                 ? call(*attn_, normed)
                 : image_of_square_windows(
                       call(*attn_, square_windows(normed, window_)), x.size(1), x.size(2)));
    return y + call(*mlp_, call(*norm2_, y));
  }

 private:
  int64_t window_;
  std::shared_ptr<LayerNorm> norm1_;
  std::shared_ptr<Attention> attn_;
  std::shared_ptr<LayerNorm> norm2_;
  std::shared_ptr<Mlp> mlp_;
};

SamEncoder::SamEncoder(const SamEncoderOptions& options)
    : rdrop_(options.rdrop),
      patches_(put(*this,
                   "patch_embed.proj",
                   patch_convolution(
                       3, options.embed_dim, {options.patch_size, options.patch_size}, {0, 0}))) {
  const int64_t side = options.img_size / options.patch_size;
  positions_ = register_parameter("pos_embed", at::zeros({1, side, side, options.embed_dim}));
  const auto& whole = options.global_attn_indexes;
  blocks_ = register_list(*this, "blocks", options.depth, [&](int64_t i) {
    const bool is_global = std::ranges::find(whole, i) != whole.end();
    const bool is_pretrained = options.pretrained_side > 0;
    const int64_t whole_side = is_pretrained ? options.pretrained_side : side;
    return std::make_shared<Block>(options,
                                   is_global || is_pretrained ? 0 : options.window_size,
                                   is_global ? whole_side : options.window_size);
  });
  ConvOptions one{{1, 1}, {1, 1}, /*bias=*/false}, three{{3, 3}, {1, 1}, /*bias=*/false};
  neck_ = {put<Conv>(*this, "neck.0", options.embed_dim, options.out_chans, one),
           put<ChannelNorm>(*this, "neck.1", options.out_chans),
           put<Conv>(*this, "neck.2", options.out_chans, options.out_chans, three),
           put<ChannelNorm>(*this, "neck.3", options.out_chans)};
}

at::Tensor SamEncoder::forward(const at::Tensor& image, bool recompute) {
  at::Tensor x = call(*patches_, image).movedim(1, -1) + positions_;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const at::Tensor y = recompute ? checkpoint(blocks_[i], x) : call(*blocks_[i], x);
    // Later blocks are left out more often (cellpose's CPSAM).
    const double share = rdrop_ * static_cast<double>(i) /
                         static_cast<double>(std::max<std::size_t>(blocks_.size() - 1, 1));
    x = drops(share, is_training())
            ? at::where(
                  at::rand({x.size(0), 1, 1, 1}, x.options().dtype(at::kFloat)).lt(share), x, y)
            : y;
  }
  x = x.movedim(-1, 1);
  for (const auto& layer : neck_) x = call(*layer, x);
  return x;
}

}  // namespace cytra::nn
