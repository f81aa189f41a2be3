#pragma once
#include <string>

#include "config/node.h"
#include "training/callback.h"
#include "training/optimizer.h"

namespace cytra::io {
class SafetensorsFile;
}

namespace cytra::training {

/// One safetensors file, written atomically: weights as "model.<name>", the optimizer as
/// "optimizer.<state>", torch's generator as "rng.cpu"; the state, the resolved configuration and
/// Cytra's version in its metadata. No code is ever executed on loading. Throws: as AtomicFile.
void save_checkpoint(const std::string& path,
                     const TrainState& state,
                     const nn::Model& model,
                     const Optimizer& optimizer,
                     const config::Node& config);

/// Restores weights, optimizer, generator and state. Throws: DataError when the file is no
/// checkpoint or does not fit.
TrainState load_checkpoint(const std::string& path,
                           nn::Model& model,
                           Optimizer& optimizer,
                           bool strict);

/// Weights alone, from a checkpoint or from any safetensors file with the model's names (a "model."
/// prefix or none).
void load_weights(const std::string& path, nn::Model& model, bool strict);

/// The configuration a checkpoint was trained with. Throws: DataError when it holds none.
config::Node checkpoint_config(const std::string& path);

}  // namespace cytra::training
