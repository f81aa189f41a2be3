// HieraMAE: a masked autoencoder that attends inside of mask units first, which shrink, and then
// over all of them (arXiv:2306.00989). Arguments, parameter names and outputs follow
// cyto_dl.nn.vits.mae.HieraMAE.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/blocks/image_model.h"
#include "nn/blocks/masked_autoencoder.h"

namespace cytra::nn {
namespace {

/// (N,U,T,F) with T = `grid` positions -> the same in blocks of `stride` each: (N,U,T',S,F).
at::Tensor strided(const at::Tensor& x, const Sizes& grid, const Sizes& stride) {
  Sizes split;
  const auto dims = std::ssize(grid);
  Sizes order{0, 1}, inside;
  for (int64_t d = 0; d < dims; ++d) {
    const auto at = static_cast<std::size_t>(d);
    split.insert(split.end(), {grid[at] / stride[at], stride[at]});
    order.push_back(2 + 2 * d);
    inside.push_back(3 + 2 * d);
  }
  order.insert(order.end(), inside.begin(), inside.end());
  order.push_back(2 + 2 * dims);
  return x.unflatten(2, split).permute(order).flatten(2 + dims, 1 + 2 * dims).flatten(2, 1 + dims);
}

struct HieraStage {
  int64_t repeat = 1, num_heads = 1;
  Sizes q_stride{1};
  bool self_attention = false;
  void visit(auto& v) {
    v("repeat", repeat, "blocks", 1, 1000);
    v("num_heads", num_heads, "heads of their attention", 1, 1e4);
    v("q_stride", q_stride, "the last block merges so many tokens per dimension", 1, 1000);
    v("self_attention", self_attention, "over all tokens; the last stage");
  }
};

/// Attention inside of each unit, whose tokens merge by `stride`.
struct HieraBlock final : torch::nn::Module {
  HieraBlock(int64_t in, int64_t out, int64_t heads, const Sizes& grid, const Sizes& stride)
      : grid_(grid),
        stride_(stride),
        heads_(heads),
        merges_(product(stride) > 1),
        norm1_(put<LayerNorm>(*this, "norm1", in)),
        norm2_(put<LayerNorm>(*this, "norm2", out)),
        mlp_(put<Mlp>(*this, "mlp", kTimmBlock, out, 4 * out)),
        qkv_(put<Linear>(*this, "attn.qkv", in, 3 * out, false)),
        output_(put<Linear>(*this, "attn.proj", out, out)) {
    if (merges_ || in != out) proj_ = put<Linear>(*this, "proj.1", in, out);
  }
  /// (N,U,T,in) -> (N,U,T',out)
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor normed = call(*norm1_, x);
    at::Tensor y = normed;
    if (merges_) y = strided(y, grid_, stride_).mean(3);
    if (proj_) y = call(*proj_, y);
    // Features are ordered as (head's features, heads, q k v), as in the original.
    const auto parts = call(*qkv_, normed).unflatten(-1, {-1, heads_, 3}).unbind(-1);
    at::Tensor query = parts[0].flatten(3);
    if (merges_) query = strided(query, grid_, stride_).amax(3);
    const auto by_head = [&](const at::Tensor& part) {  // (N * U,heads,T,features)
      return part.unflatten(-1, {-1, heads_}).flatten(0, 1).permute({0, 3, 1, 2});
    };
    const at::Tensor attended =
        attend(by_head(query), by_head(parts[1].flatten(3)), by_head(parts[2].flatten(3)));
    y = y + call(*output_, attended.unflatten(0, {x.size(0), x.size(1)}));
    return y + call(*mlp_, call(*norm2_, y));
  }

