// Seg_ViT: the encoder of a masked autoencoder, then a small U-Net decoder whose skips are its
// tokens. Arguments, parameter names and outputs follow cyto_dl.nn.vits.Seg_ViT with an
// upsample_factor of 1.
#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "io/weights/torch_file.h"
#include "nn/blocks/dynunet_block.h"
#include "nn/blocks/image_model.h"
#include "nn/blocks/masked_autoencoder.h"
#include "nn/weights.h"

namespace cytra::nn {
namespace {

/// Tokens (N,T,E) -> (N,C,[D,]H,W), `scale` positions per token and dimension.
struct EncodedSkip final : Layer {
  EncodedSkip(int64_t features, int64_t filters, const Sizes& grid, int64_t scale)
      : grid_(grid),
        scale_(grid.size(), scale),
        linear_(put<Linear>(*this, "patch2img.0", features, filters)),
        norm_(put<LayerNorm>(*this, "patch2img.1", filters)) {}
  at::Tensor forward(const at::Tensor& tokens) override {
    return image_of(call(*norm_, call(*linear_, tokens)), grid_, scale_);
  }

 private:
  Sizes grid_, scale_;
  std::shared_ptr<Linear> linear_;
  std::shared_ptr<LayerNorm> norm_;
};

/// Convolutions, then twice the sides; in the last level the other way round, and as large as the
/// image.
struct SkipUpsampling final : Layer {
  SkipUpsampling(int64_t in, int64_t out, const UnetBlockOptions& block)
      : block_(put<UnetBlock>(*this, "0", in, out, block)) {}
  SkipUpsampling(
      int64_t in, int64_t out, int64_t classes, const Sizes& size, const UnetBlockOptions& block)
      : size_(size) {
    if (in != out) {
      const ConvOptions one{Sizes(size.size(), 1), Sizes(size.size(), 1)};
      before_ = put<Conv>(*this, "0.preconv", in, out, one);
    }
    block_ = put<UnetBlock>(*this, "1", out, out, block);
    output_ = put<UnetOutBlock>(*this, "2", out, classes, block);
  }
  at::Tensor forward(const at::Tensor& x) override {
    if (output_)
      return call(*output_, call(*block_, resized(before_ ? call(*before_, x) : x, size_)));
    Sizes doubled = x.sizes().slice(2).vec();
    for (int64_t& side : doubled) side *= 2;
    return resized(call(*block_, x), doubled);
  }

 private:
  static at::Tensor resized(const at::Tensor& x, const Sizes& size) {
    return size.size() == 2 ? at::upsample_bilinear2d(x, size, /*align_corners=*/true)
                            : at::upsample_trilinear3d(x, size, /*align_corners=*/true);
  }
  Sizes size_;  // of the image; empty: not the last level
  std::shared_ptr<Conv> before_;
  std::shared_ptr<UnetBlock> block_;
  std::shared_ptr<UnetOutBlock> output_;
};

class SegVit final : public FixedSizeModel {
 public:
  struct Options : ModelOptions, MaeOptions {
    int64_t out_channels = 1, emb_dim = 768, encoder_layer = 12, encoder_head = 8,
            n_intermediate_weights = -1, n_decoder_filters = 64;
    std::optional<std::string> encoder_ckpt;
    bool freeze_encoder = true;
    int64_t levels = 0;  // of the decoder without the last; follows from patch_size
    void visit(auto& v) {
      MaeOptions::visit(v);
      v("out_channels", out_channels, "logits K", 1, 1e5);
      v("emb_dim", emb_dim, "features of a token", 1, 1e5);
      v("encoder_layer", encoder_layer, "transformer blocks", 1, 1000);
      v("encoder_head", encoder_head, "heads of their attention; they share emb_dim", 1, 1e4);
      v("n_intermediate_weights",
        n_intermediate_weights,
        "weighted sums of the blocks' tokens, one for each level of the decoder; -1: the last "
        "block's tokens for all",
        -1,
        100);
      v("n_decoder_filters", n_decoder_filters, "features of the decoder's coarsest level", 1, 1e6);
      v("encoder_ckpt",
        encoder_ckpt,
        "a checkpoint of a masked autoencoder to begin with; null: none");
      v("freeze_encoder", freeze_encoder, "train only the decoder");
      ModelOptions::visit(v);
    }
    void check() {
      MaeOptions::check();
      const int64_t smallest = *std::ranges::min_element(patch_size);
      while (smallest >> (levels + 2) > 0) ++levels;
      if (levels == 0) throw ConfigError("Seg_ViT: patch_size: expected sides of 4 and more");
      if (n_intermediate_weights > 0 && n_intermediate_weights != levels + 1) {
        throw ConfigError(
            "Seg_ViT: n_intermediate_weights={}: patches of {} mean {} levels: expected that or -1",
            n_intermediate_weights,
            smallest,
            levels + 1);
      }
      const int64_t parts = int64_t{1} << (levels * spatial_dims);
      if (n_decoder_filters % parts != 0) {
        throw ConfigError(
            "Seg_ViT: n_decoder_filters={}: expected a multiple of {} for patches of {}",
            n_decoder_filters,
            parts,
            smallest);
      }
    }
  };
  explicit SegVit(const Options& options)
      : FixedSizeModel(options, *options.img_size, options.input_channels, options.out_channels),
        options_(options),
        encoder_(put<MaeEncoder>(*this,
                                 "encoder",
                                 options,
                                 options.emb_dim,
                                 options.encoder_layer,
                                 options.encoder_head,
                                 options.n_intermediate_weights)) {
    if (options.encoder_ckpt) load_encoder(*options.encoder_ckpt);
    if (options.freeze_encoder) encoder_->freeze();
    const Sizes three(options.patch_size.size(), 3), one(three.size(), 1);
    const UnetBlockOptions block{three, one, {"instance"}, {"leakyrelu"}, 0, true};
    int64_t filters = options.n_decoder_filters;
    for (int64_t level = 0; level <= options.levels; ++level) {
      const std::string name = fmt::format("decoder.upsampling.layer_{}", level);
      skips_.push_back(put<EncodedSkip>(*this,
                                        name + ".skip",
                                        options.emb_dim,
                                        options.n_decoder_filters,
                                        *options.num_patches,
                                        int64_t{1} << level));
      const int64_t of_skip = options.n_decoder_filters >> (level * options.spatial_dims);
      const int64_t in = level == 0 ? filters : filters + of_skip, out = filters / 2;
      upsamplings_.push_back(put(
          *this,
          name + ".upsample",
          level < options.levels ? std::make_shared<SkipUpsampling>(in, out, block)
                                 : std::make_shared<SkipUpsampling>(
                                       in, out, options.out_channels, *options.img_size, block)));
      filters = out;
    }
  }

