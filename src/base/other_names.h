#pragma once
#include <string>
#include <vector>

namespace cytra {

/// What Cytra has for a name of Albumentations, MONAI, Lightning or PyTorch, for messages:
/// "RandSpatialCropd (roi_size)"; "" for a name that is not known.
std::string name_here(const std::string& name);
/// A hint for a message: " In Cytra it is x." for such a name, " Did you mean 'x'?" for the nearest
/// choice, or "". suggestion() begins with it.
std::string near_hint(const std::string& word, const std::vector<std::string>& choices);

}  // namespace cytra