 private:
  Sizes grid_, stride_;
  int64_t heads_;
  bool merges_;
  std::shared_ptr<LayerNorm> norm1_, norm2_;
  std::shared_ptr<Mlp> mlp_;
  std::shared_ptr<Linear> qkv_, output_, proj_;
};

class HieraMAE final : public FixedSizeModel {
 public:
  struct Options : ModelOptions, MaeOptions, MaeDecoderOptions {
    std::vector<HieraStage> architecture;
    Sizes num_mask_units{8};
    int64_t emb_dim = 64;
    double mask_ratio = 0.75;
    void visit(auto& v) {
      MaeOptions::visit(v);
      v("architecture",
        architecture,
        "stages: attention in mask units, each with twice the features, "
        "the last one with self_attention: true over all");
      v("num_mask_units",
        num_mask_units,
        "groups of patches per dimension that are hidden together");
      v("emb_dim", emb_dim, "features of a token in the first stage", 1, 1e5);
      MaeDecoderOptions::visit(v);
      v("mask_ratio", mask_ratio, "share of mask units that are hidden", 0, 1);
      ModelOptions::visit(v);
    }
    void check() {
      MaeOptions::check();
      MaeDecoderOptions::check();
      num_mask_units = per_dimension(num_mask_units, spatial_dims, "num_mask_units");
      int64_t blocks = 0;
      for (const HieraStage& stage : architecture)
        blocks += stage.self_attention ? 0 : stage.repeat;
      if (blocks < 2 || !architecture.back().self_attention)
        throw ConfigError(
            "HieraMAE: architecture: expected at least two blocks, and a last stage with "
            "self_attention: true");
      Sizes merged(num_mask_units.size(), 1);
      for (std::size_t s = 0; s < architecture.size(); ++s) {
        HieraStage& stage = architecture[s];
        stage.q_stride = per_dimension(stage.q_stride, spatial_dims, "q_stride");
        if (stage.self_attention != (s + 1 == architecture.size()))
          throw ConfigError("HieraMAE: architecture: self_attention is the last stage's");
        for (std::size_t d = 0; d < merged.size(); ++d) merged[d] *= stage.q_stride[d];
        if ((emb_dim << s) % stage.num_heads != 0) {
          throw ConfigError("HieraMAE: architecture: {} features are no multiple of num_heads={}",
                            emb_dim << s,
                            stage.num_heads);
        }
      }
      for (std::size_t d = 0; d < merged.size(); ++d) {
        const int64_t patches = (*num_patches)[d];
        if (patches % num_mask_units[d] != 0 || patches / num_mask_units[d] % merged[d] != 0) {
          throw ConfigError(
              "HieraMAE: num_mask_units={}: {} patches do not make whole units that q_stride ({} "
              "in all) divides",
              num_mask_units[d],
              patches,
              merged[d]);
        }
      }
      const int64_t units = product(num_mask_units);
      const int64_t visible = UnitMask::draw(1, units, mask_ratio, false, at::kCPU).visible;
      if (visible < 1 || visible == units) {
        throw ConfigError(
            "mask_ratio={}: {} of {} mask units are visible, expected at least one of each",
            mask_ratio,
            visible,
            units);
      }
    }
  };
  explicit HieraMAE(const Options& options)
      : FixedSizeModel(options, *options.img_size, options.input_channels, options.input_channels),
        options_(options),
        unit_(options.num_mask_units.size()) {
    Sizes patches = *options.num_patches;  // of a unit
    for (std::size_t d = 0; d < unit_.size(); ++d) {
      patches[d] /= options.num_mask_units[d];
      unit_[d] = patches[d] * options.patch_size[d];
    }
    unit_patches_ = patches;
    auto encoder = put<Module>(*this, "_encoder");
    auto patchify = encoder->register_module("patchify", std::make_shared<Module>());
    positions_ =
        register_embedding(*patchify,
                           "pos_embedding",
                           {1, product(options.num_mask_units), product(patches), options.emb_dim});
    conv_ = patchify->register_module(
        "conv",
        patch_convolution(
            options.input_channels, options.emb_dim, options.patch_size, options.context_pixels));
    const std::size_t stages = options.architecture.size() - 1;
    const int64_t last = options.emb_dim << (stages + 1);
    for (std::size_t s = 0; s < stages; ++s) {
      const HieraStage& stage = options.architecture[s];
      const int64_t in = options.emb_dim << s;
      for (int64_t b = 0; b < stage.repeat; ++b) {
        const bool merges = b + 1 == stage.repeat;
        blocks_.push_back(
            put(*encoder,
                fmt::format("mask_unit_transformer.{}", blocks_.size()),
                std::make_shared<HieraBlock>(in,
                                             merges ? 2 * in : in,
                                             stage.num_heads,
                                             patches,
                                             merges ? stage.q_stride : Sizes(patches.size(), 1))));
      }
      // The tokens of a stage before its last block, merged to one for each unit. As in the
      // original, a first stage of one block has none.
      const auto before = std::ssize(blocks_) - 2;
      merged_[before] = {put(*encoder,
                             fmt::format("spatial_mergers.block_{}.model.1", before),
                             patch_convolution(in, last, patches, Sizes(patches.size(), 0), false)),
                         patches};
      for (std::size_t d = 0; d < patches.size(); ++d) patches[d] /= stage.q_stride[d];
    }
    const HieraStage& all = options.architecture.back();
    attending_ = register_list(*encoder, "self_attention_transformer", all.repeat, [&](int64_t) {
      return std::make_shared<TransformerBlock>(kTimmBlock, last, all.num_heads, 4 * last);
    });
    norm_ = encoder->register_module("layer_norm", std::make_shared<LayerNorm>(last));
    decoder_ = put<MaeDecoder>(*this,
                               "_decoder",
                               options,
                               options.num_mask_units,
                               unit_,
                               last,
                               options.input_channels,
                               /*has_class_token=*/false,
                               /*learnable_positions=*/true);
  }

