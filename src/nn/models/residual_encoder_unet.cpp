// ResidualEncoderUNet and PlainConvUNet, the networks of nnU-Net, also as its plans.json describes
// them. Architecture, initialisation and parameter names follow
// dynamic_network_architectures.architectures.unet; arXiv:1809.10486, arXiv:2404.09556.
#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/init.h>

#include "base/error.h"
#include "base/strings.h"
#include "config/registry.h"
#include "nn/blocks/image_model.h"
#include "nn/blocks/layers.h"
#include "nn/nnunet.h"
#include "nn/weights.h"

namespace cytra::nn {
namespace {

constexpr double kHeSlope = 0.01;

/// What all of its convolutions are made with.
struct StackStyle {
  NormOptions norm;
  ActivationOptions act;
  bool bias;
  double dropout;
};

/// ConvDropoutNormReLU.
std::shared_ptr<Sequence> conv_unit(
    int64_t in, int64_t out, const Sizes& kernel, const Sizes& stride, const StackStyle& style) {
  auto unit = std::make_shared<Sequence>();
  unit->add("conv",
            std::make_shared<Conv>(
                in, out, ConvOptions{kernel, stride, style.bias, false, {}, 1, kHeSlope}));
  if (style.dropout > 0) unit->add("dropout", std::make_shared<Dropout>(style.dropout, true));
  unit->add("norm", std::make_shared<Norm>(style.norm, out));
  if (!style.act.kind.empty()) unit->add("nonlin", std::make_shared<Activation>(style.act));
  return unit;
}

/// BasicBlockD: two convolutions plus the input, to which a mean over pixels gives the stride and
/// a convolution of side 1 the features. At the start of a training it returns that input alone.
struct ResidualBlock final : Layer {
  ResidualBlock(
      int64_t in, int64_t out, const Sizes& kernel, const Sizes& stride, const StackStyle& style)
      : stride_(stride) {
    const Sizes one(kernel.size(), 1);
    StackStyle last = style;
    last.act = {};
    last.dropout = 0;
    conv1_ = register_module("conv1", conv_unit(in, out, kernel, stride, style));
    conv2_ = register_module("conv2", conv_unit(out, out, kernel, one, last));
    act_ = put<Activation>(*this, "nonlin2", style.act);
    for (auto& parameter : conv2_->named_children()["norm"]->parameters())
      torch::nn::init::zeros_(parameter);
    is_strided_ = stride != one;
    last.bias = false;
    if (in != out)
      skip_ = put(*this, is_strided_ ? "skip.1" : "skip.0", conv_unit(in, out, one, one, last));
  }
  at::Tensor forward(const at::Tensor& x) override {
    at::Tensor skip = x;
    if (is_strided_) {
      skip = stride_.size() == 2 ? at::avg_pool2d(x, stride_, stride_)
                                 : at::avg_pool3d(x, stride_, stride_);
    }
    if (skip_) skip = call(*skip_, skip);
    return act_->of_result(call(*conv2_, call(*conv1_, x)) + skip);
  }

 private:
  Sizes stride_;
  bool is_strided_;
  std::shared_ptr<Sequence> conv1_, conv2_, skip_;
  std::shared_ptr<Activation> act_;
};

template <bool kResidual>
class PlannedUNet final : public ImageModel, public NnunetModel {
  static constexpr const char* kName = kResidual ? "ResidualEncoderUNet" : "PlainConvUNet";
  static constexpr const char* kBlocks = kResidual ? "n_blocks_per_stage" : "n_conv_per_stage";

