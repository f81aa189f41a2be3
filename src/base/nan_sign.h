#pragma once
#include <cmath>

namespace cytra {

/// Returns the number; NaN loses its sign, which 0 / 0 has on x86, and which texts would show as
/// "-nan".
inline double without_nan_sign(double value) {
  return std::isnan(value) ? std::abs(value) : value;
}

}  // namespace cytra
