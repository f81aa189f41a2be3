// ImageClassifier: the encoder of a network, the mean or maximum of its deepest features over the
// image, and a linear map to classes or values. The encoder's parameters keep their names, so that
// weights of the whole network fit.
#include <regex>
#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/strings.h"
#include "config/registry.h"
#include "io/weights/torch_file.h"
#include "nn/blocks/layers.h"
#include "nn/blocks/masked_autoencoder.h"
#include "nn/classifier.h"
#include "nn/weights.h"

namespace cytra::nn {
namespace {

/// The names of the layers that are the encoder of a network, by the network's in small letters.
/// They run one after the other, in the order in which it has registered them.
const std::map<std::string, std::string>& encoder_names() {
  static const std::map<std::string, std::string> names{
      {"attentionunet", R"(model\.(0|1(\.submodule\.1)*\.submodule(\.0)?)\.conv)"},
      {"basicunet", R"(conv_0|down_\d)"},
      {"dynunet", R"(input_block|downsamples\.\d+|bottleneck)"},
      {"mednext", R"(stem|(enc_stages|down_blocks)\.\d+|bottleneck)"},
      {"plainconvunet", R"(encoder\..*)"},
      {"residualencoderunet", R"(encoder\..*)"},
      {"segresnet", R"(convInit|dropout|down_layers\.\d+)"},
      {"segresnetds", R"(encoder\..*)"},
      {"unet", R"(model(\.1\.submodule)*(\.0)?)"},
      {"vnet", R"(in_tr|down_tr\d+)"}};
  return names;
}

/// The layers of the encoder of `network`, whose class is `name` in small letters, by their names.
std::vector<std::pair<std::string, std::shared_ptr<Layer>>> encoder_layers(
    const Model& network, const std::string& name) {
  const std::regex pattern(encoder_names().at(name));
  std::vector<std::pair<std::string, std::shared_ptr<Layer>>> found;
  for (const auto& module : network.named_modules("", /*include_self=*/false)) {
    auto layer = std::dynamic_pointer_cast<Layer>(module.value());
    if (!layer || !std::regex_match(module.key(), pattern)) continue;
    if (!found.empty() && module.key().starts_with(found.back().first + ".")) continue;
    found.emplace_back(module.key(), std::move(layer));
  }
  if (name == "mednext") {  // it lists all blocks of the levels before all that lead down
    const std::size_t levels = found.size() / 2 - 1;
    auto ordered = found;
    for (std::size_t i = 0; i < 2 * levels; ++i)
      ordered[1 + i] = found[1 + i / 2 + (i % 2 == 1 ? levels : 0)];
    return ordered;
  }
  return found;
}

/// The weights of `module` that a checkpoint or a file of weights of the whole network has, and
/// does not name otherwise than `module` does. Throws: DataError when one is missing.
void load_encoder_of(torch::nn::Module& module, const std::string& path) {
  const auto load = [&](const io::TensorViews& tensors) {
    const std::map<std::string, at::Tensor> own = state_of(module);
    io::TensorViews fitting;
    for (const auto& [name, view] : fit_names(module, tensors, path))
      if (own.count(name) > 0) fitting[name] = view;
    load_state(module, fitting, path, "", Fit::all);
  };
  try {
    if (io::is_torch_file(path)) {
      load(io::TorchFile(path).tensors());
    } else {
      load(io::SafetensorsFile(path).tensors());
    }
  } catch (const DataError& error) {
    throw DataError(
        "model.encoder_ckpt: {}; model.backbone must be the network that it was trained as, with "
        "its options",
        error.what());
  }
}

class ImageClassifier final : public Classifier {
 public:
  struct Options : ModelOptions {
    static constexpr const char* kPurpose =
        "classes of images; expected task=classification (experiment=im2im/classification)";
    config::Node backbone;
    int64_t out_channels = 2;
    std::string pooling = "avg";
    double dropout = 0;
    std::optional<std::string> encoder_ckpt;
    void visit(auto& v) {
      v("backbone", backbone, "the network whose encoder it is", config::component<Model>());
      v("out_channels", out_channels, "classes or values K", 1, 1e5);
      v("pooling", pooling, "of the encoder's features over the image", {"avg", "max"});
      v("dropout", dropout, "share of pooled features dropped in training", 0, 1);
      v("encoder_ckpt",
        encoder_ckpt,
        "a checkpoint, or weights, of the backbone to begin with: of a segmentation or a masked "
        "autoencoder; null: none");
      ModelOptions::visit(v);
    }
  };

  explicit ImageClassifier(const Options& options)
      : Classifier(options),
        classes_(options.out_channels),
        is_max_(options.pooling == "max"),
        encoder_(put<torch::nn::Module>(*this, "encoder")) {
    const int64_t features = take_encoder(options.backbone);
    if (options.encoder_ckpt) load_encoder_of(*encoder_, *options.encoder_ckpt);
    dropout_ = put<Dropout>(*this, "dropout", options.dropout);
    head_ = put<Linear>(*this, "head", features, classes_);
  }

