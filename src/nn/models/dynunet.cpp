// DynUNet, the U-Net of nnU-Net, 2D and 3D. Architecture, argument names, parameter names and
// initialisation follow monai.networks.nets.DynUNet, so weights go both ways unchanged.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/blocks/dynunet_block.h"
#include "nn/blocks/image_model.h"

namespace cytra::nn {
namespace {

class DynUNet final : public ImageModel {
 public:
  struct Options : ImageModelOptions {
    std::vector<Sizes> kernel_size, strides, upsample_kernel_size;
    std::optional<Sizes> filters = Sizes{16, 32, 64};
    double dropout = 0;
    config::Node norm_name = config::parse_yaml("[instance, {affine: true}]", "default"),
                 act_name = config::parse_yaml("[leakyrelu, {negative_slope: 0.01}]", "default");
    bool deep_supervision = false, res_block = false, trans_bias = false;
    int64_t deep_supr_num = 1;
    template <class V>
    void visit(V& v) {
      ImageModelOptions::visit(v);
      v("kernel_size",
        kernel_size,
        "kernels, per level: one number or one per dimension; null: 3 for each of filters");
      v("strides", strides, "downsampling, per level, likewise; null: 1, then 2");
      v("upsample_kernel_size",
        upsample_kernel_size,
        "upsampling, per level but the first; null: strides without the first");
      v("filters", filters, "features, per level; null: 32, 64, ... up to 512 (3D: 320)");
      v("dropout", dropout, "share of values dropped after each convolution in training", 0, 1);
      v("norm_name", norm_name, "instance, batch, [group, {num_groups: 8}] ...");
      v("act_name", act_name, "leakyrelu, relu, prelu, gelu ..., with arguments as norm_name");
      v("deep_supervision", deep_supervision, "outputs of coarser levels, too, in training");
      v("deep_supr_num", deep_supr_num, "how many coarser levels have outputs", 1, 100);
      v("res_block", res_block, "residual blocks in the encoder");
      v("trans_bias", trans_bias, "biases in the upsampling");
    }
    /// Checks the options, gives every kernel and stride one number per dimension, and every level
    /// its features.
    void check() {
      if (strides.empty()) {
        strides.assign(filters ? filters->size() : std::max<std::size_t>(3, kernel_size.size()),
                       {2});
        if (!strides.empty()) strides[0] = {1};
      }
      const std::size_t levels = strides.size();
      if (kernel_size.empty()) kernel_size.assign(levels, {3});
      if (upsample_kernel_size.empty() && levels > 1)
        upsample_kernel_size.assign(strides.begin() + 1, strides.end());
      if (!filters) {
        filters.emplace();
        for (std::size_t level = 0; level < levels; ++level) {
          filters->push_back(std::min<int64_t>(int64_t{32} << std::min<std::size_t>(level, 10),
                                               spatial_dims == 3 ? 320 : 512));
        }
      }
      if (levels < 2 || kernel_size.size() != levels || filters->size() < levels ||
          upsample_kernel_size.size() != levels - 1) {
        throw ConfigError(fmt::format(
            "DynUNet: filters, kernel_size and strides need one entry per level (>= 2), "
            "upsample_kernel_size one less; "
            "got {}, {}, {} and {}",
            filters->size(),
            kernel_size.size(),
            strides.size(),
            upsample_kernel_size.size()));
      }
      for (auto* entries : {&kernel_size, &strides, &upsample_kernel_size}) {
        for (Sizes& entry : *entries) {
          entry = per_dimension(
              entry, spatial_dims, "DynUNet: kernel_size, strides and upsample_kernel_size");
        }
      }
      for (std::size_t level = 1; level < levels; ++level) {
        if (upsample_kernel_size[level - 1] != strides[level]) {
          throw ConfigError(
              "DynUNet: upsample_kernel_size must equal strides without the first, or the skips do "
              "not fit");
        }
      }
      if (deep_supervision && deep_supr_num > static_cast<int64_t>(levels) - 2) {
        throw ConfigError(
            fmt::format("DynUNet: deep_supr_num must be less than the {} upsamplings", levels - 1));
      }
    }
  };
  explicit DynUNet(const Options& options) : ImageModel(options), strides_(options.strides) {
    const Sizes& filters = *options.filters;
    const std::size_t last = strides_.size() - 1;
    UnetBlockOptions block{options.each(3),
                           options.each(1),
                           norm_options(options.norm_name),
                           activation_options(options.act_name),
                           options.dropout,
                           false,
                           0.01};
    for (std::size_t level = 0; level <= last; ++level) {
      UnetBlockOptions down = block;
      down.kernel = options.kernel_size[level];
      down.stride = strides_[level];
      down.residual = options.res_block;
      const std::string name = level == 0      ? "input_block"
                               : level == last ? "bottleneck"
                                               : fmt::format("downsamples.{}", level - 1);
      const int64_t in = level == 0 ? options.in_channels : filters[level - 1];
      encoder_.push_back(put(*this, name, std::make_shared<UnetBlock>(in, filters[level], down)));
    }
    for (std::size_t level = last; level > 0; --level) {
      block.kernel = options.kernel_size[level];
      decoder_.push_back(put(*this,
                             fmt::format("upsamples.{}", last - level),
                             std::make_shared<UnetUpBlock>(filters[level],
                                                           filters[level - 1],
                                                           options.upsample_kernel_size[level - 1],
                                                           options.trans_bias,
                                                           block)));
    }
    const std::size_t coarser =
        options.deep_supervision ? static_cast<std::size_t>(options.deep_supr_num) : 0;
    for (std::size_t level = 0; level <= coarser; ++level) {
      const std::string name =
          level == 0 ? "output_block" : fmt::format("deep_supervision_heads.{}", level - 1);
      heads_.push_back(
          put(*this,
              name,
              std::make_shared<UnetOutBlock>(filters[level], options.out_channels, block)));
    }
  }

  at::Tensor forward(const at::Tensor& image) override { return outputs(image, 1)[0]; }
  std::vector<at::Tensor> forward_all(const at::Tensor& image) override {
    return outputs(image, is_training() ? heads_.size() : 1);
  }
  std::vector<int64_t> divisor() const override { return product_of(strides_); }

 private:
  /// The outputs of the finest `count` levels, the finest first: (N,K,[D,]H,W).
  std::vector<at::Tensor> outputs(const at::Tensor& image, std::size_t count) {
    std::vector<at::Tensor> skips, found(count);
    at::Tensor x = image;
    for (const auto& block : encoder_) skips.push_back(x = run(block, x));
    skips.pop_back();
    for (const auto& block : decoder_) {
      x = run(block, x, skips.back());
      skips.pop_back();  // as many are left as there are finer levels
      if (skips.size() < count) found[skips.size()] = call(*heads_[skips.size()], x);
    }
    return found;
  }

  std::vector<Sizes> strides_;
  std::vector<std::shared_ptr<UnetBlock>> encoder_;
  std::vector<std::shared_ptr<UnetUpBlock>> decoder_;
  std::vector<std::shared_ptr<UnetOutBlock>> heads_;  // of the finest level first
};
CYTRA_REGISTER(Model, DynUNet, "DynUNet");

}  // namespace
}  // namespace cytra::nn
