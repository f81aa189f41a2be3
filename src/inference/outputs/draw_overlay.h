#pragma once
#include <ATen/core/Tensor.h>

#include "io/image.h"

namespace cytra::inference {

/// The channels of an image (C,...) for a picture: three channels as red, green and blue; of other
/// numbers the first, in grey.
at::Tensor shown_channels(const at::Tensor& image);
/// Draws an RGB picture of the image's shown_channels() (1st to 99.8th percentile) with the
/// outline and a tint of each class or object; of an image above 2048 a side it has every n-th
/// pixel. image (C,[D,]H,W), mask ([D,]H,W) with 0 for background; of a stack: the plane with most
/// foreground.
io::Image draw_overlay(const at::Tensor& image, const at::Tensor& mask);

/// Draws an RGB picture of the image's shown_channels() under a heat map, from dark red for little
/// to white for its largest value. image (C,[D,]H,W); heat ([D,]H,W) of any sides, 0 and more, is
/// resized to the image; of a stack: the plane with the largest value.
io::Image draw_heat(const at::Tensor& image, const at::Tensor& heat);

}  // namespace cytra::inference
