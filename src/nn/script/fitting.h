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

using Fits = std::function<bool(const std::vector<int64_t>& sides)>;

/// Finds the divisor by what `fits` says of sides: tries powers of two of which sides may be odd
/// multiples, then the sides that networks are built for.
Fitting find_divisor(std::size_t dims, const Fits& fits);

/// Finds a multiple of the divisor, which may be the divisor, that sides must be, by two sides of
/// `least` each or a bit more; the divisor where none is found.
std::vector<int64_t> find_multiple(const std::vector<int64_t>& divisor,
                                   const std::vector<int64_t>& least,
                                   const Fits& fits);

/// Finds whether a network takes multiples of the divisor that was said for it, or, where a larger
/// image does not fit, the only sides.
Fitting fit_divisor(const std::vector<int64_t>& divisor, const Fits& fits);

}  // namespace cytra::nn
