#pragma once
// What a training has learned from, to be compared when the training is continued.
#include <string>
#include <vector>

#include "config/node.h"
#include "data/sample/sample.h"

namespace cytra::training {

/// `path`, the number of images, and a fingerprint of their files: names, sizes and, of some of
/// them, content. Copies of a data set in another folder have the same one.
config::Node identity_of(const std::string& path, const std::vector<data::Sample>& samples);

/// Compares with what the checkpoint was trained on, where that is known, and the model of `config`
/// with its own. Throws: ConfigError that names both, and how to go on; where the user `chose` this
/// very file, other data are a warning.
void expect_same_training(const std::string& checkpoint,
                          const config::Node& identity,
                          const config::Node& config,
                          bool chose);

}  // namespace cytra::training
