#include "nn/script/fitting.h"

namespace cytra::nn {

using Sides = std::vector<int64_t>;

Fitting find_divisor(std::size_t dims, const Fits& fits) {
  for (int64_t divisor = 1; divisor <= 32; divisor *= 2) {
    Sides sides(dims, 3 * divisor);
    if (!fits(sides)) continue;
    sides.back() = 4 * divisor;
    if (fits(sides)) return {Sides(dims, divisor)};
    return {Sides(dims, 3 * divisor), true};
  }
  const Sides usual = dims == 3
                          ? Sides{16, 32, 40, 64, 80, 112, 128, 160}
                          : Sides{16,  28,  32,  40,  56,  64,  80,  100, 112, 120, 128, 144, 160,
                                  192, 200, 224, 240, 256, 288, 300, 320, 384, 400, 448, 480, 512};
  for (const int64_t side : usual) {
    if (fits(Sides(dims, side))) return {Sides(dims, side), true};
  }
  return {};
}

Sides find_multiple(const Sides& divisor, const Sides& least, const Fits& fits) {
  for (const int64_t times : {1, 2, 4, 8, 16, 32, 64, 3, 6, 12, 24, 5, 10, 20, 7, 14, 28}) {
    Sides found, sides, longer;
    for (std::size_t d = 0; d < divisor.size(); ++d) {
      found.push_back(times * divisor[d]);
      sides.push_back((least[d] + found[d] - 1) / found[d] * found[d]);
      longer.push_back(sides[d] + found[d]);
    }
    if (fits(sides) && fits(longer)) return found;
  }
  return divisor;
}

Fitting fit_divisor(const Sides& divisor, const Fits& fits) {
  constexpr int64_t kMostTimes = 32, kMostTried = int64_t{1} << 22;
  for (int64_t times = 1; times <= kMostTimes; times *= 2) {
    Sides sides, longer;
    int64_t voxels = 1;
    for (const int64_t side : divisor) {
      sides.push_back(times * side);
      longer.push_back((times + 1) * side);
      voxels *= longer.back();
    }
    const bool is_large = voxels > kMostTried;
    if (is_large && times > 1) break;
    if (!fits(sides)) continue;
    if (is_large || fits(longer)) return {divisor};
    return {sides, true};
  }
  return {};
}

}  // namespace cytra::nn
