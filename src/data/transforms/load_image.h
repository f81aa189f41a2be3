#pragma once
// Questions about the LoadImaged in a configuration, before it is made.
#include <string>
#include <vector>

#include "config/node.h"

namespace cytra::data {

/// Whether a transform of a configuration reads images from files (Transform::loads()).
bool loads_images(const config::Node& transform);
/// The keys of images that a transform reads; empty where it reads none.
std::vector<std::string> loaded_keys(const config::Node& transform);
/// Sets an option of each transform in a list that reads images.
void set_load_option(config::Node& list, const std::string& option, const config::Node& value);
/// The configuration of a LoadImaged of one key that accepts planes and stacks.
config::Node any_image_load(const std::string& key);

}  // namespace cytra::data
