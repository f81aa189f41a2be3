#pragma once
#include <ATen/core/Tensor.h>

#include "io/image.h"

namespace cytra::inference {

/// Draws an RGB picture of the image's shown_channels() under a heat map, from dark red for little
/// to white for its largest value. image (C,[D,]H,W); heat ([D,]H,W) of any sides, 0 and more, is
/// resized to the image; of a stack: the plane with the largest value.
io::Image draw_heat(const at::Tensor& image, const at::Tensor& heat);

}  // namespace cytra::inference
