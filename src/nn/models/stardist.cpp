// StarDist: convolutions and max pooling down to a grid, there a U-Net, or a residual network; it
// gives a probability's logit and distances along rays. Architecture and names of layers follow
// stardist.models.StarDist2D, StarDist3D and csbdeep.internals.blocks, padding and upsampling
// TensorFlow's; arXiv:1806.03535, arXiv:1908.03636. Source: stardist 0.9.2, csbdeep 0.8.2.
#include <algorithm>
#include <bit>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/blocks/image_model.h"
#include "nn/blocks/layers.h"

namespace cytra::nn {
namespace {

struct MaxPooling final : Layer {
  explicit MaxPooling(Sizes sides) : sides_(std::move(sides)) {}
  at::Tensor forward(const at::Tensor& x) override {
    return x.dim() == 4 ? at::max_pool2d(x, sides_) : at::max_pool3d(x, sides_);
  }

 private:
  Sizes sides_;
};

/// Each value `times` as often along each dimension.
at::Tensor repeated_values(const at::Tensor& x, const Sizes& times) {
  if (std::ranges::all_of(times, [](int64_t side) { return side == 1; })) return x;
  const std::vector<double> scale(times.begin(), times.end());  // not a size: a trace takes others
  return x.dim() == 4 ? at::upsample_nearest2d(x, at::OptionalIntArrayRef(), scale)
                      : at::upsample_nearest3d(x, at::OptionalIntArrayRef(), scale);
}

/// A convolution with TensorFlow's padding `same`: of a stride, what is missing lies behind.
struct SameConv final : Layer {
  SameConv(int64_t in, int64_t out, const Sizes& kernel, const Sizes& stride, bool bias) {
    Sizes padding;
    for (std::size_t d = kernel.size(); d-- > 0;) {
      const int64_t missing = std::max<int64_t>(kernel[d] - stride[d], 0);
      const bool is_even = missing % 2 == 0;
      padding.insert(padding.begin(), is_even ? missing / 2 : 0);
      around_.insert(around_.end(), {is_even ? 0 : missing / 2, is_even ? 0 : (missing + 1) / 2});
      pads_ = pads_ || !is_even;
    }
    conv_ = put<Conv>(*this, "conv", in, out, ConvOptions{kernel, stride, bias, false, padding});
  }
  at::Tensor forward(const at::Tensor& x) override {
    return call(*conv_, pads_ ? at::constant_pad_nd(x, around_) : x);
  }

 private:
  Sizes around_;
  bool pads_ = false;
  std::shared_ptr<Conv> conv_;
};

class StarDist final : public ImageModel {
 public:
  struct Options : ImageModelOptions {
    Options() { out_channels = 33; }
    std::string backbone = "unet";
    Sizes grid{1}, kernel_size{3}, pool{2};
    std::optional<int64_t> n_depth, n_conv_per_depth;
    int64_t n_filter_base = 32, net_conv_after = 128;
    config::Node activation = config::Node::make_string("relu"), last_activation;
    bool batch_norm = false;
    double dropout = 0;
    void visit(auto& v) {
      ImageModelOptions::visit(v);
      v("backbone", backbone, "resnet: residual blocks, for round objects", {"unet", "resnet"});
      v("grid",
        grid,
        "voxels of the image for one of the stars, along each axis: powers of 2",
        1,
        64);
      v("n_depth",
        n_depth,
        "unet: levels below the finest, null: 3, in 3D 2; resnet: blocks, null: 4",
        1,
        16);
      v("n_filter_base",
        n_filter_base,
        "features of the finest level; twice as many in the next",
        1,
        4096);
      v("kernel_size", kernel_size, "of the convolutions, one number or one per dimension", 1, 99);
      v("n_conv_per_depth",
        n_conv_per_depth,
        "convolutions of a level, null: 2; of a residual block: 3",
        1,
        16);
      v("pool",
        pool,
        "unet: downsampling into the next level, one number or one per dimension",
        1,
        16);
      v("activation", activation, "relu, elu, [leakyrelu, {negative_slope: 0.1}] ...");
      v("last_activation", last_activation, "of the unet's last convolution; null: activation");
      v("batch_norm", batch_norm, "batch norms behind the backbone's convolutions");
      v("dropout",
        dropout,
        "unet: share of values dropped after each convolution in training",
        0,
        1);
      v("net_conv_after",
        net_conv_after,
        "features of a convolution behind the backbone; 0: none",
        0,
        4096);
    }
    void check() {
      grid = per_dimension(grid, spatial_dims, "StarDist: grid");
      pool = per_dimension(pool, spatial_dims, "StarDist: pool");
      kernel_size = odd_per_dimension(kernel_size, spatial_dims, "StarDist: kernel_size");
      for (const int64_t side : grid) {
        if (!std::has_single_bit(static_cast<uint64_t>(side)))
          throw ConfigError("StarDist: grid takes powers of 2, got {}", side);
      }
      const bool is_unet = backbone == "unet";
      if (!n_depth) n_depth = !is_unet ? 4 : spatial_dims == 2 ? 3 : 2;
      if (!n_conv_per_depth) n_conv_per_depth = is_unet ? 2 : 3;
      if (!is_unet && *n_conv_per_depth < 2)
        throw ConfigError("StarDist: n_conv_per_depth=1: residual blocks have 2 or more");
      if (last_activation.is_null()) last_activation = activation;
      if (out_channels < spatial_dims + 2)
        throw ConfigError("StarDist: {} out_channels, expected 1 and those of the rays",
                          out_channels);
    }
  };

