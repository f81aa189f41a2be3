// LayerFreeze: parameters that stay as they are, with the running statistics beside them. Follows
// cyto_dl.callbacks.LayerFreeze, which leaves running statistics to change, and freezes nothing
// without `contains`.
#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/registry.h"
#include "nn/model.h"
#include "training/callback.h"

namespace cytra::training {
namespace {
using Modules = std::vector<std::shared_ptr<torch::nn::Module>>;

bool has_one_of(const std::string& name, const std::vector<std::string>& parts) {
  return std::ranges::any_of(
      parts, [&](const std::string& part) { return name.find(part) != std::string::npos; });
}

/// The module of this name, `""` for the model. Throws: ConfigError with the nearest name.
std::shared_ptr<torch::nn::Module> module_called(const std::string& name, nn::Model& model) {
  std::vector<std::string> names;
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    if (item.key() == name) return item.value();
    names.push_back(item.key());
  }
  throw ConfigError(
      "LayerFreeze.modules: the model has no module '{}'.{}", name, suggestion(name, names));
}

class LayerFreeze final : public Callback {
 public:
  struct Options {
    std::vector<std::string> modules, contains, excludes;
    void visit(auto& v) {
      v("modules", modules, "modules to look in, by dotted name; [] or [model]: all of them");
      v("contains", contains, "freeze parameters with one of these in their names; []: all");
      v("excludes", excludes, "except parameters with one of these in their names");
    }
    void check() const {
      if (contains.empty() && excludes.empty())
        throw ConfigError("contains, excludes: expected at least one of them");
    }
  };
  explicit LayerFreeze(const Options& options) : options_(options) {}

  /// The optimizer then keeps no state for what is frozen.
  void prepare(nn::Model& model) override {
    still_.clear();
    int64_t count = 0;
    for (const auto& root : roots_of(model)) {
      for (const auto& item : root->named_parameters()) {
        if (!is_meant(item.key())) continue;
        at::Tensor(item.value()).set_requires_grad(false);
        ++count;
      }
      for (const auto& item : root->named_modules("", /*include_self=*/true)) {
        const auto own = item.value()->parameters(/*recurse=*/false);
        const bool is_frozen =
            own.empty() ? is_meant(item.key())
                        : std::ranges::none_of(own, [](auto& one) { return one.requires_grad(); });
        if (is_frozen && item.value()->named_buffers(/*recurse=*/false).contains("running_mean"))
          still_.push_back(item.value());
      }
    }
    if (count > 0) return;
    throw ConfigError(
        "LayerFreeze: no parameter's name contains {}; the first is '{}'",
        options_.contains.empty() ? "what is not excluded" : join(options_.contains, ", "),
        model.named_parameters().keys().front());
  }
  void on_fit_start(Context& context) override {
    int64_t frozen = 0, all = 0;
    for (const at::Tensor& parameter : context.task.model().parameters()) {
      all += parameter.numel();
      if (!parameter.requires_grad()) frozen += parameter.numel();
    }
    log::info("callbacks.{}: {} of {} parameters are frozen", name, frozen, all);
  }
  // The trainer sets the whole model to training.
  void on_batch_start(Context&) override {
    for (const auto& module : still_) module->eval();
  }

 private:
  Modules roots_of(nn::Model& model) const {
    Modules roots;
    for (const std::string& name : options_.modules) {
      const bool is_all = name == "model" || name == "backbone";  // of CytoDL's LightningModules
      if (!is_all || model.named_children().contains(name))
        roots.push_back(module_called(name, model));
    }
    if (roots.empty()) roots.push_back(model.shared_from_this());
    return roots;
  }
  bool is_meant(const std::string& name) const {
    return (options_.contains.empty() || has_one_of(name, options_.contains)) &&
           !has_one_of(name, options_.excludes);
  }
  Options options_;
  Modules still_;  // whose running statistics are to stay as well
};
CYTRA_REGISTER(Callback, LayerFreeze, "LayerFreeze");

}  // namespace

}  // namespace cytra::training
