// Source: segment_anything/modeling/prompt_encoder.py, mask_decoder.py.
#include "nn/blocks/sam_decoder.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/init.h>

#include "base/error.h"
#include "ops/tokens/tokens.h"

namespace cytra::nn {
namespace {

constexpr double kHalfTurn = 3.14159265358979323846;

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

const Conv& conv_at(const std::vector<std::shared_ptr<Layer>>& layers, std::size_t i) {
  return dynamic_cast<const Conv&>(*layers[i]);
}
ops::ChannelScale norm_at(const std::vector<std::shared_ptr<Layer>>& layers, std::size_t i) {
  const auto& norm = dynamic_cast<const ChannelNorm&>(*layers[i]);
  return {norm.weight, norm.bias, ChannelNorm::kEpsilon};
}

}  // namespace

void SamDecoderOptions::check(int64_t features) const {
  if (features % 8 != 0 || features / 2 % decoder_num_heads != 0) {
    throw ConfigError(
        "Sam: out_chans={}: expected a multiple of 8 and of twice decoder_num_heads={}",
        features,
        decoder_num_heads);
  }
  if (mask_in_chans % 4 != 0)
    throw ConfigError("Sam: mask_in_chans={}: expected a multiple of 4", mask_in_chans);
}

SamPromptEncoder::SamPromptEncoder(int64_t features,
                                   int64_t side,
                                   int64_t img_size,
                                   const SamDecoderOptions& options)
    : side_(side), img_size_(img_size) {
  const int64_t mask_features = options.mask_in_chans;
  frequencies_ = put<torch::nn::Module>(*this, "pe_layer")
                     ->register_buffer("positional_encoding_gaussian_matrix",
                                       at::randn({2, features / 2}) * options.pe_scale);
  for (int64_t i = 0; i < 4; ++i)
    corners_.push_back(put_embedding(*this, fmt::format("point_embeddings.{}", i), 1, features));
  no_point_ = put_embedding(*this, "not_a_point_embed", 1, features);
  downscaling_ = {
      put<Conv>(*this, "mask_downscaling.0", 1, mask_features / 4, twofold(false)),
      put<ChannelNorm>(*this, "mask_downscaling.1", mask_features / 4),
      put<Gelu>(*this, "mask_downscaling.2"),
      put<Conv>(*this, "mask_downscaling.3", mask_features / 4, mask_features, twofold(false)),
      put<ChannelNorm>(*this, "mask_downscaling.4", mask_features),
      put<Gelu>(*this, "mask_downscaling.5"),
      put<Conv>(*this, "mask_downscaling.6", mask_features, features, ConvOptions{{1, 1}, {1, 1}})};
  no_mask_ = put_embedding(*this, "no_mask_embed", 1, features);
}

/// (...,2) x y from 0 to 1 -> (...,C). It is no matrix product, because half precision would move
/// the places.
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

at::Tensor SamPromptEncoder::embed(const at::Tensor& embeddings, const Prompts& prompts) {
  const at::Tensor& masks = prompts.masks;
  if (!masks.defined() || masks.scalar_type() != at::kFloat ||
      masks.sizes() != at::IntArrayRef({embeddings.size(0), 1, 4 * side_, 4 * side_}))
    return ops::to_token_tiles(embeddings + dense(prompts));
  const Conv &first = conv_at(downscaling_, 0), &second = conv_at(downscaling_, 3),
             &last = conv_at(downscaling_, 6);
  return ops::embed_masks(embeddings,
                          masks,
                          {first.weight,
                           first.bias,
                           norm_at(downscaling_, 1),
                           second.weight,
                           second.bias,
                           norm_at(downscaling_, 4),
                           last.weight,
                           last.bias});
}

at::Tensor SamPromptEncoder::grid() const {
  const at::Tensor places =
      (at::arange(side_, frequencies_.options()) + 0.5) / static_cast<double>(side_);
  const at::Tensor x = places.unsqueeze(0).expand({side_, side_});
  return encoded(at::stack({x, x.t()}, -1)).movedim(-1, 0).unsqueeze(0);
}

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

SamMaskDecoder::SamMaskDecoder(int64_t features, const SamDecoderOptions& options) {
  const auto transformer = put<torch::nn::Module>(*this, "transformer");
  blocks_ = register_list(*transformer, "layers", options.decoder_depth, [&](int64_t i) {
    return std::make_shared<TwoWayBlock>(
        features, options.decoder_num_heads, options.decoder_mlp_dim, i == 0);
  });
  last_ = transformer->register_module(
      "final_attn_token_to_image",
      std::make_shared<SamAttention>(features, features / 2, options.decoder_num_heads));
  last_norm_ =
      transformer->register_module("norm_final_attn", std::make_shared<LayerNorm>(features));
  const int64_t masks = options.num_multimask_outputs + 1;
  quality_token_ = put_embedding(*this, "iou_token", 1, features);
  mask_tokens_ = put_embedding(*this, "mask_tokens", masks, features);
  upscaling_ = {put<Conv>(*this, "output_upscaling.0", features, features / 4, twofold(true)),
                put<ChannelNorm>(*this, "output_upscaling.1", features / 4),
                put<Gelu>(*this, "output_upscaling.2"),
                put<Conv>(*this, "output_upscaling.3", features / 4, features / 8, twofold(true)),
                put<Gelu>(*this, "output_upscaling.4")};
  mask_mlps_ = register_list(*this, "output_hypernetworks_mlps", masks, [&](int64_t) {
    return std::make_shared<LayersMlp>(features, features, features / 8, 3);
  });
  quality_mlp_ = put<LayersMlp>(*this,
                                "iou_prediction_head",
                                features,
                                options.iou_head_hidden_dim,
                                masks,
                                options.iou_head_depth);
}

at::Tensor SamMaskDecoder::attend(ImageTokens& image, int64_t objects, const at::Tensor& sparse) {
  const at::Tensor own = at::cat({quality_token_, mask_tokens_});
  const at::Tensor places = at::cat({own.unsqueeze(0).expand({objects, -1, -1}), sparse}, 1);
  at::Tensor tokens = places;
  for (const auto& block : blocks_) block->run(tokens, places, image);
  return call(*last_norm_, tokens + image.seen_by(*last_, tokens + places));
}

at::Tensor SamMaskDecoder::factors(const at::Tensor& tokens, int64_t masks) {
  std::vector<at::Tensor> factors;
  for (int64_t k = 0; k < masks; ++k)
    factors.push_back(call(*mask_mlps_[static_cast<std::size_t>(k)], tokens.select(1, 1 + k)));
  return at::stack(factors, 1);
}

PromptedMasks SamMaskDecoder::forward(const at::Tensor& embeddings,
                                      const at::Tensor& grid,
                                      const at::Tensor& sparse,
                                      const at::Tensor& dense,
                                      bool all) {
  PlainImageTokens image(embeddings + dense, grid);
  const at::Tensor tokens = attend(image, embeddings.size(0), sparse);
  at::Tensor pixels = image.image();
  for (const auto& layer : upscaling_) pixels = call(*layer, pixels);
  const int64_t masks = all ? mask_tokens_.size(0) : 1;
  return {at::matmul(factors(tokens, masks), pixels.flatten(2))
              .unflatten(2, {pixels.size(2), pixels.size(3)}),
          call(*quality_mlp_, tokens.select(1, 0)).slice(1, 0, masks)};
}

PromptedMasks SamMaskDecoder::forward_fused(const at::Tensor& image_tokens,
                                            const at::Tensor& grid,
                                            const at::Tensor& sparse,
                                            bool all) {
  FusedImageTokens image(image_tokens, grid);
  const at::Tensor tokens = attend(image, image_tokens.size(0), sparse);
  const int64_t masks = all ? mask_tokens_.size(0) : 1;
  const Conv &first = conv_at(upscaling_, 0), &second = conv_at(upscaling_, 3);
  return {ops::paint_masks(
              image.tokens(),
              grid.size(2),
              {first.weight, first.bias, norm_at(upscaling_, 1), second.weight, second.bias},
              factors(tokens, masks)),
          call(*quality_mlp_, tokens.select(1, 0)).slice(1, 0, masks)};
}

}  // namespace cytra::nn
