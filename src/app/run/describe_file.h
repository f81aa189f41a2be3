#pragma once
#include <optional>
#include <string>

namespace cytra::app {

/// What an image or a trained model is: shape, type, voxel size; task, network, channels, classes.
/// As `key: value` lines, or with `json` as an object. None where `name` is no file with an ending
/// and no image in a folder. Throws: as io::open_image() or inference::load_models().
std::optional<std::string> describe_file(const std::string& name, bool json);

}  // namespace cytra::app
