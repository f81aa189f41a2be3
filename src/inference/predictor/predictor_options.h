#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "config/node.h"
#include "inference/engines/engine.h"
#include "inference/predictor/averages.h"

namespace cytra::inference {

/// Which of the file's values are foreground: those above a threshold, or below it; or where a mask
/// image is not 0.
struct ForegroundRule {
  std::string mask = {};  // a file, or a folder with one for each image, of its name; "": none
  bool is_above = true;
  std::optional<double> threshold;  // none: Otsu's for each channel
};

struct PredictorOptions {
  std::string accelerator = "auto";  // or cpu, gpu, cuda
  config::Node inference_args;       // WindowChanges; where null, the checkpoint's apply
  EngineOptions engine;
  TtaOptions tta;              // test-time augmentation
  std::string form;            // of the result, one of Decoder::forms(); "": the usual one
  double threshold = 0.5;      // of a mask's probability
  double temperature = 1;      // that logits are divided by; 0: LoadedModel::temperature
  bool with_target = false;    // the transforms are applied to the target, too
  bool original_grid = false;  // results are in the voxels of the file, not of the transforms
  std::optional<ForegroundRule> foreground;  // windows without any are not predicted
  /// Bytes for predicting an image, besides the model and the image: as many windows at once as
  /// fit, unless inference_args.sw_batch_size says how many. None: what is free.
  std::optional<int64_t> budget;
};

}  // namespace cytra::inference
