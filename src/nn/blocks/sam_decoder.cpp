// Source: segment_anything/modeling/prompt_encoder.py, mask_decoder.py, transformer.py.
#include "nn/blocks/sam_decoder.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/init.h>

#include "base/error.h"

namespace cytra::nn {
namespace {

constexpr double kHalfTurn = 3.14159265358979323846;
constexpr BlockStyle kTwoWayBlock{"out_proj", "lin1", "lin2", 1e-5};

/// The weight of a torch.nn.Embedding: (count,features).
at::Tensor put_embedding(torch::nn::Module& owner,
                         const std::string& name,
                         int64_t count,
                         int64_t features) {
  at::Tensor values =
      parent_of(owner, name + ".weight").register_parameter("weight", at::empty({count, features}));
  torch::nn::init::normal_(values);
  return values;
}

ConvOptions twofold(bool is_transposed) {
  return {{2, 2}, {2, 2}, /*bias=*/true, is_transposed, {0, 0}};
}

struct Gelu final : Layer {
  at::Tensor forward(const at::Tensor& x) override { return at::gelu(x); }
};

}  // namespace

void SamDecoderOptions::check(int64_t features) const {
  if (features % 8 != 0 || features / 2 % decoder_num_heads != 0) {
    throw ConfigError(
        fmt::format("Sam: out_chans={}: expected a multiple of 8 and of twice decoder_num_heads={}",
                    features,
                    decoder_num_heads));
  }
  if (mask_in_chans % 4 != 0)
    throw ConfigError(
        fmt::format("Sam: mask_in_chans={}: expected a multiple of 4", mask_in_chans));
}

SamPromptEncoder::SamPromptEncoder(int64_t features,
                                   int64_t side,
                                   int64_t img_size,
                                   const SamDecoderOptions& options)
    : side_(side), img_size_(img_size) {
  const int64_t mask_features = options.mask_in_chans;
  frequencies_ = register_module("pe_layer", std::make_shared<torch::nn::Module>())
                     ->register_buffer("positional_encoding_gaussian_matrix",
                                       at::randn({2, features / 2}) * options.pe_scale);
  for (int64_t i = 0; i < 4; ++i)
    corners_.push_back(put_embedding(*this, fmt::format("point_embeddings.{}", i), 1, features));
  no_point_ = put_embedding(*this, "not_a_point_embed", 1, features);
  downscaling_ = {
      put(*this,
          "mask_downscaling.0",
          std::make_shared<Conv>(1, mask_features / 4, twofold(false))),
      put(*this, "mask_downscaling.1", std::make_shared<ChannelNorm>(mask_features / 4)),
      put(*this, "mask_downscaling.2", std::make_shared<Gelu>()),
      put(*this,
          "mask_downscaling.3",
          std::make_shared<Conv>(mask_features / 4, mask_features, twofold(false))),
      put(*this, "mask_downscaling.4", std::make_shared<ChannelNorm>(mask_features)),
      put(*this, "mask_downscaling.5", std::make_shared<Gelu>()),
      put(*this,
          "mask_downscaling.6",
          std::make_shared<Conv>(mask_features, features, ConvOptions{{1, 1}, {1, 1}}))};
  no_mask_ = put_embedding(*this, "no_mask_embed", 1, features);
}

/// (...,2) x y from 0 to 1 -> (...,C). Not a matrix product: half precision would move the places.
at::Tensor SamPromptEncoder::encoded(const at::Tensor& coordinates) const {
  const at::Tensor centred = coordinates * 2 - 1;
  const at::Tensor angles =
      2 * kHalfTurn *
      (centred.slice(-1, 0, 1) * frequencies_[0] + centred.slice(-1, 1, 2) * frequencies_[1]);
  return at::cat({angles.sin(), angles.cos()}, -1);
}

at::Tensor SamPromptEncoder::sparse(const Prompts& prompts) {
  const auto size = static_cast<double>(img_size_);
  std::vector<at::Tensor> parts;
  if (prompts.points.defined()) {
    at::Tensor points = (prompts.points + 0.5) / size, labels = prompts.labels;
    if (!prompts.boxes.defined()) {  // where a box would be: a point that is none
      points = at::constant_pad_nd(points, {0, 0, 0, 1});
      labels = at::constant_pad_nd(labels, {0, 1}, -1);
    }
    const auto where = [&](int64_t label) { return labels.eq(label).unsqueeze(-1); };
    parts.push_back(encoded(points).masked_fill(where(-1), 0) + where(-1) * no_point_ +
                    where(0) * corners_[0] + where(1) * corners_[1]);
  }
  if (prompts.boxes.defined()) {
    const at::Tensor corners = ((prompts.boxes + 0.5) / size).unflatten(1, {2, 2});
    parts.push_back(encoded(corners) + at::cat({corners_[2], corners_[3]}));
  }
  return parts.empty() ? frequencies_.new_empty({prompts.masks.size(0), 0, no_mask_.size(1)})
                       : at::cat(parts, 1);
}

at::Tensor SamPromptEncoder::dense(const Prompts& prompts) {
  if (!prompts.masks.defined()) return no_mask_.view({1, -1, 1, 1}).expand({1, -1, side_, side_});
  at::Tensor x = prompts.masks;
  for (const auto& layer : downscaling_) x = call(*layer, x);
  return x;
}

at::Tensor SamPromptEncoder::grid() const {
  const at::Tensor places =
      (at::arange(side_, frequencies_.options()) + 0.5) / static_cast<double>(side_);
  const at::Tensor x = places.unsqueeze(0).expand({side_, side_});
  return encoded(at::stack({x, x.t()}, -1)).movedim(-1, 0).unsqueeze(0);
}

/// Keys and values of other tokens than the queries; fewer features inside.
struct SamMaskDecoder::Attention final : torch::nn::Module {
  Attention(int64_t features, int64_t inner, int64_t heads)
      : heads_(heads),
        query_(register_module("q_proj", std::make_shared<Linear>(features, inner))),
        key_(register_module("k_proj", std::make_shared<Linear>(features, inner))),
        value_(register_module("v_proj", std::make_shared<Linear>(features, inner))),
        output_(register_module("out_proj", std::make_shared<Linear>(inner, features))) {}
  at::Tensor forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
    return call(*output_,
                attend(split_heads(call(*query_, query), heads_),
                       split_heads(call(*key_, key), heads_),
                       split_heads(call(*value_, value), heads_)));
  }