  explicit StarDist(const Options& options) : ImageModel(options), options_(options) {
    const int64_t features = options.backbone == "unet" ? make_unet(options.in_channels)
                                                        : make_resnet(options.in_channels);
    int64_t last = features;
    if (options.net_conv_after > 0) {
      last = options.net_conv_after;
      features_ = put(*this, "features", convs({features, last}, options.activation, false));
    }
    const Sizes one = options.each(1);
    prob_ = put<Conv>(*this, "prob", last, 1, ConvOptions{one, one});
    dist_ = put<Conv>(*this, "dist", last, options.out_channels - 1, ConvOptions{one, one});
  }

  at::Tensor forward(const at::Tensor& image) override {
    at::Tensor x = image;
    for (const auto& layer : before_) x = run(layer, x);
    std::vector<at::Tensor> skips;
    for (const auto& level : down_) {
      skips.push_back(run(level, x));
      x = call(*pool_, skips.back());
    }
    if (middle_) x = run(middle_, x);
    for (std::size_t i = 0; i < up_.size(); ++i)
      x = run(up_[i], at::cat({repeated_values(x, options_.pool), skips[up_.size() - 1 - i]}, 1));
    for (const Residual& block : blocks_) {
      const at::Tensor inner = run(block.inner, x);
      x = block.act->of_result(inner + (block.shortcut ? call(*block.shortcut, x) : x));
    }
    if (features_) x = run(features_, x);
    return repeated_values(at::cat({call(*prob_, x), call(*dist_, x)}, 1), options_.grid);
  }
  std::vector<int64_t> divisor() const override {
    Sizes sides = options_.grid;
    for (std::size_t d = 0; d < sides.size() && pool_; ++d) {
      for (int64_t level = 0; level < *options_.n_depth; ++level) sides[d] *= options_.pool[d];
    }
    return sides;
  }

 private:
  struct Residual {
    std::shared_ptr<Sequence> inner;
    std::shared_ptr<SameConv> shortcut;  // null: none
    std::shared_ptr<Activation> act;
  };

  /// Convolutions from features to the next features of the list, "no_0", "no_1" ...
  std::shared_ptr<Sequence> convs(const Sizes& features,
                                  const config::Node& last_activation,
                                  bool in_unet) const {
    auto all = std::make_shared<Sequence>();
    for (std::size_t i = 0; i + 1 < features.size(); ++i) {
      auto one = std::make_shared<Sequence>();
      one->add(
          "conv",
          std::make_shared<Conv>(
              features[i], features[i + 1], ConvOptions{options_.kernel_size, options_.each(1)}));
      if (in_unet && options_.batch_norm) one->add("norm", make_norm(features[i + 1]));
      const bool is_last = i + 2 == features.size();
      add_activation(*one, is_last ? last_activation : options_.activation);
      if (in_unet && options_.dropout > 0)
        one->add("dropout", std::make_shared<Dropout>(options_.dropout));
      all->add(fmt::format("no_{}", i), one);
    }
    return all;
  }
  static std::shared_ptr<Norm> make_norm(int64_t features) {
    NormOptions norm;
    norm.kind = "batch";
    norm.eps = 1e-3;
    norm.momentum = 0.01;  // Keras' 0.99
    return std::make_shared<Norm>(norm, features);
  }
  static void add_activation(Sequence& to, const config::Node& activation) {
    const ActivationOptions act = activation_options(activation);
    if (!act.kind.empty()) to.add("act", std::make_shared<Activation>(act));
  }
  /// The strides, 1 or 2, that lead to the grid.
  std::vector<Sizes> steps_to_grid() const {
    std::vector<Sizes> steps;
    for (Sizes done = options_.each(1); done != options_.grid;) {
      Sizes& step = steps.emplace_back();
      for (std::size_t d = 0; d < done.size(); ++d) {
        step.push_back(options_.grid[d] > done[d] ? 2 : 1);
        done[d] *= step[d];
      }
    }
    return steps;
  }

