// ModelSummary, RichModelSummary: the model's layers, once. Source:
// lightning.pytorch.callbacks.ModelSummary.
#include <ATen/ATen.h>

#include "base/log.h"
#include "config/registry.h"
#include "data/loader/batch.h"
#include "nn/model.h"
#include "nn/summary.h"
#include "training/callback.h"
#include "training/trainer_options.h"

namespace cytra::training {
namespace {
using config::Unused;

/// The shape of one image of the batch that the model can take: (1,C,[D,]H,W); empty without one.
std::vector<int64_t> shape_of(const data::Batch& batch, const nn::Model& model) {
  for (const auto& [key, tensor] : batch.tensors) {
    if (tensor.dim() != model.spatial_dims() + 2 || tensor.size(1) != model.in_channels()) continue;
    std::vector<int64_t> shape = tensor.sizes().vec();
    shape[0] = 1;
    return shape;
  }
  return {};
}

class ModelSummary final : public Callback {
 public:
  struct Options {
    int64_t max_depth = 1;
    void visit(auto& v) {
      v("max_depth", max_depth, "1: the modules in the model, 2: those in them; -1: all", -1, 100);
      v("header_style", Unused{}, "of Lightning's RichModelSummary");
    }
  };
  explicit ModelSummary(const Options& options) : options_(options) {}

  bool takes_part(const TrainerOptions& trainer, bool is_first_process) const override {
    return trainer.enable_model_summary && is_first_process;
  }
  /// The first batch tells the shape of an image.
  void on_batch_start(Context& context) override {
    if (std::exchange(is_done_, true)) return;
    nn::Model& model = context.task.model();
    const std::vector<int64_t> shape = shape_of(*context.batch, model);
    if (shape.empty()) {
      log::warn("callbacks.{}: no image of the batch fits the model ({} channels, {}D)",
                name,
                model.in_channels(),
                model.spatial_dims());
      return;
    }
    const std::string text = nn::to_text(nn::summarize(model, shape, options_.max_depth));
    log::info("model:\n{}", text);
    for (const auto& logger : context.loggers) logger->log_text("model", text, context.state.step);
  }

 private:
  Options options_;
  bool is_done_ = false;
};
CYTRA_REGISTER(Callback, ModelSummary, "ModelSummary", "RichModelSummary");

}  // namespace
}  // namespace cytra::training
