#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/tensor_fwd.h"
#include "io/image.h"

namespace cytra::report {

/// What Task::preview() gives, side by side: input, target, prediction, then the others by name;
/// an 8-bit RGB picture. Of a stack the middle plane is drawn; 3 channels are drawn as colours,
/// else the first channel; images with sides above 512 pixels are shrunk by 2 or more. The input
/// is grey, from its 1st to its 99.8th percentile. Whole numbers from 0 on (except in the input)
/// are labels, in colours. Other values have the contrast of the target or, where this has labels,
/// 0 to 1 if they are in this range.
io::Image draw_panel(const std::map<std::string, Tensor>& preview);
/// The names of its parts, from left to right.
std::vector<std::string> panel_parts(const std::map<std::string, Tensor>& preview);

}  // namespace cytra::report