  /// (N,C,[D,]H,W) -> the reconstruction
  at::Tensor forward(const at::Tensor& image) override { return forward_all(image).front(); }
  /// The reconstruction and the mask, as in nn/models/mae.cpp.
  std::vector<at::Tensor> forward_all(const at::Tensor& image) override {
    const Sizes& grid = options_.num_mask_units;
    const UnitMask mask = UnitMask::draw(
        image.size(0), product(grid), options_.mask_ratio, is_training(), image.device());
    const at::Tensor hidden = mask.hidden(grid, unit_);
    at::Tensor x = call(*conv_, image * hidden.logical_not()).movedim(1, -1);
    x = strided(x.flatten(1, -2).unsqueeze(1), *options_.num_patches, unit_patches_).squeeze(1);
    x = tokens_at(x + positions_, mask.order.narrow(1, 0, mask.visible));
    at::Tensor sum;
    for (std::size_t b = 0; b + 1 < blocks_.size();
         ++b) {  // nobody asks for what the last one gives
      x = run(blocks_[b], x);
      const auto found = merged_.find(static_cast<int64_t>(b));
      if (found == merged_.end()) continue;
      const auto& [merger, patches] = found->second;
      const at::Tensor units = x.flatten(0, 1).transpose(1, 2).unflatten(2, patches);
      const at::Tensor merged =  // (N,U,E)
          call(*merger, units).flatten(1).unflatten(0, {x.size(0), x.size(1)});
      sum = sum.defined() ? sum + merged : merged;
    }
    x = sum;
    for (const auto& block : attending_) x = run(block, x);
    const at::Tensor made = call(*decoder_, call(*norm_, x), mask, settings.gradient_checkpointing);
    return {is_training() ? made : at::where(hidden, made, image),
            hidden.to(made.scalar_type()).expand_as(made.narrow(1, 0, 1))};
  }

 private:
  Options options_;
  Sizes unit_, unit_patches_;  // of a mask unit: its sides in voxels and in patches
  at::Tensor positions_;
  std::shared_ptr<Conv> conv_;
  std::vector<std::shared_ptr<HieraBlock>> blocks_;
  /// What makes one token of the tokens of a unit, and their number per dimension, by block.
  std::map<int64_t, std::pair<std::shared_ptr<Conv>, Sizes>> merged_;
  std::vector<std::shared_ptr<TransformerBlock>> attending_;
  std::shared_ptr<LayerNorm> norm_;
  std::shared_ptr<MaeDecoder> decoder_;
};
CYTRA_REGISTER(Model, HieraMAE, "HieraMAE");

}  // namespace
}  // namespace cytra::nn
