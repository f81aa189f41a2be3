#pragma once
#include "config/node.h"

namespace cytra::nn {
struct Model;
}

namespace cytra::training {

/// Freezes what the LayerFreeze entries among `callbacks` (may be null) name. Before the optimizer
/// takes the parameters: it then keeps no state for these. Throws: ConfigError.
void freeze_layers(const config::Node* callbacks, nn::Model& model);

}  // namespace cytra::training