 public:
  struct Options : ImageModelOptions {
    std::optional<std::string> plans;
    std::string configuration = "3d_fullres";
    int64_t n_stages = 6;
    std::optional<Sizes> features_per_stage, blocks_per_stage;
    std::vector<Sizes> kernel_sizes{{3}};
    std::optional<std::vector<Sizes>> strides;
    Sizes n_conv_per_stage_decoder{kResidual ? 1 : 2};
    bool conv_bias = true, deep_supervision = false;
    config::Node norm_op = config::parse_yaml("[instance, {affine: true}]", "default"),
                 nonlin = config::Node::make_string("leakyrelu");
    double dropout = 0;
    std::optional<int64_t> stem_channels;
    void visit(auto& v) {
      ImageModelOptions::visit(v);
      v("plans", plans, "nnU-Net's plans.json, which then says all of the following up to dropout");
      v("configuration",
        configuration,
        "configuration of the plans: 2d, 3d_fullres, 3d_lowres ...");
      v("n_stages", n_stages, "levels", 2, 20);
      v("features_per_stage", features_per_stage, "null: 32, 64, ... up to 512 (3D: 320)");
      v("kernel_sizes",
        kernel_sizes,
        "for all stages, or per stage: one number or one per dimension");
      v("strides", strides, "into each stage, likewise; null: 1, 2, 2 ...");
      v(kBlocks,
        blocks_per_stage,
        kResidual ? "of the encoder; null: 1, 3, 4, 6, 6 ..., as nnU-Net's M and L"
                  : "of the encoder; null: 2");
      v("n_conv_per_stage_decoder",
        n_conv_per_stage_decoder,
        "for all, or per stage from below",
        1,
        100);
      v("conv_bias", conv_bias, "biases in the convolutions");
      v("norm_op", norm_op, "[instance, {affine: true}], batch, [group, {num_groups: 8}] ...");
      v("nonlin", nonlin, "leakyrelu, relu, gelu ..., with arguments as norm_op");
      v("dropout", dropout, "share of channels dropped after convolutions in training", 0, 1);
      v("deep_supervision", deep_supervision, "outputs of every coarser stage, too, in training");
      if constexpr (kResidual)
        v("stem_channels",
          stem_channels,
          "features of the first convolution; null: of stage 0",
          1,
          1e5);
    }
    /// Checks the options, and gives every stage its own values.
    void check() {
      if (plans) take_plans();
      const auto stages = static_cast<std::size_t>(n_stages);
      if (!features_per_stage) {
        features_per_stage.emplace();
        for (std::size_t s = 0; s < stages; ++s)
          features_per_stage->push_back(
              std::min<int64_t>(int64_t{32} << s, spatial_dims == 3 ? 320 : 512));
      }
      if (!blocks_per_stage) {
        blocks_per_stage = Sizes(stages, kResidual ? 6 : 2);
        if (kResidual)
          std::copy_n(Sizes{1, 3, 4, 6}.begin(),
                      std::min<std::size_t>(stages, 4),
                      blocks_per_stage->begin());
      }
      if (!strides) {
        strides.emplace(stages, each(2));
        strides->front() = each(1);
      }
      spread(*features_per_stage, stages, "features_per_stage");
      spread(*blocks_per_stage, stages, kBlocks);
      spread(n_conv_per_stage_decoder, stages - 1, "n_conv_per_stage_decoder");
      spread(kernel_sizes, stages, "kernel_sizes");
      spread(*strides, stages, "strides");
      expect_up_to(10'000, *features_per_stage, "features_per_stage");
      expect_up_to(100, *blocks_per_stage, kBlocks);
      expect_up_to(100, n_conv_per_stage_decoder, "n_conv_per_stage_decoder");
      for (Sizes& kernel : kernel_sizes)
        kernel = odd_per_dimension(kernel, spatial_dims, "kernel_sizes");
      for (Sizes& stride : *strides) stride = per_dimension(stride, spatial_dims, "strides");
      for (const Sizes& sides : kernel_sizes) expect_up_to(99, sides, "kernel_sizes");
      for (const Sizes& sides : *strides) expect_up_to(8, sides, "strides");
    }

   private:
    template <class T>
    static void spread(std::vector<T>& values, std::size_t count, const char* option) {
      if (values.size() == 1) values.resize(count, T(values.front()));
      if (values.size() != count) {
        throw ConfigError(
            "{}: {} needs one entry, or {}; got {}", kName, option, count, values.size());
      }
    }
    static void expect_up_to(int64_t most, const Sizes& values, const char* option) {
      for (const int64_t value : values)
        if (value < 1 || value > most)
          throw ConfigError(
              "{}: {}: {}, expected numbers from 1 to {}", kName, option, value, most);
    }
    void take_plans() {
      const config::Node found = nnunet_model(
          nnunet_configuration(config::load_yaml(*plans), *plans, configuration), *plans);
      if (const auto name = found.get<std::string>("_target_"); name != kName) {
        throw ConfigError("{}: '{}' is a {}; set model._target_ to it, not {}",
                          *plans,
                          configuration,
                          printable(name),
                          kName);
      }
      if (const auto dims = found.get<int64_t>("spatial_dims"); dims != spatial_dims) {
        throw ConfigError(
            "{}: '{}' is {}D, spatial_dims is {}", *plans, configuration, dims, spatial_dims);
      }
      n_stages = found.get<int64_t>("n_stages");
      expect_up_to(20, {n_stages}, "n_stages");
      features_per_stage = found.get<Sizes>("features_per_stage");
      blocks_per_stage = found.get<Sizes>(kBlocks);
      n_conv_per_stage_decoder = found.get<Sizes>("n_conv_per_stage_decoder");
      conv_bias = found.get<bool>("conv_bias");
      kernel_sizes = found.get<std::vector<Sizes>>("kernel_sizes");
      strides = found.get<std::vector<Sizes>>("strides");
      norm_op = found.at("norm_op");
      nonlin = found.at("nonlin");
      dropout = found.get<double>("dropout");
    }
  };

