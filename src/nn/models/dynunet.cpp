// DynUNet, the U-Net of nnU-Net, 2D and 3D. Architecture, argument names, parameter names and
// initialisation follow monai.networks.nets.DynUNet, so weights go both ways unchanged.
#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/blocks/dynunet_block.h"
#include "nn/blocks/image_model.h"
#include "nn/nnunet.h"
#include "nn/weights.h"

namespace cytra::nn {
namespace {

/// A kernel with zeros around it.
at::Tensor grown_kernel(const at::Tensor& kernel, const Sizes& size) {
  std::vector<int64_t> more;  // the last axis first
  for (std::size_t d = size.size(); d-- > 0;) {
    const int64_t missing = (size[d] - kernel.size(static_cast<int64_t>(d) + 2)) / 2;
    more.insert(more.end(), {missing, missing});
  }
  return at::constant_pad_nd(kernel, more);
}

class DynUNet final : public ImageModel, public NnunetModel {
 public:
  struct Options : ImageModelOptions {
    std::vector<Sizes> kernel_size, strides, upsample_kernel_size;
    std::optional<Sizes> filters = Sizes{16, 32, 64};
    double dropout = 0;
    config::Node norm_name = config::parse_yaml("[instance, {affine: true}]", "default"),
                 act_name = config::parse_yaml("[leakyrelu, {negative_slope: 0.01}]", "default");
    bool deep_supervision = false, res_block = false, trans_bias = false;
    int64_t deep_supr_num = 1;
    void visit(auto& v) {
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
        throw ConfigError(
            "DynUNet: filters, kernel_size and strides need one entry per level (>= 2), "
            "upsample_kernel_size one less; got {}, {}, {} and {}",
            filters->size(),
            kernel_size.size(),
            strides.size(),
            upsample_kernel_size.size());
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
        throw ConfigError("DynUNet: deep_supr_num must be less than the {} upsamplings",
                          levels - 1);
      }
    }
  };
  explicit DynUNet(const Options& options) : ImageModel(options), options_(options) {
    const Sizes& filters = *options.filters;
    const std::size_t last = options_.strides.size() - 1;
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
      down.stride = options_.strides[level];
      down.residual = options.res_block;
      const std::string name = level == 0      ? "input_block"
                               : level == last ? "bottleneck"
                                               : fmt::format("downsamples.{}", level - 1);
      const int64_t in = level == 0 ? options.in_channels : filters[level - 1];
      encoder_.push_back(put<UnetBlock>(*this, name, in, filters[level], down));
    }
    for (std::size_t level = last; level > 0; --level) {
      block.kernel = options.kernel_size[level];
      decoder_.push_back(put<UnetUpBlock>(*this,
                                          fmt::format("upsamples.{}", last - level),
                                          filters[level],
                                          filters[level - 1],
                                          options.upsample_kernel_size[level - 1],
                                          options.trans_bias,
                                          block));
    }
    const std::size_t coarser =
        options.deep_supervision ? static_cast<std::size_t>(options.deep_supr_num) : 0;
    for (std::size_t level = 0; level <= coarser; ++level) {
      const std::string name =
          level == 0 ? "output_block" : fmt::format("deep_supervision_heads.{}", level - 1);
      heads_.push_back(put<UnetOutBlock>(*this, name, filters[level], options.out_channels, block));
    }
  }

  at::Tensor forward(const at::Tensor& image) override { return outputs(image, 1)[0]; }
  std::string last_layer() const override { return "output_block.conv.conv"; }
  at::Tensor features(const at::Tensor& image) override {
    at::Tensor last;
    for_levels(image, [&](std::size_t, const at::Tensor& x) { last = x; });
    return last;
  }
  std::vector<at::Tensor> forward_all(const at::Tensor& image) override {
    return outputs(image, is_training() ? heads_.size() : 1);
  }
  std::vector<int64_t> divisor() const override { return product_of(options_.strides); }