  at::Tensor features(const at::Tensor& image) override {
    at::Tensor x = image;
    if (mae_) {
      const UnitMask* const nothing_hidden = nullptr;
      x = call(*mae_, image, nothing_hidden, settings.gradient_checkpointing).slice(1, 1);
    } else if (vit_) {
      x = vit_->forward(image);
    }
    for (const auto& layer : layers_) x = run(layer, x);
    if (layers_.empty()) {  // tokens (N,T,E)
      Sizes shape{x.size(0), x.size(2)};
      shape.insert(shape.end(), grid_.begin(), grid_.end());
      x = x.transpose(1, 2).reshape(shape);
    }
    return x;
  }
  at::Tensor numbers(const at::Tensor& features) override {
    const at::Tensor places = features.flatten(2);
    at::Tensor numbers = call(*head_, call(*dropout_, is_max_ ? places.amax(2) : places.mean(2)));
    while (numbers.dim() < features.dim()) numbers = numbers.unsqueeze(-1);  // for any batch
    return numbers;
  }
  /// Through the mean or the maximum over the image and a linear map, the mean gradient of a number
  /// by a feature is the map's weight, divided by the number of places.
  at::Tensor saliency(const at::Tensor& features) override {
    const auto places = static_cast<double>(features[0][0].numel());
    return at::linear(features.movedim(1, -1), head_->weight).movedim(-1, 1).relu() / places;
  }
  std::vector<int64_t> divisor() const override { return divisor_; }
  std::vector<int64_t> fixed_size() const override { return fixed_size_; }
  int64_t in_channels() const override { return in_channels_; }
  int64_t out_channels() const override { return classes_; }
  int64_t spatial_dims() const override { return std::ssize(divisor_); }

 private:
  /// Keeps the encoder of a network. Returns the number of its features. Throws: ConfigError.
  int64_t take_encoder(const config::Node& backbone) {
    const auto whole = make<Model>(backbone);
    const std::string type = config::components_of(Model::kKind).name_of(backbone),
                      name = in_small_letters(type);
    divisor_ = whole->divisor();
    fixed_size_ = whole->fixed_size();
    in_channels_ = whole->in_channels();
    if (encoder_names().count(name) > 0) {
      int64_t features = 0;  // of the last convolution
      for (const auto& [place, layer] : encoder_layers(*whole, name)) {
        layers_.push_back(put(*encoder_, place, layer));
        for (const at::Tensor& parameter : layer->parameters())
          if (parameter.dim() > 2) features = parameter.size(0);
      }
      return features;
    }
    for (const auto& child : whole->named_children()) {
      mae_ = std::dynamic_pointer_cast<MaeEncoder>(child.value());
      if (!mae_) continue;
      put(*encoder_, child.key(), mae_);
      take_grid(backbone, 4);
      return backbone.get<int64_t>("emb_dim", 768);
    }
    if (name == "vit" && !backbone.get<bool>("classification", false)) {
      vit_ = encoder_->register_module("vit", whole);
      take_grid(backbone, 16);
      return whole->out_channels();
    }
    std::vector<std::string> known{"mae", "seg_vit", "vit without classification"};
    for (const auto& [one, pattern] : encoder_names()) known.push_back(one);
    throw ConfigError("{}: no encoder of {} is known; expected {}",
                      backbone.where(),
                      type,
                      fmt::join(known, ", "));
  }
  /// Tokens are patches of an image, by default of `patch_size`.
  void take_grid(const config::Node& backbone, int64_t patch_size) {
    const config::Node* given = backbone.find_direct("patch_size");
    Sizes sides{patch_size};
    if (given != nullptr)
      sides = given->is_container() ? given->as<Sizes>() : Sizes{given->as<int64_t>()};
    grid_ = per_dimension(sides, spatial_dims(), "patch_size");
    for (std::size_t d = 0; d < grid_.size(); ++d) grid_[d] = fixed_size_[d] / grid_[d];
  }

  int64_t classes_, in_channels_ = 1;
  bool is_max_;
  Sizes divisor_, fixed_size_, grid_;
  std::shared_ptr<torch::nn::Module> encoder_;
  std::vector<std::shared_ptr<Layer>> layers_;
  std::shared_ptr<MaeEncoder> mae_;
  std::shared_ptr<Model> vit_;
  std::shared_ptr<Dropout> dropout_;
  std::shared_ptr<Linear> head_;
};
CYTRA_REGISTER(Model, ImageClassifier, "ImageClassifier");

}  // namespace
}  // namespace cytra::nn