  explicit PlannedUNet(const Options& options) : ImageModel(options), options_(options) {
    const StackStyle style{norm_options(options.norm_op),
                           activation_options(options.nonlin),
                           options.conv_bias,
                           options.dropout};
    const Sizes &features = *options.features_per_stage, one = options.each(1);
    const std::vector<Sizes>& kernels = options.kernel_sizes;
    int64_t in = options.in_channels;
    if (kResidual) {
      const int64_t stem = options.stem_channels.value_or(features[0]);
      stem_ = put(*this, "encoder.stem.convs.0", conv_unit(in, stem, kernels[0], one, style));
      in = stem;
    }
    const std::size_t stages = features.size();
    for (std::size_t s = 0; s < stages; ++s) {
      auto& blocks = encoder_.emplace_back();
      for (int64_t b = 0; b < (*options.blocks_per_stage)[s]; ++b) {
        const Sizes& stride = b == 0 ? (*options_.strides)[s] : one;
        const std::string name = fmt::format(
            kResidual ? "encoder.stages.{}.blocks.{}" : "encoder.stages.{}.0.convs.{}", s, b);
        std::shared_ptr<Layer> block;
        if (kResidual) {
          block = std::make_shared<ResidualBlock>(in, features[s], kernels[s], stride, style);
        } else {
          block = conv_unit(in, features[s], kernels[s], stride, style);
        }
        blocks.push_back(put(*this, name, block));
        in = features[s];
      }
    }
    for (std::size_t i = 0; i + 1 < stages; ++i) {
      const std::size_t s = stages - 2 - i;
      const Sizes& scale = (*options_.strides)[s + 1];
      ups_.push_back(
          put<Conv>(*this,
                    fmt::format("decoder.transpconvs.{}", i),
                    features[s + 1],
                    features[s],
                    ConvOptions{scale, scale, style.bias, true, options.each(0), 1, kHeSlope}));
      auto& blocks = decoder_.emplace_back();
      for (int64_t b = 0; b < options.n_conv_per_stage_decoder[i]; ++b) {
        blocks.push_back(
            put(*this,
                fmt::format("decoder.stages.{}.convs.{}", i, b),
                std::shared_ptr<Layer>(conv_unit(
                    b == 0 ? 2 * features[s] : features[s], features[s], kernels[s], one, style))));
      }
      heads_.push_back(put<Conv>(*this,
                                 fmt::format("decoder.seg_layers.{}", i),
                                 features[s],
                                 options.out_channels,
                                 ConvOptions{one, one, true, false, {}, 1, kHeSlope}));
    }
  }

  at::Tensor forward(const at::Tensor& image) override { return outputs(image, false)[0]; }
  std::string last_layer() const override {
    return fmt::format("decoder.seg_layers.{}", heads_.size() - 1);
  }
  at::Tensor features(const at::Tensor& image) override {
    at::Tensor last;
    for_levels(image, [&](std::size_t, const at::Tensor& x) { last = x; });
    return last;
  }
  std::vector<at::Tensor> forward_all(const at::Tensor& image) override {
    return outputs(image, is_training() && options_.deep_supervision);
  }
  std::vector<int64_t> divisor() const override { return product_of(*options_.strides); }

  NnunetNetwork nnunet() const override {
    const Sizes& features = *options_.features_per_stage;
    if (options_.stem_channels && *options_.stem_channels != features[0])
      throw ConfigError("format=nnunet: stem_channels, expected those of stage 0");
    return nnunet_network({kResidual,
                           spatial_dims(),
                           features,
                           *options_.blocks_per_stage,
                           options_.n_conv_per_stage_decoder,
                           options_.kernel_sizes,
                           *options_.strides,
                           options_.conv_bias,
                           norm_options(options_.norm_op),
                           activation_options(options_.nonlin),
                           options_.dropout},
                          state_of(*this));
  }

 private:
  /// The finest output, and, with `all`, then the coarser ones.
  std::vector<at::Tensor> outputs(const at::Tensor& image, bool all) {
    std::vector<at::Tensor> found;
    for_levels(image, [&](std::size_t i, const at::Tensor& x) {
      if (all || i + 1 == decoder_.size()) found.insert(found.begin(), call(*heads_[i], x));
    });
    return found;
  }
  /// Gives the features of each level of the decoder, from below.
  void for_levels(const at::Tensor& image, const auto& take) {
    std::vector<at::Tensor> skips;
    at::Tensor x = stem_ ? run(stem_, image) : image;
    for (const auto& stage : encoder_) {
      for (const auto& block : stage) x = run(block, x);
      skips.push_back(x);
    }
    skips.pop_back();  // the bottom is none
    for (std::size_t i = 0; i < decoder_.size(); ++i) {
      x = at::cat({call(*ups_[i], x), popped(skips)}, 1);
      for (const auto& block : decoder_[i]) x = run(block, x);
      take(i, x);
    }
  }

  Options options_;
  std::shared_ptr<Sequence> stem_;
  std::vector<std::vector<std::shared_ptr<Layer>>> encoder_, decoder_;  // stages of blocks
  std::vector<std::shared_ptr<Conv>> ups_, heads_;                      // from below
};
CYTRA_REGISTER(Model, PlannedUNet<true>, "ResidualEncoderUNet");
CYTRA_REGISTER(Model, PlannedUNet<false>, "PlainConvUNet");

}  // namespace
}  // namespace cytra::nn
