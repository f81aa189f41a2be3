// The parts of masked autoencoders (arXiv:2111.06377, arXiv:2401.14391). Parameters and results
// are those of cyto_dl.nn.vits, which has its tokens as (T,N,E).
#include "nn/blocks/masked_autoencoder.h"

#include <functional>
#include <numeric>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TracerMode.h>
#include <fmt/format.h>

#include "base/error.h"

namespace cytra::nn {
namespace {

constexpr int64_t kMlpRatio = 4;
constexpr uint64_t kFixedMask = 16;  // seeds the mask of evaluation

void expect_heads(const char* features_key, int64_t features, const char* key, int64_t heads) {
  if (features % heads == 0) return;
  throw ConfigError("{}={}: expected a multiple of {}={}", features_key, features, key, heads);
}

at::Tensor run_block(const std::shared_ptr<TransformerBlock>& block,
                     const at::Tensor& x,
                     bool recompute) {
  return recompute ? checkpoint(block, x) : call(*block, x);
}

}  // namespace

int64_t product(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

UnitMask UnitMask::draw(
    int64_t images, int64_t units, double ratio, bool at_random, c10::Device device) {
  const at::tracer::impl::NoTracerDispatchMode untraced;  // it depends on no image
  UnitMask mask;
  mask.visible = static_cast<int64_t>(static_cast<double>(units) * (1 - ratio));
  const at::Tensor chances = at_random ? at::rand({images, units}, at::TensorOptions(device))
                                       : at::rand({1, units},
                                                  at::detail::createCPUGenerator(kFixedMask),
                                                  at::TensorOptions(at::kFloat))
                                             .to(device);
  mask.order = chances.argsort(int64_t{1});
  mask.place = mask.order.argsort(int64_t{1});
  return mask;
}

at::Tensor UnitMask::hidden(const Sizes& grid, const Sizes& size) const {
  at::Tensor image = place.ge(visible).unflatten(1, grid).unsqueeze(1);
  for (std::size_t d = 0; d < size.size(); ++d)
    image = image.repeat_interleave(size[d], static_cast<int64_t>(d) + 2);
  return image;
}

at::Tensor tokens_at(const at::Tensor& tokens, const at::Tensor& indices) {
  if (indices.size(0) == 1) return tokens.index_select(1, indices[0]);
  Sizes shape = tokens.sizes().vec(), ones(shape.size(), 1);
  shape[1] = -1;
  ones[0] = indices.size(0);
  ones[1] = indices.size(1);
  return tokens.gather(1, indices.view(ones).expand({shape}));
}

at::Tensor image_of(const at::Tensor& patches, const Sizes& grid, const Sizes& patch_size) {
  const auto dims = std::ssize(grid);
  Sizes inside{-1};
  inside.insert(inside.end(), patch_size.begin(), patch_size.end());
  Sizes sides{patches.size(0), -1}, places{0, 1 + dims};
  for (int64_t d = 0; d < dims; ++d) {
    const auto at = static_cast<std::size_t>(d);
    sides.push_back(grid[at] * patch_size[at]);
    places.insert(places.end(), {1 + d, 2 + dims + d});
  }
  return patches.unflatten(2, inside).unflatten(1, grid).permute(places).reshape(sides);
}

at::Tensor wave_positions(const Sizes& grid, int64_t features) {
  const auto dims = std::ssize(grid);
  const int64_t per_axis = (features + 2 * dims - 1) / (2 * dims) * 2;
  const at::Tensor rates = at::pow(10000.0, -at::arange(0, per_axis, 2, at::kFloat) / per_axis);
  std::vector<at::Tensor> axes, parts;
  for (const int64_t side : grid) axes.push_back(at::arange(side, at::kFloat));
  for (const at::Tensor& place : at::meshgrid(axes, "ij")) {
    const at::Tensor angle = at::outer(place.flatten(), rates);
    parts.push_back(at::stack({angle.sin(), angle.cos()}, -1).flatten(1));
  }
  return at::cat(parts, 1).narrow(1, 0, features).unsqueeze(1);
}

void MaeOptions::check() {
  patch_size = per_dimension(patch_size, spatial_dims, "patch_size");
  if (num_patches) num_patches = per_dimension(*num_patches, spatial_dims, "num_patches");
  if (img_size) img_size = per_dimension(*img_size, spatial_dims, "img_size");
  context_pixels.resize(patch_size.size(), context_pixels.at(0));
  if (!img_size && !num_patches)
    throw ConfigError("img_size: expected the image's sides, or num_patches");
  Sizes sides, patches;
  for (std::size_t d = 0; d < patch_size.size(); ++d) {
    sides.push_back(num_patches ? (*num_patches)[d] * patch_size[d] : (*img_size)[d]);
    patches.push_back(sides[d] / patch_size[d]);
    if (sides[d] % patch_size[d] != 0 || (img_size && sides[d] != (*img_size)[d])) {
      throw ConfigError("img_size: {} is not num_patches times patch_size={}{}",
                        (*img_size)[d],
                        patch_size[d],
                        num_patches ? fmt::format(" ({})", sides[d]) : ": choose a multiple of it");
    }
  }
  img_size = sides;
  num_patches = patches;
}

/// (N,C,[D,]H,W) -> tokens of the visible patches (N,T,E)
struct MaeEncoder::Patchify : torch::nn::Module {
  Patchify(const MaeOptions& options, int64_t features)
      : grid_(*options.num_patches),
        patch_size_(options.patch_size),
        has_context_(Sizes(patch_size_.size(), 0) != options.context_pixels),
        positions_(register_embedding(*this, "pos_embedding", {product(grid_), 1, features})) {
    conv_ = register_module(
        "conv",
        patch_convolution(options.input_channels, features, patch_size_, options.context_pixels));
  }
  at::Tensor forward(const at::Tensor& image, const UnitMask* mask) {
    // A patch without context sees no pixels of hidden patches.
    const at::Tensor seen = mask != nullptr && has_context_
                                ? image * mask->hidden(grid_, patch_size_).logical_not()
                                : image;
    const at::Tensor tokens =
        call(*conv_, seen).flatten(2).transpose(1, 2) + positions_.transpose(0, 1);
    return mask == nullptr ? tokens : tokens_at(tokens, mask->order.narrow(1, 0, mask->visible));
  }

 private:
  Sizes grid_, patch_size_;
  bool has_context_;
  at::Tensor positions_;
  std::shared_ptr<Conv> conv_;
};

/// Weighted sums of normalised tokens, as many as `sums`: L times (N,T,E) -> (S,N,T,E).
struct MaeEncoder::Weigher : torch::nn::Module {
  Weigher(int64_t layers, int64_t features, int64_t sums)
      : weights_(put<Linear>(*this, "weights", layers, sums)),
        norms_(register_list(*this, "norms", layers, [&](int64_t /*i*/) {
          return std::make_shared<LayerNorm>(features);
        })) {
    const at::NoGradGuard no_grad;
    weights_->weight.fill_(1.0 / static_cast<double>(layers));
    weights_->bias.zero_();
  }
  at::Tensor forward(const std::vector<at::Tensor>& tokens) {
    std::vector<at::Tensor> normed;
    for (std::size_t i = 0; i < norms_.size(); ++i) normed.push_back(call(*norms_[i], tokens[i]));
    return call(*weights_, at::stack(normed, -1)).movedim(-1, 0);
  }

 private:
  std::shared_ptr<Linear> weights_;
  std::vector<std::shared_ptr<LayerNorm>> norms_;
};

MaeEncoder::MaeEncoder(const MaeOptions& options,
                       int64_t features,
                       int64_t layers,
                       int64_t heads,
                       int64_t intermediates)
    : class_token_(register_embedding(*this, "cls_token", {1, 1, features})),
      patchify_(put<Patchify>(*this, "patchify", options, features)) {
  expect_heads("emb_dim", features, "encoder_head", heads);
  blocks_ = register_list(*this, "transformer", layers, [&](int64_t /*i*/) {
    return std::make_shared<TransformerBlock>(kTimmBlock, features, heads, kMlpRatio * features);
  });
  norm_ = put<LayerNorm>(*this, "layer_norm", features);
  if (intermediates > 0) {
    weigher_ = put<Weigher>(*this, "intermediate_weighter", layers, features, intermediates);
  }
}

at::Tensor MaeEncoder::forward(const at::Tensor& image, const UnitMask* mask, bool recompute) {
  const at::Tensor patches = call(*patchify_, image, mask);
  at::Tensor x = at::cat({class_token_.expand({image.size(0), -1, -1}), patches}, 1);
  std::vector<at::Tensor> states;  // before each block: the original weighs these
  for (const auto& block : blocks_) {
    if (weigher_) states.push_back(x);
    if (weigher_ && states.size() == blocks_.size()) break;
    x = run_block(block, x, recompute);
  }
  return call(*norm_, weigher_ ? weigher_->forward(states) : x);
}

void MaeEncoder::freeze() {
  for (const auto& entry : named_parameters())
    entry.value().set_requires_grad(entry.key().rfind("intermediate_weighter.", 0) == 0);
}

void MaeDecoderOptions::check() const {
  expect_heads("decoder_dim", decoder_dim, "decoder_head", decoder_head);
}

/// Cross-attention from hidden tokens (N,T,E) to visible ones, then an MLP.
struct MaeDecoder::CrossBlock : torch::nn::Module {
  CrossBlock(int64_t features, int64_t heads)
      : heads_(heads),
        norm1_(put<LayerNorm>(*this, "norm1", features)),
        norm2_(put<LayerNorm>(*this, "norm2", features)),
        mlp_(put<Mlp>(*this, "mlp", kTimmBlock, features, kMlpRatio * features)) {
    const auto attention = put<torch::nn::Module>(*this, "cross_attn");
    query_ = attention->register_module("q", std::make_shared<Linear>(features, features, false));
    key_value_ =
        attention->register_module("kv", std::make_shared<Linear>(features, 2 * features, false));
    output_ = attention->register_module("proj", std::make_shared<Linear>(features, features));
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& visible) {
    const auto parts = call(*key_value_, visible).chunk(2, -1);
    const at::Tensor attended = attend(split_heads(call(*query_, call(*norm1_, x)), heads_),
                                       split_heads(parts[0], heads_),
                                       split_heads(parts[1], heads_));
    const at::Tensor y = x + call(*output_, attended);
    return y + call(*mlp_, call(*norm2_, y));
  }

 private:
  int64_t heads_;
  std::shared_ptr<LayerNorm> norm1_, norm2_;
  std::shared_ptr<Mlp> mlp_;
  std::shared_ptr<Linear> query_, key_value_, output_;
};

MaeDecoder::MaeDecoder(const MaeDecoderOptions& options,
                       const Sizes& grid,
                       const Sizes& size,
                       int64_t features,
                       int64_t channels,
                       bool has_class_token,
                       bool learnable_positions)
    : grid_(grid),
      size_(size),
      has_class_token_(has_class_token),
      projection_norm_(put<LayerNorm>(*this, "projection_norm", options.decoder_dim)),
      norm_(put<LayerNorm>(*this, "decoder_norm", options.decoder_dim)),
      projection_(put<Linear>(*this, "projection", features, options.decoder_dim)),
      head_(put<Linear>(*this, "head", options.decoder_dim, product(size) * channels)),
      mask_token_(register_embedding(*this, "mask_token", {1, 1, options.decoder_dim})) {
  const int64_t width = options.decoder_dim, heads = options.decoder_head;
  if (learnable_positions) {
    positions_ = register_embedding(
        *this, "pos_embedding", {product(grid) + (has_class_token ? 1 : 0), 1, width});
  } else {
    at::Tensor waves = wave_positions(grid, width);
    if (has_class_token) waves = at::cat({at::zeros({1, 1, width}), waves});
    positions_ = register_parameter("pos_embedding", waves, /*requires_grad=*/false);
  }
  if (options.use_crossmae) {
    cross_blocks_ = register_list(*this, "transformer", options.decoder_layer, [&](int64_t /*i*/) {
      return std::make_shared<CrossBlock>(width, heads);
    });
  } else {
    blocks_ = register_list(*this, "transformer", options.decoder_layer, [&](int64_t /*i*/) {
      return std::make_shared<TransformerBlock>(kTimmBlock, width, heads, kMlpRatio * width);
    });
  }
}

at::Tensor MaeDecoder::forward(const at::Tensor& tokens, const UnitMask& mask, bool recompute) {
  const auto with_class = [this](const at::Tensor& indices) {
    return has_class_token_ ? at::constant_pad_nd(indices + 1, {1, 0}) : indices;
  };
  const at::Tensor order = with_class(mask.order), place = with_class(mask.place);
  const at::Tensor visible = call(*projection_norm_, call(*projection_, tokens));
  // The tokens are in the order of the mask, hidden ones last. With a class token whose place the
  // decoder does not know (CytoDL's MAE without use_crossmae) it counts as the first patch.
  const int64_t seen = visible.size(1), hidden = order.size(1) - seen;
  const at::Tensor all = at::cat({visible, mask_token_.expand({visible.size(0), hidden, -1})}, 1);
  at::Tensor x = tokens_at(all, place) + positions_.transpose(0, 1);
  if (cross_blocks_.empty()) {
    for (const auto& block : blocks_) x = run_block(block, x, recompute);
    return image_of(call(*head_, call(*norm_, x)), grid_, size_);
  }
  x = tokens_at(x, order);
  const at::Tensor context = x.narrow(1, 0, seen);
  x = x.narrow(1, seen, hidden);
  for (const auto& block : cross_blocks_)
    x = recompute ? checkpoint(block, x, context) : call(*block, x, context);
  const at::Tensor patches = call(*head_, call(*norm_, x));
  const at::Tensor padded =
      at::constant_pad_nd(patches, {0, 0, mask.order.size(1) - hidden, 0});  // 0 where it was seen
  return image_of(tokens_at(padded, mask.place), grid_, size_);
}

}  // namespace cytra::nn
