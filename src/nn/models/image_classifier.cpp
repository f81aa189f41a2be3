// ImageClassifier: the encoder of a network, the mean or maximum of its deepest features, and a
// linear map to the classes. The encoder's parameters keep their names, so that weights of the
// whole network fit.
#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/blocks/layers.h"
#include "nn/classifier.h"

namespace cytra::nn {
namespace {

/// Adds the layers of a module to `layers`, in the order in which they were registered.
void add_layers(const torch::nn::Module& module, std::vector<std::shared_ptr<Layer>>& layers) {
  for (const auto& child : module.children()) {
    if (auto layer = std::dynamic_pointer_cast<Layer>(child)) {
      layers.push_back(std::move(layer));
    } else {
      add_layers(*child, layers);
    }
  }
}

class ImageClassifier final : public Classifier {
 public:
  struct Options : ModelOptions {
    config::Node backbone;
    int64_t out_channels = 2;
    std::string pooling = "avg";
    double dropout = 0;
    template <class V>
    void visit(V& v) {
      v("backbone",
        backbone,
        "the network whose encoder it is: ResidualEncoderUNet, PlainConvUNet",
        config::component<Model>());
      v("out_channels", out_channels, "classes K", 2, 1e5);
      v("pooling", pooling, "of the encoder's features over the image", {"avg", "max"});
      v("dropout", dropout, "share of pooled features dropped in training", 0, 1);
      ModelOptions::visit(v);
    }
    /// The layers of these encoders run one after the other, as they were registered.
    void check() const {
      const std::string name = config::own_name(backbone.get<std::string>("_target_", ""));
      if (name == "ResidualEncoderUNet" || name == "PlainConvUNet") return;
      throw ConfigError("backbone: " + name + ": expected ResidualEncoderUNet or PlainConvUNet");
    }
  };

  explicit ImageClassifier(const Options& options)
      : Classifier(options), classes_(options.out_channels), is_max_(options.pooling == "max") {
    const auto whole = make<Model>(options.backbone);
    divisor_ = whole->divisor();
    in_channels_ = whole->in_channels();
    add_layers(*register_module("encoder", whole->named_children()["encoder"]), encoder_);
    int64_t features = 0;  // of the last convolution
    for (const at::Tensor& parameter : encoder_.back()->parameters())
      if (parameter.dim() > 2) features = parameter.size(0);
    const Sizes one(divisor_.size(), 1);
    dropout_ = register_module("dropout", std::make_shared<Dropout>(options.dropout));
    head_ =
        register_module("head", std::make_shared<Conv>(features, classes_, ConvOptions{one, one}));
  }

  at::Tensor forward(const at::Tensor& image) override {
    at::Tensor x = image;
    for (const auto& layer : encoder_) x = run(layer, x);
    std::vector<int64_t> sides(divisor_.size());
    for (std::size_t d = 0; d < sides.size(); ++d) sides[d] = static_cast<int64_t>(d) + 2;
    x = is_max_ ? x.amax(sides, /*keepdim=*/true) : x.mean(sides, /*keepdim=*/true);
    return call(*head_, call(*dropout_, x));
  }
  std::vector<int64_t> divisor() const override { return divisor_; }
  int64_t in_channels() const override { return in_channels_; }
  int64_t out_channels() const override { return classes_; }
  int64_t spatial_dims() const override { return static_cast<int64_t>(divisor_.size()); }

 private:
  int64_t classes_, in_channels_ = 1;
  bool is_max_;
  Sizes divisor_;
  std::vector<std::shared_ptr<Layer>> encoder_;
  std::shared_ptr<Dropout> dropout_;
  std::shared_ptr<Conv> head_;
};
CYTRA_REGISTER(Model, ImageClassifier, "ImageClassifier");

}  // namespace
}  // namespace cytra::nn