 private:
  int64_t heads_;
  std::shared_ptr<Linear> query_, key_, value_, output_;
};

/// Linear layers with ReLU between them: `layers.0` ...
struct SamMaskDecoder::LayersMlp final : torch::nn::Module {
  LayersMlp(int64_t in, int64_t hidden, int64_t out, int64_t depth)
      : layers_(register_list(*this, "layers", depth, [&](int64_t i) {
          return std::make_shared<Linear>(i == 0 ? in : hidden, i == depth - 1 ? out : hidden);
        })) {}
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = x;
    for (std::size_t i = 0; i < layers_.size(); ++i)
      y = i + 1 < layers_.size() ? at::relu(call(*layers_[i], y)) : call(*layers_[i], y);
    return y;
  }

 private:
  std::vector<std::shared_ptr<Linear>> layers_;
};

/// Tokens look at each other and at the image, then the image at the tokens.
struct SamMaskDecoder::TwoWayBlock final : torch::nn::Module {
  TwoWayBlock(int64_t features, const SamDecoderOptions& options, bool is_first)
      : is_first_(is_first),
        self_(attention("self_attn", features, features, options)),
        norm1_(register_module("norm1", std::make_shared<LayerNorm>(features))),
        to_image_(attention("cross_attn_token_to_image", features, features / 2, options)),
        norm2_(register_module("norm2", std::make_shared<LayerNorm>(features))),
        first_(put(*this, "mlp.lin1", std::make_shared<Linear>(features, options.decoder_mlp_dim))),
        second_(
            put(*this, "mlp.lin2", std::make_shared<Linear>(options.decoder_mlp_dim, features))),
        norm3_(register_module("norm3", std::make_shared<LayerNorm>(features))),
        norm4_(register_module("norm4", std::make_shared<LayerNorm>(features))),
        to_tokens_(attention("cross_attn_image_to_token", features, features / 2, options)) {}
  void run(at::Tensor& tokens,
           at::Tensor& image,
           const at::Tensor& token_places,
           const at::Tensor& image_places) {
    if (is_first_) {
      tokens = call(*self_, tokens, tokens, tokens);
    } else {
      const at::Tensor placed = tokens + token_places;
      tokens = tokens + call(*self_, placed, placed, tokens);
    }
    tokens = call(*norm1_, tokens);
    const at::Tensor placed_image = image + image_places;
    tokens = call(*norm2_, tokens + call(*to_image_, tokens + token_places, placed_image, image));
    tokens = call(*norm3_, tokens + call(*second_, at::relu(call(*first_, tokens))));
    image = call(*norm4_, image + call(*to_tokens_, placed_image, tokens + token_places, tokens));
  }

