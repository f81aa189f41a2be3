#include "nn/script/fitting.h"

namespace cytra::nn {

using Sides = std::vector<int64_t>;

Fitting find_divisor(std::size_t dims, const std::function<bool(const Sides& sides)>& fits) {
  for (int64_t divisor = 1; divisor <= 32; divisor *= 2) {
    Sides sides(dims, 3 * divisor);
    if (!fits(sides)) continue;
    sides.back() = 4 * divisor;
    if (fits(sides)) return {Sides(dims, divisor)};
    return {Sides(dims, 3 * divisor), true};
  }
  const Sides usual = dims == 3 ? Sides{64, 128} : Sides{64, 128, 224, 256, 512};
  for (const int64_t side : usual) {
    if (fits(Sides(dims, side))) return {Sides(dims, side), true};
  }
  return {};
}

}  // namespace cytra::nn