  /// Returns the features of its output, as make_resnet().
  int64_t make_unet(int64_t features) {
    const auto count = static_cast<std::size_t>(*options_.n_conv_per_depth);
    const auto width = [&](int64_t level) {
      return options_.n_filter_base << std::max<int64_t>(level, 0);
    };
    /// `before`, then all convolutions but the last of `inner`, which has `last`.
    const auto widths = [&](int64_t before, int64_t inner, int64_t last) {
      Sizes all(count + 1, inner);
      all.front() = before;
      all.back() = last;
      return all;
    };
    for (const Sizes& step : steps_to_grid()) {
      before_.push_back(
          put(*this,
              fmt::format("grid_{}", before_.size() / 2),
              convs(widths(features, width(0), width(0)), options_.activation, false)));
      before_.push_back(
          put<MaxPooling>(*this, fmt::format("grid_{}_max", before_.size() / 2), step));
      features = width(0);
    }
    pool_ = put<MaxPooling>(*this, "max", options_.pool);
    const int64_t depth = *options_.n_depth;
    for (int64_t n = 0; n < depth; ++n) {
      down_.push_back(put(*this,
                          fmt::format("down_level_{}", n),
                          convs(widths(features, width(n), width(n)), options_.activation, true)));
      features = width(n);
    }
    middle_ =
        put(*this,
            "middle",
            convs(widths(features, width(depth), width(depth - 1)), options_.activation, true));
    features = width(depth - 1);
    for (int64_t n = depth - 1; n >= 0; --n) {
      up_.push_back(put(*this,
                        fmt::format("up_level_{}", n),
                        convs(widths(features + width(n), width(n), width(n - 1)),
                              n > 0 ? options_.activation : options_.last_activation,
                              true)));
      features = width(n - 1);
    }
    return features;
  }

  int64_t make_resnet(int64_t in) {
    const auto same =
        [&](int64_t from, int64_t to, const Sizes& kernel, const Sizes& stride, bool bias) {
          return std::make_shared<SameConv>(from, to, kernel, stride, bias);
        };
    const Sizes one = options_.each(1);
    int64_t features = options_.n_filter_base;
    auto first = std::make_shared<Sequence>();
    first->add("no_0", same(in, features, options_.each(7), one, true));
    first->add("no_1", same(features, features, options_.each(3), one, true));
    before_.push_back(put(*this, "first", first));
    std::vector<Sizes> steps = steps_to_grid();
    const auto depth = static_cast<std::size_t>(*options_.n_depth);
    if (steps.size() > depth)
      throw ConfigError("StarDist: a grid of {} blocks, expected n_depth to be so many at least",
                        steps.size());
    steps.resize(depth, one);
    for (const Sizes& step : steps) {
      const int64_t before = features;
      if (step != one) features *= 2;
      const std::string name = fmt::format("block_{}", blocks_.size());
      Residual block{put<Sequence>(*this, name + ".inner")};
      for (int64_t i = 0; i < *options_.n_conv_per_depth; ++i) {
        auto layer = std::make_shared<Sequence>();
        layer->add("same",
                   same(i == 0 ? before : features,
                        features,
                        options_.kernel_size,
                        i == 0 ? step : one,
                        !options_.batch_norm));
        if (options_.batch_norm) layer->add("norm", make_norm(features));
        if (i + 1 < *options_.n_conv_per_depth) add_activation(*layer, options_.activation);
        block.inner->add(fmt::format("no_{}", i), layer);
      }
      if (features != before)
        block.shortcut =
            put(*this, name + ".shortcut", same(before, features, one, step, !options_.batch_norm));
      block.act = put<Activation>(*this, name + ".act", activation_options(options_.activation));
      blocks_.push_back(block);
    }
    return features;
  }

  Options options_;
  std::vector<std::shared_ptr<Layer>> before_;
  std::vector<std::shared_ptr<Sequence>> down_, up_;  // the finest first; the coarsest first
  std::shared_ptr<MaxPooling> pool_;                  // null: no U-Net
  std::vector<Residual> blocks_;
  std::shared_ptr<Sequence> middle_, features_;
  std::shared_ptr<Conv> prob_, dist_;
};
CYTRA_REGISTER(Model, StarDist, "StarDist");

}  // namespace
}  // namespace cytra::nn
