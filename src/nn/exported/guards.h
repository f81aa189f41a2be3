#pragma once
// The conditions on the sides of an image that torch.export has noted.
#include <cstdint>
#include <string>
#include <vector>

namespace cytra::nn {

/// Whether a condition such as "(L['x'].size()[3] // 2) != 1" holds for an image of these sides,
/// (N,C,[D,]H,W): comparisons, sums, products, quotients, remainders, min, max, and, or, not. True
/// for what is no such condition.
bool holds(const std::string& guard, const std::vector<int64_t>& sides);

}  // namespace cytra::nn
