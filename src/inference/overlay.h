#pragma once
#include <ATen/core/Tensor.h>

#include "io/image.h"

namespace cytra::inference {

/// What a picture shows of an image (C,...): three channels as red, green and blue, of others the
/// first in grey.
at::Tensor shown_channels(const at::Tensor& image);
/// shown_channels() of the image (1st to 99.8th percentile) with the outline and a tint of each
/// class or object over it: an RGB picture, every n-th pixel of one above 2048 a side. image
/// (C,[D,]H,W), mask ([D,]H,W) with 0 for background; of a stack: the plane with most foreground.
io::Image draw_overlay(const at::Tensor& image, const at::Tensor& mask);

}  // namespace cytra::inference
