#pragma once
#include <cmath>

namespace cytra {

/// The number, NaN without a sign: 0 / 0 has one on x86, and texts would say "-nan".
inline double without_nan_sign(double value) {
  return std::isnan(value) ? std::abs(value) : value;
}

}  // namespace cytra