 private:
  std::shared_ptr<Attention> attention(const char* name,
                                       int64_t features,
                                       int64_t inner,
                                       const SamDecoderOptions& options) {
    return register_module(name,
                           std::make_shared<Attention>(features, inner, options.decoder_num_heads));
  }
  bool is_first_;
  std::shared_ptr<Attention> self_;
  std::shared_ptr<LayerNorm> norm1_;
  std::shared_ptr<Attention> to_image_;
  std::shared_ptr<LayerNorm> norm2_;
  std::shared_ptr<Linear> first_, second_;
  std::shared_ptr<LayerNorm> norm3_, norm4_;
  std::shared_ptr<Attention> to_tokens_;
};

SamMaskDecoder::SamMaskDecoder(int64_t features, const SamDecoderOptions& options) {
  const auto transformer = register_module("transformer", std::make_shared<torch::nn::Module>());
  blocks_ = register_list(*transformer, "layers", options.decoder_depth, [&](int64_t i) {
    return std::make_shared<TwoWayBlock>(features, options, i == 0);
  });
  last_ = transformer->register_module(
      "final_attn_token_to_image",
      std::make_shared<Attention>(features, features / 2, options.decoder_num_heads));
  last_norm_ =
      transformer->register_module("norm_final_attn", std::make_shared<LayerNorm>(features));
  const int64_t masks = options.num_multimask_outputs + 1;
  quality_token_ = put_embedding(*this, "iou_token", 1, features);
  mask_tokens_ = put_embedding(*this, "mask_tokens", masks, features);
  upscaling_ = {put(*this,
                    "output_upscaling.0",
                    std::make_shared<Conv>(features, features / 4, twofold(true))),
                put(*this, "output_upscaling.1", std::make_shared<ChannelNorm>(features / 4)),
                put(*this, "output_upscaling.2", std::make_shared<Gelu>()),
                put(*this,
                    "output_upscaling.3",
                    std::make_shared<Conv>(features / 4, features / 8, twofold(true))),
                put(*this, "output_upscaling.4", std::make_shared<Gelu>())};
  mask_mlps_ = register_list(*this, "output_hypernetworks_mlps", masks, [&](int64_t) {
    return std::make_shared<LayersMlp>(features, features, features / 8, 3);
  });
  quality_mlp_ =
      register_module("iou_prediction_head",
                      std::make_shared<LayersMlp>(
                          features, options.iou_head_hidden_dim, masks, options.iou_head_depth));
}

PromptedMasks SamMaskDecoder::forward(const at::Tensor& embeddings,
                                      const at::Tensor& grid,
                                      const at::Tensor& sparse,
                                      const at::Tensor& dense,
                                      bool all) {
  const int64_t objects = embeddings.size(0), side = embeddings.size(2);
  const at::Tensor own = at::cat({quality_token_, mask_tokens_});
  const at::Tensor places = at::cat({own.unsqueeze(0).expand({objects, -1, -1}), sparse}, 1);
  const at::Tensor image_places = grid.flatten(2).transpose(1, 2);
  at::Tensor tokens = places, image = (embeddings + dense).flatten(2).transpose(1, 2);
  for (const auto& block : blocks_) block->run(tokens, image, places, image_places);
  tokens = call(*last_norm_, tokens + call(*last_, tokens + places, image + image_places, image));

  at::Tensor pixels = image.transpose(1, 2).unflatten(2, {side, side});
  for (const auto& layer : upscaling_) pixels = call(*layer, pixels);
  const int64_t masks = all ? mask_tokens_.size(0) : 1;
  std::vector<at::Tensor> weights;
  for (int64_t k = 0; k < masks; ++k)
    weights.push_back(call(*mask_mlps_[static_cast<std::size_t>(k)], tokens.select(1, 1 + k)));
  return {at::matmul(at::stack(weights, 1), pixels.flatten(2))
              .unflatten(2, {pixels.size(2), pixels.size(3)}),
          call(*quality_mlp_, tokens.select(1, 0)).slice(1, 0, masks)};
}

}  // namespace cytra::nn
