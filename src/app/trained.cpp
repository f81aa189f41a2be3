#include "app/trained.h"

#include "config/run_config.h"
#include "training/checkpoint.h"

namespace cytra::app {

TrainedModel load_model(const TrainedOptions& options) {
  TrainedModel trained;
  trained.config = options.config ? config::load_run_config(*options.config, true)
                                  : training::checkpoint_config(options.ckpt_path);
  trained.model = nn::make_model(trained.config.at("task.model"));
  training::load_weights(options.ckpt_path, *trained.model, true);
  trained.model->eval();
  return trained;
}

}  // namespace cytra::app
