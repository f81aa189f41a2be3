#pragma once
#include <string>
#include <vector>

#include "base/tensor_fwd.h"

namespace cytra::inference {

/// The names of the methods: otsu, triangle, li, yen, isodata, mean, minimum.
const std::vector<std::string>& threshold_methods();

/// The threshold by which a method divides the values of an image: those above are foreground. If
/// all values are equal, it is that value. Shape: any, real, finite. Throws: DataError where there
/// is none (an empty image; minimum: a histogram that never has two peaks). Source:
/// skimage.filters.threshold_*, of float32: the same histogram of 256 bins, in float32.
double find_threshold(const Tensor& values, const std::string& method);

}  // namespace cytra::inference
