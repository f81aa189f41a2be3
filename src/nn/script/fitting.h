#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace cytra::nn {

/// The sides that a network takes which does not say so.
struct Fitting {
  std::vector<int64_t> divisor;  // empty: none was found
  bool is_fixed = false;         // it takes no other sides
};

/// Finds the divisor by what `fits` says of sides: tries powers of two of which sides may be odd
/// multiples, then the sides that networks are built for.
Fitting find_divisor(std::size_t dims,
                     const std::function<bool(const std::vector<int64_t>& sides)>& fits);

}  // namespace cytra::nn