  at::Tensor forward(const at::Tensor& image) override {
    const UnitMask* const nothing_hidden = nullptr;
    const at::Tensor features =
        call(*encoder_, image, nothing_hidden, settings.gradient_checkpointing);
    at::Tensor x;
    for (std::size_t level = 0; level < skips_.size(); ++level) {
      const at::Tensor tokens =
          features.dim() == 4 ? features[static_cast<int64_t>(level)] : features;
      const at::Tensor skip = call(*skips_[level], tokens.slice(1, 1));  // no class token
      x = run(upsamplings_[level], x.defined() ? at::cat({skip, x}, 1) : skip);
    }
    return x;
  }

 private:
  /// The shapes of weights do not show how many heads they were learned with.
  void expect_heads(const std::string& path,
                    const std::map<std::string, std::string>& metadata) const {
    const auto text = metadata.find("config");
    if (text == metadata.end()) return;
    const config::Node config = config::parse_yaml(text->second, path);
    const config::Node* heads = config.find("task.model.encoder_head");
    if (heads == nullptr || heads->as<int64_t>() == options_.encoder_head) return;
    throw DataError(
        "{}: encoder_head is {}, expected {}", path, heads->as<int64_t>(), options_.encoder_head);
  }
  /// The encoder's weights of a checkpoint: ours, or CytoDL's. Sums of tokens begin anew. Throws:
  /// DataError that names the options which differ.
  void load_encoder(const std::string& path) {
    const auto load = [&](const io::TensorViews& tensors) {
      io::TensorViews own;
      for (const std::string front : {"_encoder.", "model._encoder.", "backbone._encoder."}) {
        for (const auto& [name, view] : tensors) {
          if (name.starts_with(front) && name.find("intermediate_weighter") == std::string::npos)
            own[name.substr(front.size())] = view;
        }
      }
      load_state(
          *encoder_, own, path, "", options_.n_intermediate_weights <= 0 ? Fit::all : Fit::names);
    };
    try {
      if (io::is_torch_file(path)) {
        const io::TorchFile file(path);
        load(file.tensors());
      } else {
        const io::SafetensorsFile file(path);
        expect_heads(path, file.metadata());
        load(file.tensors());
      }
    } catch (const DataError& error) {
      throw DataError(
          "model.encoder_ckpt: {}; spatial_dims, img_size, patch_size, emb_dim, encoder_layer, "
          "encoder_head, input_channels and context_pixels must be those that it was pretrained "
          "with",
          error.what());
    }
  }
  Options options_;
  std::shared_ptr<MaeEncoder> encoder_;
  std::vector<std::shared_ptr<EncodedSkip>> skips_;
  std::vector<std::shared_ptr<SkipUpsampling>> upsamplings_;
};
CYTRA_REGISTER(Model, SegVit, "Seg_ViT", "SegViT");

}  // namespace
}  // namespace cytra::nn