  /// PlainConvUNet has one kernel for a level's encoder and decoder, where here the decoder has
  /// that of the level below: the larger of the two is taken, and the other filled up with zeros.
  NnunetNetwork nnunet() const override {
    if (options_.res_block)
      throw ConfigError("format=nnunet: res_block=true, which nnU-Net's networks do not have");
    const std::size_t levels = options_.strides.size();
    NnunetArchitecture plan;
    plan.spatial_dims = options_.spatial_dims;
    plan.features.assign(options_.filters->begin(),
                         options_.filters->begin() + static_cast<std::ptrdiff_t>(levels));
    plan.blocks.assign(levels, 2);
    plan.decoder_convs.assign(levels - 1, 2);
    plan.kernels = options_.kernel_size;
    plan.strides = options_.strides;
    plan.conv_bias = options_.trans_bias;
    plan.norm = norm_options(options_.norm_name);
    plan.act = activation_options(options_.act_name);
    for (std::size_t level = 0; level < levels; ++level) {
      for (std::size_t d = 0; d < options_.strides[level].size(); ++d) {
        const int64_t kernel = options_.kernel_size[level][d], stride = options_.strides[level][d];
        if (kernel % 2 == 0 || (kernel - stride + 1) / 2 != (kernel - 1) / 2) {
          throw ConfigError(
              "format=nnunet: a kernel of {} with a stride of {}, which nnU-Net pads otherwise; "
              "expected kernels of 3 with strides of 1 and 2, of 1 or 5 likewise",
              kernel,
              stride);
        }
        if (level + 1 < levels)
          plan.kernels[level][d] = std::max(kernel, options_.kernel_size[level + 1][d]);
      }
    }
    return nnunet_network(plan, nnunet_weights(plan));
  }

 private:
  std::map<std::string, at::Tensor> nnunet_weights(const NnunetArchitecture& plan) const {
    const std::size_t last = options_.strides.size() - 1;
    const std::map<std::string, at::Tensor> own = state_of(*this);
    std::map<std::string, at::Tensor> weights;
    const auto take = [&](const std::string& from, const std::string& to) {
      for (auto tensor = own.lower_bound(from);
           tensor != own.end() && tensor->first.starts_with(from);
           ++tensor)
        weights[to + tensor->first.substr(from.size())] = tensor->second;
    };
    const auto take_unit =
        [&](const std::string& block, int64_t unit, const std::string& stage, std::size_t level) {
          const std::string to = fmt::format("{}.convs.{}.", stage, unit - 1);
          take(fmt::format("{}.conv{}.conv.", block, unit), to + "conv.");
          take(fmt::format("{}.norm{}.", block, unit), to + "norm.");
          at::Tensor& kernel = weights.at(to + "conv.weight");
          kernel = grown_kernel(kernel, plan.kernels[level]);
          if (plan.conv_bias)
            weights[to + "conv.bias"] = at::zeros({kernel.size(0)}, kernel.options());
        };
    for (std::size_t level = 0; level <= last; ++level) {
      const std::string block = level == 0      ? "input_block"
                                : level == last ? "bottleneck"
                                                : fmt::format("downsamples.{}", level - 1);
      for (const int64_t unit : {1, 2})
        take_unit(block, unit, fmt::format("encoder.stages.{}.0", level), level);
    }
    for (std::size_t i = 0; i < last; ++i) {
      const std::size_t level = last - 1 - i;
      const std::string up = fmt::format("upsamples.{}", i);
      take(up + ".transp_conv.conv.", fmt::format("decoder.transpconvs.{}.", i));
      for (const int64_t unit : {1, 2})
        take_unit(up + ".conv_block", unit, fmt::format("decoder.stages.{}", i), level);
      const std::string head = fmt::format("decoder.seg_layers.{}.", i);
      take(level == 0 ? std::string("output_block.conv.conv.")
                      : fmt::format("deep_supervision_heads.{}.conv.conv.", level - 1),
           head);
      if (weights.count(head + "weight") != 0) continue;  // else nothing has learned it
      std::vector<int64_t> shape{out_channels(), plan.features[level]};
      shape.resize(static_cast<std::size_t>(spatial_dims()) + 2, 1);
      weights[head + "weight"] = at::zeros(shape);
      weights[head + "bias"] = at::zeros({out_channels()});
    }
    return weights;
  }

  /// The outputs of the finest `count` levels, the finest first: (N,K,[D,]H,W).
  std::vector<at::Tensor> outputs(const at::Tensor& image, std::size_t count) {
    std::vector<at::Tensor> found(count);
    for_levels(image, [&](std::size_t level, const at::Tensor& x) {
      if (level < count) found[level] = call(*heads_[level], x);
    });
    return found;
  }
  /// Gives the features of each level of the decoder, the finest last.
  void for_levels(const at::Tensor& image, const auto& take) {
    std::vector<at::Tensor> skips;
    at::Tensor x = image;
    for (const auto& block : encoder_) skips.push_back(x = run(block, x));
    skips.pop_back();
    for (const auto& block : decoder_) {
      x = run(block, x, popped(skips));  // as many are left as there are finer levels
      take(skips.size(), x);
    }
  }

  Options options_;
  std::vector<std::shared_ptr<UnetBlock>> encoder_;
  std::vector<std::shared_ptr<UnetUpBlock>> decoder_;
  std::vector<std::shared_ptr<UnetOutBlock>> heads_;  // of the finest level first
};
CYTRA_REGISTER(Model, DynUNet, "DynUNet");

}  // namespace
}  // namespace cytra::nn
