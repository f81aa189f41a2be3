// MultiHead: a backbone whose features go to several heads, each an output of its own. Names of
// parameters as in cyto_dl.models.im2im.MultiTaskIm2Im: `backbone`, `task_heads`.

#include "base/error.h"
#include "base/lists.h"
#include "nn/call.h"
#include "nn/heads/output_head.h"
#include "nn/model.h"

namespace cytra::nn {
namespace {

class MultiHead final : public Model {
 public:
  struct Options : ModelOptions {
    config::Node backbone, heads;
    void visit(auto& v) {
      v("backbone", backbone, "gives the features: its out_channels", config::component<Model>());
      v("heads", heads, "what makes an output of them, by its name", config::map_of<OutputHead>());
      ModelOptions::visit(v);
    }
    void check() const {
      for (const auto& [name, head] : heads.map) {
        if (head.is_map()) return;
      }
      throw ConfigError("MultiHead: heads: empty, expected one or more, each under its name");
    }
  };
  explicit MultiHead(const Options& options)
      : Model(options), backbone_(register_module("backbone", make<Model>(options.backbone))) {
    auto heads = put<torch::nn::Module>(*this, "task_heads");
    for (const auto& [name, node] : options.heads.map) {
      if (!node.is_map()) continue;  // null: switched off
      names_.push_back(name);
      config::Node head = node;
      fit(head, "spatial_dims", backbone_->spatial_dims());
      fit(head, "in_channels", backbone_->out_channels());
      if (heads_.empty())
        out_channels_ = head.get<int64_t>("out_channels", backbone_->out_channels());
      heads_.push_back(heads->register_module(name, make<OutputHead>(head)));
    }
  }

  at::Tensor forward(const at::Tensor& image) override {
    return run(heads_.front(), features(image));
  }
  std::vector<at::Tensor> forward_all(const at::Tensor& image) override {
    const at::Tensor shared = features(image);
    return mapped(heads_, [&](const auto& head) { return run(head, shared); });
  }
  std::vector<std::string> output_names() const override { return names_; }
  std::vector<int64_t> divisor() const override { return backbone_->divisor(); }
  std::vector<int64_t> fixed_size() const override { return backbone_->fixed_size(); }
  int64_t in_channels() const override { return backbone_->in_channels(); }
  int64_t out_channels() const override { return out_channels_; }
  int64_t spatial_dims() const override { return backbone_->spatial_dims(); }

 private:
  at::Tensor features(const at::Tensor& image) {
    backbone_->settings.gradient_checkpointing |= settings.gradient_checkpointing;
    return call(*backbone_, image);
  }
  /// Sets the options that follow from the backbone. Throws: ConfigError where the head's differ.
  static void fit(config::Node& head, const char* key, int64_t value) {
    const config::Node* given = head.find_direct(key);
    if (given == nullptr || given->is_null()) {
      head.set(key, config::Node::make_integer(value));
    } else if (given->as<int64_t>() != value) {
      throw ConfigError(
          "{}: {}, but the backbone has {}", given->where(), given->as<int64_t>(), value);
    }
  }

  std::shared_ptr<Model> backbone_;
  std::vector<std::string> names_;
  std::vector<std::shared_ptr<OutputHead>> heads_;
  int64_t out_channels_ = 1;
};
CYTRA_REGISTER(Model, MultiHead, "MultiHead");

}  // namespace
}  // namespace cytra::nn
