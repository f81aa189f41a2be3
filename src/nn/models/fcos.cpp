// FCOS: finds objects. A small residual backbone, a feature pyramid
// (torchvision.ops.FeaturePyramidNetwork) and the head of torchvision.models.detection.fcos, with
// their parameters' names. arXiv:1904.01355.
#include "nn/fcos.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/init.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/blocks/dynunet_block.h"

namespace cytra::nn {
namespace {

constexpr int64_t kFcosGroups = 32;  // of the head's norms

ConvOptions fcos_conv(int64_t side) {
  return {{side, side}, {1, 1}};
}

/// Convolutions with norm and ReLU, then one for each output.
struct FcosBranch final : torch::nn::Module {
  FcosBranch(int64_t width,
             int64_t convs,
             const std::vector<std::pair<std::string, int64_t>>& outputs) {
    conv = put<Sequence>(*this, "conv");
    NormOptions norm{"group"};
    norm.num_groups = kFcosGroups;
    const auto small = [](const std::shared_ptr<Conv>& layer) {
      torch::nn::init::normal_(layer->weight, 0, 0.01);
      torch::nn::init::zeros_(layer->bias);
      return layer;
    };
    for (int64_t i = 0; i < convs; ++i) {
      conv->add(fmt::to_string(3 * i), small(std::make_shared<Conv>(width, width, fcos_conv(3))));
      conv->add(fmt::to_string(3 * i + 1), std::make_shared<Norm>(norm, width));
      conv->add(fmt::to_string(3 * i + 2), std::make_shared<Activation>(ActivationOptions{"relu"}));
    }
    for (const auto& [name, channels] : outputs) {
      ends.push_back(
          register_module(name, small(std::make_shared<Conv>(width, channels, fcos_conv(3)))));
    }
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor features = call(*conv, x);
    std::vector<at::Tensor> outputs;
    for (const auto& end : ends) outputs.push_back(call(*end, features));
    if (outputs.size() == 1) return outputs[0];
    outputs[0] = outputs[0].relu();  // distances
    return at::cat(outputs, 1);
  }
  std::shared_ptr<Sequence> conv;
  std::vector<std::shared_ptr<Conv>> ends;
};

class FCOS final : public DetectionModel {
 public:
  struct Options : ModelOptions {
    static constexpr const char* kPurpose =
        "boxes; expected task=detection (experiment=detection/cells)";
    int64_t in_channels = 1, num_classes = 1, width = 64, num_convs = 2;
    Sizes filters{16, 32, 64, 96, 128};
    config::Node norm_name = config::parse_yaml("[group, {num_groups: 8}]", "norm_name");
    void visit(auto& v) {
      v("in_channels", in_channels, "image channels C", 1, 1e5);
      v("num_classes", num_classes, "kinds of objects", 1, 1e4);
      v("filters",
        filters,
        "features of the backbone at stride 2, 4, 8 ...; objects are looked for from stride 4 on",
        1,
        1e5);
      v("width", width, "features of the pyramid and the head, a multiple of 32", 32, 4096);
      v("num_convs", num_convs, "convolutions of the head ahead of each output", 1, 16);
      v("norm_name", norm_name, "of the backbone: batch, [group, {num_groups: 8}] ...");
      ModelOptions::visit(v);
    }
    void check() const {
      if (filters.size() < 2) throw ConfigError("FCOS: filters need two levels or more");
      if (width % kFcosGroups != 0)
        throw ConfigError("FCOS: width={}, expected a multiple of {}", width, kFcosGroups);
    }
  };

