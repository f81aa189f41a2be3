#pragma once
#include <string>

#include "config/node.h"

namespace cytra::nn {

struct Model;

/// The fingerprint of a network's weights and of the options it was made with.
std::string fingerprint_of(const Model& network, const config::Node& model);

}  // namespace cytra::nn
