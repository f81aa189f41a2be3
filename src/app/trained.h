#pragma once
// The trained model that a program works with: its `checkpoint` section.
#include <memory>
#include <optional>
#include <string>

#include "config/options.h"
#include "nn/model.h"

namespace cytra::app {

struct TrainedOptions {
  std::string ckpt_path;
  std::optional<std::string> config;
  template <class V>
  void visit(V& v) {
    v("ckpt_path",
      ckpt_path,
      "a checkpoint that `train` wrote; with `config` also weights of PyTorch or safetensors",
      config::required);
    v("config",
      config,
      "a run's folder or a YAML file with its configuration, for weights that hold none; null: the "
      "checkpoint's");
    v("weights_only", config::Unused{{"true"}}, "nothing else is taken");
    v("strict", config::Unused{{"true"}}, "every weight must fit");
  }
};

struct TrainedModel {
  config::Node config;               // of the training, complete
  std::shared_ptr<nn::Model> model;  // in evaluation mode, on the CPU
};
/// Throws: ConfigError, DataError when the configuration describes no model or the weights do not
/// fit it.
TrainedModel load_model(const TrainedOptions& options);

}  // namespace cytra::app