  explicit FCOS(const Options& options)
      : DetectionModel(options),
        in_channels_(options.in_channels),
        num_classes_(options.num_classes) {
    UnetBlockOptions block{{3, 3}, {2, 2}, norm_options(options.norm_name), {"leakyrelu"}};
    int64_t in = options.in_channels, stride = 1;
    for (std::size_t level = 0; level < options.filters.size(); ++level) {
      const int64_t out = options.filters[level];
      // The first level has no residual of the image: oneDNN crashes in the gradient of a 1x1
      // convolution with stride 2 of one channel in channels-last format.
      block.residual = level > 0;
      stages_.push_back(put<UnetBlock>(*this, fmt::format("backbone.{}", level), in, out, block));
      in = out;
      stride *= 2;
      if (level == 0) continue;
      strides_.push_back(stride);
      const auto pyramid = [&](const char* name, int64_t from, int64_t side) {
        const auto conv = std::make_shared<Conv>(from, options.width, fcos_conv(side));
        torch::nn::init::kaiming_uniform_(conv->weight, 1);
        torch::nn::init::zeros_(conv->bias);
        return put(*this, fmt::format("fpn.{}.{}.0", name, level - 1), conv);
      };
      inner_.push_back(pyramid("inner_blocks", out, 1));
      outer_.push_back(pyramid("layer_blocks", options.width, 3));
    }
    using Outputs = std::vector<std::pair<std::string, int64_t>>;
    const auto branch = [&](const std::string& name, const Outputs& outputs) {
      return put<FcosBranch>(*this, "head." + name, options.width, options.num_convs, outputs);
    };
    classes_ = branch("classification_head", {{"cls_logits", num_classes_}});
    boxes_ = branch("regression_head", {{"bbox_reg", 4}, {"bbox_ctrness", 1}});
    const at::NoGradGuard no_grad;
    classes_->ends[0]->bias.fill_(-std::log((1 - 0.01) / 0.01));  // objects are rare
    boxes_->ends[0]->bias.fill_(1);  // so that the ReLU after it lets all places learn at first
  }

  at::Tensor forward(const at::Tensor& image) override { return forward_all(image).front(); }
  std::vector<at::Tensor> forward_all(const at::Tensor& image) override {
    std::vector<at::Tensor> features;
    at::Tensor x = image;
    for (std::size_t level = 0; level < stages_.size(); ++level) {
      x = run(stages_[level], x);
      if (level > 0) features.push_back(x);
    }
    std::vector<at::Tensor> levels(features.size());
    at::Tensor above;
    for (std::size_t level = features.size(); level-- > 0;) {
      const at::Tensor& own = features[level];
      at::Tensor here = call(*inner_[level], own);
      if (above.defined()) here = here + at::upsample_nearest2d(above, {own.size(2), own.size(3)});
      above = here;
      const at::Tensor merged = call(*outer_[level], here);
      levels[level] = at::cat({run(classes_, merged), run(boxes_, merged)}, 1);
    }
    return levels;
  }
  std::vector<int64_t> divisor() const override { return {strides_.back(), strides_.back()}; }
  int64_t in_channels() const override { return in_channels_; }
  int64_t num_classes() const override { return num_classes_; }
  int64_t out_channels() const override { return num_classes_ + 5; }
  int64_t spatial_dims() const override { return 2; }
  at::Tensor target(const ops::Boxes& objects,
                    const std::vector<int64_t>& size,
                    double center_sampling_radius) const override {
    return fcos_target(objects, strides_, size, center_sampling_radius);
  }
  ops::Boxes objects_of(const at::Tensor& target) const override {
    const at::Tensor places = target.select(1, 0).to(at::kCPU, at::kFloat).t();  // (A,5)
    const at::Tensor objects =
        std::get<0>(at::unique_dim(places.index({places.select(1, 0).ge(0)}), 0));  // each once
    return {objects.slice(1, 1).contiguous(), {}, objects.select(1, 0).to(at::kLong)};
  }
  at::Tensor loss(const std::vector<at::Tensor>& levels, const at::Tensor& target) const override {
    return fcos_loss(levels, target, strides_).sum();
  }
  std::vector<ops::Boxes> decode(const std::vector<at::Tensor>& levels,
                                 const std::vector<int64_t>& size,
                                 const BoxOptions& options) const override {
    return decode_fcos(levels, strides_, size, options);
  }

 private:
  int64_t in_channels_, num_classes_;
  std::vector<int64_t> strides_;
  std::vector<std::shared_ptr<UnetBlock>> stages_;
  std::vector<std::shared_ptr<Conv>> inner_, outer_;  // the finest first
  std::shared_ptr<FcosBranch> classes_, boxes_;
};
CYTRA_REGISTER(Model, FCOS, "FCOS");

}  // namespace
}  // namespace cytra::nn
