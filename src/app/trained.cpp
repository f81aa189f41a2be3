#include "app/trained.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "config/run_config.h"
#include "nn/weights.h"

namespace cytra::app {

TrainedModel load_model(const TrainedOptions& options) {
  TrainedModel trained;
  trained.config = options.config ? config::load_run_config(*options.config, true)
                                  : nn::checkpoint_config(options.ckpt_path);
  trained.model = make<nn::Model>(trained.config.at("task.model"));
  nn::load_weights(options.ckpt_path, *trained.model, true);
  for (const auto& [name, tensor] : nn::state_of(*trained.model)) {
    if (tensor.isfinite().all().item<bool>()) continue;
    throw DataError(
        fmt::format("{}: the weights '{}' hold NaN or infinity: this model predicts nothing; "
                    "choose an earlier checkpoint",
                    options.ckpt_path,
                    name));
  }
  trained.model->eval();
  return trained;
}

}  // namespace cytra::app
