#pragma once
#include <ATen/core/Tensor.h>

#include "io/image.h"

namespace cytra::inference {

/// The image in grey (1st to 99.8th percentile) with the mask's outline and a tint over it: an RGB
/// picture. image (C,[D,]H,W), mask ([D,]H,W) with 0 for background; of a stack: the plane with
/// most foreground.
io::Image draw_overlay(const at::Tensor& image, const at::Tensor& mask);

}  // namespace cytra::inference
