#pragma once
// Encoders and decoders of masked autoencoders (arXiv:2111.06377): MAE, HieraMAE and Seg_ViT use
// them. Parameter names and results are those of cyto_dl.nn.vits.
#include "nn/blocks/transformer.h"

namespace cytra::nn {

int64_t product(const Sizes& sizes);

/// Which units (patches, or groups of them) of each image are hidden, at random. Units have an
/// order of their own for each image, the visible ones first.
struct UnitMask {
  at::Tensor order, place;  // (N,T), or (1,T) for all images: the unit at each place of the order,
                            // and the other way
  int64_t visible = 0;      // units that are seen

  /// `at_random`: by torch's generator; else the same units are hidden in every image, always.
  static UnitMask draw(int64_t images, int64_t units, double ratio, bool at_random, c10::Device);
  /// (N or 1,1,[D,]H,W) bool: voxels of hidden units, `grid` of them of `size` voxels.
  at::Tensor hidden(const Sizes& grid, const Sizes& size) const;
};

/// (N,T,...) -> (N,S,...): the tokens that `indices` (N or 1,S) names.
at::Tensor tokens_at(const at::Tensor& tokens, const at::Tensor& indices);
/// (N,T,C * voxels of a patch) -> (N,C,[D,]H,W)
at::Tensor image_of(const at::Tensor& patches, const Sizes& grid, const Sizes& patch_size);
/// (T,1,E): sines and cosines of the place in each dimension. Source: positional_encodings of
/// github.com/tatp22/multidim-positional-encoding.
at::Tensor wave_positions(const Sizes& grid, int64_t features);

struct MaeOptions {
  int64_t spatial_dims = 3;
  std::optional<Sizes> img_size, num_patches;
  Sizes patch_size{4}, context_pixels{0};
  int64_t input_channels = 1;
  void visit(auto& v) {
    v("spatial_dims", spatial_dims, "2 or 3", 2, 3);
    v("img_size", img_size, "sides of the image, the only ones it takes; null: by num_patches");
    v("num_patches", num_patches, "patches per dimension; null: img_size / patch_size");
    v("patch_size", patch_size, "sides of a patch, each a token; one number or one each");
    v("context_pixels",
      context_pixels,
      "voxels around a patch that its embedding sees, too",
      0,
      1000);
    v("input_channels", input_channels, "image channels C", 1, 1e5);
  }
  /// Gives all of them one number per dimension. Throws: ConfigError for sizes that do not fit.
  void check();
};

/// cyto_dl.nn.vits.encoder.MAE_Encoder. `intermediates` > 0: this number of weighted sums of the
/// blocks' outputs, in place of the last output.
struct MaeEncoder : torch::nn::Module {
  MaeEncoder(const MaeOptions& options,
             int64_t features,
             int64_t layers,
             int64_t heads,
             int64_t intermediates);
  /// -> (N,1 + T,E), a class token first, or with intermediates (S,N,1 + T,E). `mask`: only its
  /// visible units are tokens, in its order; null: all. `recompute`: gradient_checkpointing.
  at::Tensor forward(const at::Tensor& image, const UnitMask* mask, bool recompute);
  /// Freezes all but the weights of the sums.
  void freeze();

 private:
  struct Patchify;
  struct Weigher;
  at::Tensor class_token_;
  std::shared_ptr<Patchify> patchify_;
  std::vector<std::shared_ptr<TransformerBlock>> blocks_;
  std::shared_ptr<LayerNorm> norm_;
  std::shared_ptr<Weigher> weigher_;
};

struct MaeDecoderOptions {
  static constexpr const char* kPurpose =
      "hidden patches; expected task=mae (experiment=im2im/mae), or for masks model=seg_vit";
  int64_t decoder_layer = 4, decoder_head = 8, decoder_dim = 192;
  bool use_crossmae = false;
  void visit(auto& v) {
    v("decoder_layer", decoder_layer, "transformer blocks of the decoder", 1, 1000);
    v("decoder_head", decoder_head, "heads of its attention; they share decoder_dim", 1, 1e4);
    v("decoder_dim", decoder_dim, "features of a token in the decoder", 1, 1e5);
    v("use_crossmae", use_crossmae, "hidden patches ask the visible ones alone: arXiv:2401.14391");
  }
  void check() const;
};

/// cyto_dl.nn.vits.decoder.MAE_Decoder, with use_crossmae CrossMAE_Decoder.
struct MaeDecoder : torch::nn::Module {
  /// The units' `grid` and `size` in voxels. `has_class_token`: the positions have one, too.
  MaeDecoder(const MaeDecoderOptions& options,
             const Sizes& grid,
             const Sizes& size,
             int64_t features,
             int64_t channels,
             bool has_class_token,
             bool learnable_positions);
  /// tokens (N,...,E) of the visible units -> (N,C,[D,]H,W)
  at::Tensor forward(const at::Tensor& tokens, const UnitMask& mask, bool recompute);

 private:
  struct CrossBlock;
  Sizes grid_, size_;
  bool has_class_token_;
  std::shared_ptr<LayerNorm> projection_norm_, norm_;
  std::shared_ptr<Linear> projection_, head_;
  at::Tensor mask_token_, positions_;
  std::vector<std::shared_ptr<TransformerBlock>> blocks_;
  std::vector<std::shared_ptr<CrossBlock>> cross_blocks_;
};

}  // namespace cytra::nn
